"""The memory document: its fields, read through the functions here; `facts` reads the fields of one fact.

The established `memory.json` (version "1.0") with optional fields added: `revision`, `userId`, `agentName`, `archive`,
`ledger`, `ledgerFormer`, `ledgerFormerRules`, `removed`, `withheld`, `suspended`, `doubtful`, `refused`, `offRecord`,
`said`, `scoped`, `outbox`, `profile`, `profiledAt`. A project's document has `projectId`, `app`, `members` and `grave`
in place of an owner.
Unknown fields are carried along untouched. Documents are never changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from memd.context import Bucket
from memd.push.times import moment

Document = dict[str, Any]
Fact = dict[str, Any]
Summary = dict[str, Any]
Tombstone = dict[str, Any]
"""A fact that a person removed: `hash`, `removedAt`, `threads`."""

Withheld = dict[str, Any]
"""A retirement that is withheld: `fact`, `wanted` (archive reason), `why`, `at`, `source`.

It may have a `note`, `by` (the id of the successor) and `proofs` (identities of the messages that say so).
"""


class SaidFile(NamedTuple):
    """The file of the said layer, beside the document: its name ("" without one), and how many of its bytes count.

    `turns`: how many turns they hold. `since`: when the oldest of them arrived (ISO 8601; "" when not known). `gates`:
    the lowest version of the gates that judged one of them.
    """

    file: str = ""
    bytes: int = 0
    turns: int = 0
    since: str = ""
    gates: int = 0


SAID_FILE = re.compile(r"said-[0-9a-f]{16}\.jsonl")
"""The names of such files."""

FormerField = Literal["ledgerFormer", "ledgerFormerRules"]

SECTIONS = {
    "workContext": "user",
    "personalContext": "user",
    "topOfMind": "user",
    "recentMonths": "history",
    "earlierContext": "history",
    "longTermBackground": "history",
}
"""The six summaries, and the section that holds each."""

MAX_VERSIONS = 10
"""Earlier versions of each summary that a document keeps; the oldest goes first."""


def empty_document(bucket: Bucket) -> Document:
    """The document of a bucket that has none yet: revision 0, no facts, empty summaries."""
    document = complete({"version": "1.0", "revision": 0, "lastUpdated": "", **owner_fields(bucket)})
    for name, section in SECTIONS.items():
        document[section][name] = {"summary": "", "updatedAt": ""}
    return document


def complete(document: Document) -> Document:
    """A copy that has every field that memd relies on; the established format and edits by hand leave some out.

    `withheld` was called `quarantine` before.
    """
    whole = dict(document)
    if "quarantine" in whole:
        former = whole.pop("quarantine")
        whole.setdefault("withheld", former)
    whole.setdefault("revision", 0)
    for name in ("user", "history"):
        whole.setdefault(name, {})
    for name in ("facts", "archive"):
        whole.setdefault(name, [])
    whole.setdefault("ledger", {})
    return whole


def revised(document: Document, now: str, **fields: Any) -> Document:
    """The next revision of a document, with these fields replaced."""
    return {**document, **fields, "revision": revision_of(document) + 1, "lastUpdated": now}


def owner_fields(bucket: Bucket) -> Document:
    """The fields that say whose document it is."""
    if bucket.project_id:
        return {"projectId": bucket.project_id}
    return {"userId": bucket.user_id, "agentName": bucket.agent_name}


def project_of(document: Document) -> str:
    """The project's id; "" for a user's document."""
    return str(document.get("projectId") or "")


def user_of(document: Document) -> str:
    """The user's id; "" for the store that all users share, and for a document without an owner."""
    return str(document.get("userId") or "")


def agent_of(document: Document) -> str:
    """The agent's name; "" for the user's own memory."""
    return str(document.get("agentName") or "")


def revision_of(document: Document) -> int:
    """How often the document was written."""
    revision: int = document.get("revision", 0)
    return revision


def saved_at(document: Document) -> str:
    """When it was last written; "" when never."""
    return str(document.get("lastUpdated") or "")


def facts_of(document: Document) -> Sequence[Fact]:
    """The facts, oldest first."""
    facts: Sequence[Fact] = document.get("facts", [])
    return facts


