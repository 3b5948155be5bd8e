"""The ledger: which messages a document has already taken in. `{thread_id: [identity, …]}`, oldest thread first.

It is written in the same atomic replace as the facts, so that it alone decides what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from memd.context import Message, is_single, loose
from memd.memory.document import Document

Ledger = dict[str, list[str]]


def known(ledger: Ledger, identities: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Those of the identities (by thread) that the ledger holds.

    A message that came without id, predecessor and created_at is also known by thread, role and content alone.
    """
    found: set[str] = set()
    for thread_id, names in identities.items():
        held = set(ledger.get(thread_id, ()))
        alike = set(map(loose, held)) if any(map(is_single, names)) else set()
        found |= {name for name in names if name in held or (is_single(name) and loose(name) in alike)}
    return frozenset(found)


def fresh(known: AbstractSet[str], messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages whose identities are not known, in order, each once."""
    seen, alike = set(known), set[str]()
    new: list[Message] = []
    for message in messages:
        identity = message.identity
        if identity in seen or (is_single(identity) and loose(identity) in alike):
            continue
        seen.add(identity)
        alike.add(loose(identity))
        new.append(message)
    return tuple(new)


def unknown(document: Document, thread_id: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages of a thread that the document has not taken in, in order, each once."""
    names = {thread_id: [message.identity for message in messages]}
    return fresh(known(document.get("ledger", {}), names), messages)


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
