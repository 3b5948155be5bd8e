"""The memory document: its shape, its empty form, and the check of what is read from outside.

The established `memory.json` (version "1.0") with optional fields added: `revision`, `userId`, `agentName`, `archive`,
`ledger`. Unknown fields are carried along untouched.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import orjson

from memd.context import Bucket, digest
from memd.errors import DocumentDamaged, DocumentTooNew
from memd.memory.shape import check, wrong

Document = dict[str, Any]
Fact = dict[str, Any]

VERSION = (1, 0)
"""The newest version this code reads and the one it writes; that of the established format."""

SECTIONS = {
    "workContext": "user",
    "personalContext": "user",
    "topOfMind": "user",
    "recentMonths": "history",
    "earlierContext": "history",
    "longTermBackground": "history",
}
"""The six summaries and the section that each stands in."""

DEFAULT_CONFIDENCE = 0.5
"""Confidence of a fact that came without a usable one (the established system's reading)."""

_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")


def empty_document(bucket: Bucket) -> Document:
    """The document of a bucket that has none yet: revision 0, nothing known."""
    document = complete({"version": "1.0", "revision": 0, "lastUpdated": "", **_owner(bucket)})
    for name, section in SECTIONS.items():
        document[section][name] = {"summary": "", "updatedAt": ""}
    return document


def complete(document: Document) -> Document:
    """A copy with the fields that the established format does not have, or that a hand left out."""
    whole = dict(document)
    whole.setdefault("revision", 0)
    for name in ("user", "history"):
        whole.setdefault(name, {})
    for name in ("facts", "archive"):
        whole.setdefault(name, [])
    whole.setdefault("ledger", {})
    return whole


def iso(moment: datetime) -> str:
    """A time as documents write it: UTC, milliseconds, Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(value: object) -> datetime | None:
    """A time of a document, in UTC where it names no zone; None when it is not one."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # no time, or one that its zone moves out of the calendar
        return None


def confidence_of(fact: Fact) -> float:
    """A fact's confidence, between 0 and 1 whatever the file says."""
    value = fact.get("confidence")
    if type(value) is float and 0 <= value <= 1:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        return DEFAULT_CONFIDENCE
    return value


def rank(fact: Fact) -> tuple[float, bool, str]:
    """What decides between facts when there is no room for all: confidence, then corrections, then the newer."""
    created = fact.get("createdAt")
    correction = fact.get("category") == "correction"
    return confidence_of(fact), correction, created if isinstance(created, str) else ""


def summary(document: Document, name: str) -> str:
    """The text of one of the six summaries, empty when there is none."""
    section = document.get(SECTIONS[name])
    entry = section.get(name) if isinstance(section, dict) else None
    text = entry.get("summary") if isinstance(entry, dict) else None
    return text if isinstance(text, str) else ""


def parse(data: bytes, bucket: Bucket) -> Document:
    """Read the bytes of a bucket's document; fields that older writers leave out are added.

    Raises DocumentTooNew for a newer version, DocumentDamaged for all that is not this bucket's document.
    """
    try:
        document = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DocumentDamaged(f"E_DOCUMENT_JSON: a memory document is not JSON at {place}", place) from None
    if not isinstance(document, dict):
        raise wrong("the top level", "an object")
    _check_version(document)
    document = complete({**document, **{name: document.get(name, ours) for name, ours in _owner(bucket).items()}})
    check(document)
    if (document["userId"], document["agentName"]) != bucket:
        raise DocumentDamaged("E_DOCUMENT_OWNER: a memory document belongs to another user or agent", "userId")
    _give_ids(document["facts"])
    return document


def _owner(bucket: Bucket) -> Document:
    return {"userId": bucket.user_id, "agentName": bucket.agent_name}


def _check_version(document: Document) -> None:
    version = document.get("version", "1.0")
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if not found:
        raise wrong("version", 'text such as "1.0"')
    if (int(found[1]), int(found[2])) > VERSION:
        raise DocumentTooNew("E_DOCUMENT_TOO_NEW: a memory document was written by a newer version; upgrade memd")


def _give_ids(facts: list[Fact]) -> None:
    """Give an id to facts that a hand added without one, or with that of the fact they were copied from."""
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
