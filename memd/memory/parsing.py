"""Parsing: reads and checks the bytes of a document. An error names the place (`facts[3].content`).

Fields that a person broke without making the document unreadable are read as absent; `broken_fields` lists them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import orjson

from memd.context import Bucket, digest
from memd.errors import DocumentDamaged, DocumentTooNew
from memd.memory.document import SECTIONS, Document, Fact, complete, owner_fields
from memd.push.times import moment

VERSION = (1, 0)
"""The version of the established format: the newest that this code reads, and the one it writes."""

_FIELDS = frozenset(("version", "revision", "userId", "user", "history", "facts", "archive", "ledger", "removed"))
"""The fields that an error may name when they are there twice."""

_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")

Test = Callable[[Any], bool]


def parse(data: bytes, bucket: Bucket) -> Document:
    """Read the bytes of a bucket's document; fields that older writers leave out are added.

    Raises DocumentTooNew for a newer version, DocumentDamaged for anything that is not this bucket's document.
    """
    try:
        document = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DocumentDamaged(f"E_DOCUMENT_JSON: a memory document is not JSON at {place}", place) from None
    if not isinstance(document, dict):
        raise _wrong("the top level", "an object")
    _check_keys(data, document)
    _check_version(document)
    owner = owner_fields(bucket)
    document = complete({**document, **{name: document.get(name, ours) for name, ours in owner.items()}})
    _check(document)
    if any(document[name] != ours for name, ours in owner.items()):
        raise DocumentDamaged("E_DOCUMENT_OWNER: a memory document belongs to another user or agent", "userId")
    _give_ids(document["facts"])
    return document


class _Counted(msgspec.Struct):
    """A document as far as its facts are counted: they are not looked into."""

    facts: list[msgspec.Raw]
    version: str


_COUNTED = msgspec.json.Decoder(_Counted)


def fact_count(data: bytes) -> int | None:
    """How many facts the bytes of a document have, far faster than `parse`; None where only that can say."""
    try:
        counted = _COUNTED.decode(data)
    except msgspec.MsgspecError:
        return None
    return len(counted.facts) if counted.version == "1.0" else None


def broken_fields(document: Document) -> Iterator[str]:
    """A sentence for each field that has the wrong type and is therefore read as absent, or as its default."""
    for name, section in SECTIONS.items():
        entry = document.get(section, {}).get(name, {"summary": ""})
        if not isinstance(entry, dict):
            yield _should_be(f"{section}.{name}", "an object with a summary")
        elif not _is_text(entry.get("summary", "")):
            yield _should_be(f"{section}.{name}.summary", "text")
    for name in ("facts", "archive"):
        for number, fact in enumerate(document.get(name, ())):
            yield from _broken(f"{name}[{number}]", fact, _FACT)
            yield from _broken_evidence(f"{name}[{number}].evidence", fact.get("evidence", []))
            yield from _broken(f"{name}[{number}].subject", fact.get("subject"), _SUBJECT)


def _check_keys(data: bytes, document: Document) -> None:
    """Raise DocumentDamaged when an object has a key twice: the first value, maybe all facts, would be lost."""
    if data == orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE):
        return  # written by memd; only an edit by hand costs the slow look below
    try:
        json.loads(data.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=_unlike_keys, parse_int=str, parse_float=str)
    except RecursionError:
        raise DocumentDamaged("E_DOCUMENT_DEPTH: a memory document is nested too deeply") from None


def _unlike_keys(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        place = twice if twice in _FIELDS else "an object"  # a thread's id must not reach a log
        raise DocumentDamaged(f"E_DOCUMENT_KEY: a memory document has a key twice ({place})", place)


def _check_version(document: Document) -> None:
    version = document.get("version", "1.0")
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if not match:
        raise _wrong("version", 'text such as "1.0"')
    if (int(match[1]), int(match[2])) > VERSION:
        raise DocumentTooNew("E_DOCUMENT_TOO_NEW: a memory document was written by a newer version; upgrade memd")


def _check(document: Document) -> None:
    """Raise DocumentDamaged with the first place of a completed document that has the wrong type.

    Threads and other ids are named by their number: an error may reach a log.
    """
    if not _is_count(document["revision"]):
        raise _wrong("revision", "a whole number from 0")
    for name in ("user", "history", "ledger"):
        if not isinstance(document[name], dict):
            raise _wrong(name, "an object")
    for name, field in (("facts", "content"), ("archive", "content"), ("removed", "hash")):
        _check_entries(name, document.get(name, []), field)
    for number, identities in enumerate(document["ledger"].values()):
        if not isinstance(identities, list):
            raise _wrong(f"ledger (thread {number})", "a list")
        if not set(map(type, identities)) <= {str}:
            raise _wrong(f"ledger (thread {number})[{_first_not(_is_text, identities)}]", "text")


def _check_entries(name: str, entries: object, field: str) -> None:
    if not isinstance(entries, list):
        raise _wrong(name, "a list")
    if not set(map(type, entries)) <= {dict}:
        raise _wrong(f"{name}[{_first_not(_is_object, entries)}]", "an object")
    if not {type(entry.get(field)) for entry in entries} <= {str}:
        raise _wrong(f"{name}[{_first_not(_is_text, (entry.get(field) for entry in entries))}].{field}", "text")


def _give_ids(facts: list[Fact]) -> None:
    """Give an id to each fact that was added by hand without one, or with the id of the fact it was copied from."""
    ids = [fact.get("id") for fact in facts]
    if set(map(type, ids)) <= {str} and len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for place, fact in enumerate(facts):
        fact_id = fact.get("id")
        salt = 0
        while not isinstance(fact_id, str) or fact_id in seen:
            fact_id = "fact_" + digest("by hand", fact["content"], str(place), str(salt), size=4)
            salt += 1
        fact["id"] = fact_id
        seen.add(fact_id)


def _wrong(place: str, expected: str) -> DocumentDamaged:
    return DocumentDamaged(f"E_DOCUMENT_SHAPE: {place} of a memory document must be {expected}", place)


def _first_not(test: Test, values: Iterable[Any]) -> int:
    return next(number for number, value in enumerate(values) if not test(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


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
    **dict.fromkeys(
        ("source", "scope", "scopeId", "sourceError", "backstory", "archiveReason", "replacedBy"), (_is_text, "text")
    ),
    "confirmations": (_is_count, "a whole number from 0"),
    "replaces": (_are_texts, "a list of fact ids"),
    "subject": (_is_object, "an object with person and relationship"),
    "evidence": (lambda value: isinstance(value, list), "a list"),
}
_SUBJECT: dict[str, tuple[Test, str]] = {"person": (_is_text, "text"), "relationship": (_is_text, "text")}
_EVIDENCE: dict[str, tuple[Test, str]] = {"thread": (_is_text, "text"), "quote": (_is_text, "text")}


def _broken(place: str, value: object, fields: dict[str, tuple[Test, str]]) -> Iterator[str]:
    """The fields with the wrong type; one that is absent or null is fine."""
    if isinstance(value, dict):
        for name, (test, expected) in fields.items():
            if value.get(name) is not None and not test(value[name]):
                yield _should_be(f"{place}.{name}", expected)


def _broken_evidence(place: str, entries: object) -> Iterator[str]:
    for number, entry in enumerate(entries) if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield from _broken(f"{place}[{number}]", entry, _EVIDENCE)
        else:
            yield _should_be(f"{place}[{number}]", "an object")


def _should_be(place: str, expected: str) -> str:
    return f"{place} should be {expected}"
