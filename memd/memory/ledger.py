"""The ledger: the identities of the messages a document has already taken in, by thread, the oldest thread first.

It is written in the same atomic replace as the facts, and it alone decides which messages are new.

In a store that all users share, the name of a thread includes its user: two users may use equal thread and message ids.
Versions before that recorded the plain thread; nothing is added there any more, but what it holds stays known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from memd.context import Message, is_single, loose, user_hash
from memd.memory.document import Document, FormerField, former_marks_of, ledger_of

Ledger = dict[str, list[str]]

_END = "\n"
"""Ends the user in the name of a thread. No id has control characters, so no plain thread is taken for a user's."""


def name_of(thread_id: str, user_id: str, *, shared: bool) -> str:
    """The name of a user's thread in the ledger; `shared`: all users share the store."""
    return f"{user_hash(user_id)}{_END}{thread_id}" if shared else thread_id


def places(name: str) -> tuple[str, ...]:
    """The names under which the ledger may hold a thread's identities: its own, and the one of older versions."""
    return (name, name.partition(_END)[2]) if _END in name else (name,)


def renamed(ledger: Ledger, user_id: str, *, shared: bool) -> Ledger:
    """A user's ledger from another store, with the names of this one; the threads of other users are left out."""
    own = user_hash(user_id)
    named = ((name.partition(_END) if _END in name else (own, _END, name), held) for name, held in ledger.items())
    return {name_of(thread, user_id, shared=shared): held for (owner, _, thread), held in named if owner == own}


def known(ledger: Ledger, identities: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """The identities, given by thread, that the ledger holds.

    A message that came without id, predecessor and created_at is also known by thread, role and content alone.
    """
    taken_in: set[str] = set()
    for thread_id, names in identities.items():
        held = set(ledger.get(thread_id, ()))
        alike = set(map(loose, held)) if any(map(is_single, names)) else set()
        taken_in |= {name for name in names if name in held or (is_single(name) and loose(name) in alike)}
    return frozenset(taken_in)


def fresh(known: AbstractSet[str], messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages of which no identity is known, in order, each once."""
    seen, alike = set(known), set[str]()
    new: list[Message] = []
    for message in messages:
        identity = message.identity
        if (
            identity in seen
            or not known.isdisjoint(message.former)
            or (is_single(identity) and loose(identity) in alike)
        ):
            continue
        seen.add(identity)
        alike.add(loose(identity))
        new.append(message)
    return tuple(new)


def unknown(document: Document, name: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages of a thread, given by its name in the ledger, that the document has not taken in, each once."""
    identities = [message.identity for message in messages]
    return fresh(known(ledger_of(document), dict.fromkeys(places(name), identities)), messages)


def known_formerly(document: Document, name: str, messages: Sequence[Message]) -> frozenset[str]:
    """The former identities of these messages that older versions recorded: under the thread, given by its name here,
    or for a message of an app's raw list under the thread without its namespace.

    Identities recorded since do not count: those of other messages could be equal, and whoever pushes to another list
    could choose them.
    """
    former = [identity for message in messages for identity in message.former]
    if not former:
        return frozenset()
    own = places(name)
    plain = own[-1].partition("/")[2]
    recorded = {place: _recorded(document, place, "ledgerFormerRules") for place in own}
    recorded[plain] = _recorded(document, plain, "ledgerFormer")
    return known(recorded, dict.fromkeys(recorded, former))


def _recorded(document: Document, thread_id: str, field: FormerField) -> list[str]:
    """The identities that a thread had before this version first added to the document."""
    marks, held = former_marks_of(document, field), ledger_of(document).get(thread_id, [])
    if marks is None:
        return held
    return held[: held.index(marks[thread_id]) + 1] if marks.get(thread_id) in held else []


def former_marks(document: Document, field: FormerField) -> dict[str, str]:
    """The last identity of each thread when this version first adds to a document; those marks then stay."""
    marks, ledger = former_marks_of(document, field), ledger_of(document)
    if marks is None:
        return {thread: identities[-1] for thread, identities in ledger.items() if identities}
    return {thread: mark for thread, mark in marks.items() if thread in ledger}


def taken(ledger: Ledger, name: str, identities: Iterable[str], cap: int) -> Ledger:
    """A new ledger that also holds these identities, at most `cap` over all threads.

    The thread becomes the youngest. The oldest threads make room, each as a whole; only when this thread alone is
    over the cap do its own oldest identities go.
    """
    before = ledger.get(name, [])
    known = set(before)
    ours = before + [identity for identity in dict.fromkeys(identities) if identity not in known]
    threads = {other: identities for other, identities in ledger.items() if other != name}
    total = len(ours) + sum(map(len, threads.values()))
    for other in list(threads):
        if total <= cap:
            break
        total -= len(threads.pop(other))
    threads[name] = ours[-cap:] if len(ours) > cap else ours
    return threads


def joined(older: Ledger, newer: Ledger, cap: int) -> Ledger:
    """One ledger of both; the same object as `newer` when that holds all of `older`."""
    if all(set(identities) <= set(newer.get(thread, ())) for thread, identities in older.items()):
        return newer
    both: Ledger = {}
    for ledger in (older, newer):
        for thread, identities in ledger.items():
            both = taken(both, thread, identities, cap)
    return both
