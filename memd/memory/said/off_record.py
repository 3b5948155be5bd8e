"""Off the record from one turn on: the threads in which the user has asked that nothing more be kept ("incognito on").

The document names them, so that it also holds for the claims that come later, until the user says otherwise.
"""

from __future__ import annotations

from memd.memory.document import Document

FIELD = "offRecord"
MAX_THREADS = 100
"""Threads that a document names; the oldest go. An entry has about 100 bytes."""


def is_off(document: Document, thread: str) -> bool:
    """Whether the user has asked that nothing more of this thread (its name in the ledger) be kept."""
    return thread in _threads(document)


def noted(document: Document, thread: str, now: str, *, is_off: bool) -> Document:
    """The document with the thread's present state; the same object when nothing changes."""
    threads = _threads(document)
    if is_off == (thread in threads):
        return document
    rest = {name: at for name, at in threads.items() if name != thread}
    if is_off:
        rest = dict([*rest.items(), (thread, now)][-MAX_THREADS:])
    left = {name: value for name, value in document.items() if name != FIELD}
    return {**left, FIELD: rest} if rest else left


def _threads(document: Document) -> dict[str, str]:
    field = document.get(FIELD)
    return field if isinstance(field, dict) else {}
