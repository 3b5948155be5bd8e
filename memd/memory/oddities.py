"""Oddities: fields that a hand broke without making the document unreadable. They are read as absent, and said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from memd.memory.document import SECTIONS, Document, moment

Test = Callable[[Any], bool]


def odd(document: Document) -> Iterator[str]:
    """A sentence for each place of a document that is read as if it were not there, or as a default."""
    for name, section in SECTIONS.items():
        entry = document.get(section, {}).get(name, {"summary": ""})
        if not isinstance(entry, dict):
            yield _odd(f"{section}.{name}", "an object with a summary")
        elif not isinstance(entry.get("summary", ""), str):
            yield _odd(f"{section}.{name}.summary", "text")
    for name in ("facts", "archive"):
        for number, fact in enumerate(document.get(name, ())):
            yield from _odd_fields(f"{name}[{number}]", fact, _FACT)
            yield from _odd_evidence(f"{name}[{number}].evidence", fact.get("evidence", []))
            yield from _odd_fields(f"{name}[{number}].subject", fact.get("subject"), _SUBJECT)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_time(value: object) -> bool:
    return value == "" or moment(value) is not None


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_FACT: dict[str, tuple[Test, str]] = {
    "category": (_is_text, "text"),
    "confidence": (_is_share, "a number from 0 to 1"),
    **dict.fromkeys(
        ("createdAt", "updatedAt", "lastConfirmedAt", "validUntil", "archivedAt"), (_is_time, "an ISO 8601 time")
    ),
    **dict.fromkeys(("source", "sourceError", "backstory", "archiveReason", "replacedBy"), (_is_text, "text")),
    "confirmations": (_is_count, "a whole number from 0"),
    "replaces": (_are_texts, "a list of fact ids"),
    "subject": (lambda value: isinstance(value, dict), "an object with person and relationship"),
    "evidence": (lambda value: isinstance(value, list), "a list"),
}
_SUBJECT: dict[str, tuple[Test, str]] = {"person": (_is_text, "text"), "relationship": (_is_text, "text")}
_EVIDENCE: dict[str, tuple[Test, str]] = {"thread": (_is_text, "text"), "quote": (_is_text, "text")}


def _odd_fields(place: str, value: object, fields: dict[str, tuple[Test, str]]) -> Iterator[str]:
    """Fields that are absent or null are not odd: nobody said anything."""
    if isinstance(value, dict):
        for name, (test, expected) in fields.items():
            if value.get(name) is not None and not test(value[name]):
                yield _odd(f"{place}.{name}", expected)


def _odd_evidence(place: str, pieces: object) -> Iterator[str]:
    for number, piece in enumerate(pieces) if isinstance(pieces, list) else ():
        if isinstance(piece, dict):
            yield from _odd_fields(f"{place}[{number}]", piece, _EVIDENCE)
        else:
            yield _odd(f"{place}[{number}]", "an object")


def _odd(place: str, expected: str) -> str:
    return f"{place} should be {expected}"
