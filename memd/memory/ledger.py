"""The ledger: which messages a document has already taken in. `{thread_id: [identity, …]}`, oldest thread first.

It is written in the same atomic replace as the facts, so that it alone decides what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memd.context import Message, is_single, loose
from memd.memory.document import Document

Ledger = dict[str, list[str]]


def unknown(document: Document, thread_id: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages that the document has not taken in, in order, each once.

    A message that came without id, predecessor and created_at is also known by thread, role and content alone.
    """
    known = set(document.get("ledger", {}).get(thread_id, ()))
    alike = set(map(loose, known)) if any(is_single(message.identity) for message in messages) else set()
    fresh: list[Message] = []
    for message in messages:
        identity = message.identity
        if identity in known or (is_single(identity) and loose(identity) in alike):
            continue
        known.add(identity)
        alike.add(loose(identity))
        fresh.append(message)
    return tuple(fresh)


def taken(ledger: Ledger, thread_id: str, identities: Iterable[str], cap: int) -> Ledger:
    """A new ledger that also holds these identities, with at most `cap` of them over all threads.

    The thread becomes the youngest. The oldest threads make room, each as a whole; only when this thread alone is
    too long do its own oldest identities go.
    """
    before = ledger.get(thread_id, [])
    known = set(before)
    mine = before + [identity for identity in dict.fromkeys(identities) if identity not in known]
    threads = {name: listed for name, listed in ledger.items() if name != thread_id}
    total = len(mine) + sum(map(len, threads.values()))
    for name in list(threads):
        if total <= cap:
            break
        total -= len(threads.pop(name))
    threads[thread_id] = mine[-cap:] if len(mine) > cap else mine
    return threads