def archive_of(document: Document) -> list[Fact]:
    """The archive: facts that were replaced, retired, edited or evicted, the latest last."""
    archive: list[Fact] = document.get("archive", [])
    return archive


def ledger_of(document: Document) -> dict[str, list[str]]:
    """The identities of the messages already applied, by thread, the thread applied longest ago first."""
    ledger: dict[str, list[str]] = document.get("ledger", {})
    return ledger


def former_marks_of(document: Document, field: FormerField) -> dict[str, str] | None:
    """By thread, the last identity that an older version recorded; None: all are such.

    `ledgerFormer`: a version without the namespaces of apps; `ledgerFormerRules`: one with former rules of filtering.
    """
    marks = document.get(field)
    return marks if isinstance(marks, dict) else None


def tombstones_of(document: Document) -> list[Tombstone]:
    """The tombstones of the facts that a person removed, oldest first."""
    tombstones: list[Tombstone] = document.get("removed", [])
    return tombstones


def withheld_of(document: Document) -> list[Withheld]:
    """The retirements that are withheld; entries that name no fact are skipped."""
    entries = document.get("withheld")
    wishes = (entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()
    return [entry for entry in wishes if isinstance(entry.get("fact"), str)]


def said_file_of(document: Document) -> SaidFile:
    """The file of the said layer; one without a name when there is none, or when the field was broken by hand."""
    field = document.get("said")
    name = field.get("file") if isinstance(field, dict) else None
    if not isinstance(field, dict) or not isinstance(name, str) or not SAID_FILE.fullmatch(name):
        return SaidFile()
    size, turns, gates = (
        value if type(value := field.get(key)) is int and value >= 0 else 0 for key in ("bytes", "turns", "gates")
    )
    since = field.get("since")
    return SaidFile(name, size, turns, since if isinstance(since, str) else "", gates)


def with_said_file(document: Document, said: SaidFile) -> Document:
    """A copy that names this file of the said layer; none when it has no name."""
    if said.file:
        return {**document, "said": said._asdict()}
    return {name: value for name, value in document.items() if name != "said"}


def summary(document: Document, name: str) -> str:
    """The text of one of the six summaries; "" when there is none."""
    text = summary_entry(document, name).get("summary")
    return text if isinstance(text, str) else ""


def summary_entry(document: Document, name: str) -> Summary:
    """One of the six summaries with its time: `summary`, `updatedAt`; empty when there is none."""
    section = document.get(SECTIONS[name])
    entry = section.get(name) if isinstance(section, dict) else None
    return entry if isinstance(entry, dict) else {}


def summary_written_at(document: Document, name: str) -> datetime | None:
    """When a summary was last rewritten; None when that is not known."""
    return moment(summary_entry(document, name).get("updatedAt"))


def summary_versions(document: Document, name: str) -> list[Summary]:
    """The earlier versions of a summary, oldest first: `summary`, `updatedAt`. Skips entries that are no objects."""
    versions = summary_entry(document, name).get("versions")
    return [entry for entry in versions if isinstance(entry, dict)] if isinstance(versions, list) else []


def summaries_of(document: Document) -> Iterator[tuple[str, str]]:
    """The names and texts of the summaries that are not empty."""
    return ((name, text) for name in SECTIONS if (text := summary(document, name)))


def with_summary(
    document: Document, name: str, text: str, now: str, last_said: dict[str, Any] | None = None
) -> Document:
    """A copy in which one summary has this text; the text before it becomes the latest of its earlier versions.

    `last_said`: when the newest of the words behind it were said.
    """
    entry: Summary = {"summary": text, "updatedAt": now, **({"lastSaid": last_said} if last_said else {})}
    versions, before = summary_versions(document, name), summary_entry(document, name)
    if summary(document, name) not in {"", text}:
        versions = [*versions, {field: value for field, value in before.items() if field != "versions"}]
    return with_summary_entry(document, name, {**entry, "versions": versions[-MAX_VERSIONS:]} if versions else entry)


def with_summary_entry(document: Document, name: str, entry: Summary) -> Document:
    """A copy with this entry in place of one of the six summaries."""
    section = SECTIONS[name]
    return {**document, section: {**document[section], name: entry}}
