"""The shape of a memory document, checked whenever one is read: nothing can be made of what is wrong here.

The error names the place (`facts[3].content`), so that whoever edited the file by hand finds it. Threads and other ids
are named by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from memd.errors import DocumentDamaged


def check(document: dict[str, Any]) -> None:
    """Raise DocumentDamaged with the first place where a completed document has the wrong type."""
    revision = document["revision"]
    if type(revision) is not int or revision < 0:
        raise wrong("revision", "a whole number from 0")
    for name in ("user", "history", "ledger"):
        if not isinstance(document[name], dict):
            raise wrong(name, "an object")
    for name, field in (("facts", "content"), ("archive", "content"), ("removed", "hash")):
        _check_entries(name, document.get(name, []), field)
    for number, identities in enumerate(document["ledger"].values()):
        if not isinstance(identities, list):
            raise wrong(f"ledger (thread {number})", "a list")
        if not set(map(type, identities)) <= {str}:
            raise wrong(f"ledger (thread {number})[{_first(identities, _is_text)}]", "text")


def wrong(place: str, expected: str) -> DocumentDamaged:
    """The error for one place of a document."""
    return DocumentDamaged(f"E_DOCUMENT_SHAPE: {place} of a memory document must be {expected}", place)


def _check_entries(name: str, entries: object, field: str) -> None:
    if not isinstance(entries, list):
        raise wrong(name, "a list")
    if not set(map(type, entries)) <= {dict}:
        raise wrong(f"{name}[{_first(entries, lambda entry: isinstance(entry, dict))}]", "an object")
    if not {type(entry.get(field)) for entry in entries} <= {str}:
        raise wrong(f"{name}[{_first(entries, lambda entry: _is_text(entry.get(field)))}].{field}", "text")


def _first(values: Iterable[Any], test: Callable[[Any], bool]) -> int:
    return next(number for number, value in enumerate(values) if not test(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)
