"""Why: where a fact comes from, what proves it, what it replaced, and what became of it. Archived facts too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memd.errors import FactUnknown
from memd.memory.document import Document, Fact, confidence_of
from memd.memory.facts import is_manual, is_note
from memd.printable import printable

REASONS = {
    "replaced": "replaced by what the user said later",
    "retired": "retired: the user said that it is over",
    "evicted": "evicted: there was no room for it",
    "expired": "expired: its time was over",
    "edited": "edited by hand",
    "stale": "stale: nobody had confirmed it for long",
    "merged": "merged with others into one",
}
"""The archive's reasons in words; one that is not here is shown as it is."""


def why(document: Document, fact_id: str) -> dict[str, Any]:
    """All that the document knows about a fact: the newest version, and under `earlier` those before it.

    `state`: active or archived. `replaced` and `replacedBy` carry the contents too, None where the archive has lost
    them. Raises FactUnknown.
    """
    archive: list[Fact] = document.get("archive", [])
    versions = _with_id(document.get("facts", ()), fact_id) + _with_id(archive, fact_id)[::-1]
    if not versions:
        raise FactUnknown("E_FACT_ID", "neither the memory nor its archive has a fact with this id", "fact_id")
    found = {**_version(versions[0]), "id": fact_id}
    replaced = versions[0].get("replaces")
    active, archived = document.get("facts", []), archive[::-1]
    found["replaced"] = [_named([*archived, *active], one) for one in (replaced if isinstance(replaced, list) else ())]
    if isinstance(versions[0].get("replacedBy"), str):
        found["replacedBy"] = _named([*active, *archived], versions[0]["replacedBy"])
    found["earlier"] = [_version(version) for version in versions[1:]]
    return found


def why_text(found: dict[str, Any]) -> str:
    """What `why` answers, for people at a terminal; it may hold square brackets."""
    return "\n".join(_lines(found)) + "\n"


def how(fact: dict[str, Any]) -> str:
    """One clause about where a fact comes from."""
    if is_manual(fact):
        return "by hand"
    if is_note(fact):
        return "by an agent, as a note"
    if fact.get("importedFrom"):
        return f"imported from {printable(fact['importedFrom'])}"
    if fact.get("model"):
        return f"by {printable(fact['model'])}, prompt version {printable(fact.get('promptVersion') or '?')}"
    return "by what, is not recorded"


def _version(fact: Fact) -> dict[str, Any]:
    """One version of a fact: its fields, with its origin among them."""
    origin = fact.get("origin")
    evidence = fact.get("evidence")
    fields = {name: value for name, value in fact.items() if name not in ("id", "origin", "evidence", "replaces")}
    return {
        "state": "archived" if "archivedAt" in fact or "archiveReason" in fact else "active",
        **fields,
        **(origin if isinstance(origin, dict) else {}),
        "confidence": confidence_of(fact),
        "evidence": [piece for piece in evidence if isinstance(piece, dict)] if isinstance(evidence, list) else [],
    }


def _with_id(facts: Iterable[Fact], fact_id: str) -> list[Fact]:
    return [fact for fact in facts if fact.get("id") == fact_id]


def _named(facts: Iterable[Fact], fact_id: object) -> dict[str, Any]:
    """Another fact by its id, as far as it is known; the first that there is of it."""
    for fact in facts:
        if fact.get("id") == fact_id:
            about: dict[str, Any] = {name: fact.get(name) for name in ("archiveReason", "archivedAt") if name in fact}
            return {"id": fact_id, "content": fact["content"], **about}
    return {"id": fact_id, "content": None}


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"{printable(found['id'])}  {printable(found['content'])}"
    yield from _about(found)
    for one in found["replaced"]:
        when = f", {printable(one['archivedAt'])}" if one.get("archivedAt") else ""
        yield f"  replaced {printable(one['id'])}{when}: {_content(one)}"
    if found.get("replacedBy"):
        yield f"  its place took {printable(found['replacedBy']['id'])}: {_content(found['replacedBy'])}"
    for version in found["earlier"]:
        yield f"before: {printable(version['content'])}"
        yield from _about(version)


def _about(version: dict[str, Any]) -> Iterator[str]:
    category = printable(version.get("category") or "context")
    yield f"  {version['state']}, {category}, confidence {version['confidence']:.2f}"
    source = version.get("source")
    thread = f", thread {printable(source)}" if source not in (None, "", "manual", "unknown") else ""
    yield f"  noted {printable(version.get('createdAt') or 'at an unknown time')} {how(version)}{thread}"
    if version.get("updatedAt"):
        yield f"  changed {printable(version['updatedAt'])}"
    subject = version.get("subject")
    if isinstance(subject, dict):
        yield f"  about {printable(subject.get('person'))} ({printable(subject.get('relationship'))})"
    for name, label in (("sourceError", "avoid"), ("backstory", "backstory"), ("validUntil", "valid until")):
        if version.get(name):
            yield f"  {label}: {printable(version[name])}"
    for piece in version["evidence"]:
        yield from _quote(piece)
    if not version["evidence"]:
        yield "  no quote proves it"
    if version.get("confirmations"):
        last = printable(version.get("lastConfirmedAt") or "?")
        yield f"  confirmed {printable(version['confirmations'])} times, last {last}"
    if version["state"] == "archived":
        reason = version.get("archiveReason")
        said = f" ({printable(version['archiveNote'])})" if version.get("archiveNote") else ""
        yield f"  archived {printable(version.get('archivedAt'))}: {REASONS.get(str(reason), printable(reason))}{said}"


def _quote(piece: dict[str, Any]) -> Iterator[str]:
    """A quote, where it stands, and whatever else is noted of it."""
    yield f'  said: "{printable(piece.get("quote"))}"'
    rest = [name for name in piece if name not in ("quote", "thread", "message")]
    known = [name for name in ("thread", "message", *rest) if piece.get(name) is not None]
    yield "    " + ", ".join(f"{name} {printable(piece[name])}" for name in known)


def _content(one: dict[str, Any]) -> str:
    return printable(one["content"]) if one["content"] is not None else "not kept any more"
