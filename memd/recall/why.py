"""Why: the origin of a fact, its proof, the facts it replaced, and its state now. Archived facts too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from memd.context import identity_of_id
from memd.errors import FactUnknown
from memd.memory import suspended
from memd.memory.document import Document, Fact, Withheld, archive_of, facts_of, withheld_of
from memd.memory.facts import (
    MANUAL,
    QUOTE_GONE,
    UNKNOWN,
    archive_note,
    archive_reason,
    archived_at,
    category_of,
    confidence_of,
    confirmations_of,
    content_of,
    created_at,
    evidence_of,
    id_of,
    is_archived,
    is_manual,
    is_note,
    last_confirmed_at,
    origin_of,
    replaced_by,
    replaces,
    source_of,
    updated_at,
    with_id,
)
from memd.memory.listing import last_used, status_of
from memd.memory.refused import REASONS as REFUSED
from memd.memory.said.turns import Said
from memd.memory.store.protocol import NO_ACCESSES, Accesses
from memd.printable import printable
from memd.recall.view import details

TURNS_BEFORE, TURNS_AFTER = 2, 1
"""Turns that are shown around a quote."""

MAX_CHARS = 400
"""Characters of a turn that a terminal gets."""

REASONS = {
    "replaced": "replaced by what the user said later",
    "retired": "retired: the user said that it no longer holds",
    "evicted": "evicted: the memory was full",
    "expired": "expired: its time was over",
    "edited": "edited by hand",
    "stale": "stale: not confirmed for long",
    "merged": "merged with others into one fact",
}
"""The archive reasons in words; any other reason is shown as it is."""

WITHHELD = {
    "manual": "a person wrote it, so only a person ends it",
    "too_many_retired": "too many at once; the user's next word on it is followed",
    "too_many_forgotten": "too much to forget at once, so a person decides",
    "unclear_wish": "the user may have asked to forget it, so a person decides",
    "everything": "the user asked to forget everything, so a person decides",
}
"""Why a retirement is withheld, in words; any other reason is shown as it is."""


def why(document: Document, fact_id: str, accesses: Accesses = NO_ACCESSES) -> dict[str, Any]:
    """Everything the document knows about a fact: the newest version, and under `earlier` the versions before it.

    `status`, `lastUsedAt`: as in a list. `state`: active, suspended or archived. `replaced` and `replacedBy` carry the
    contents too, None where the archive no longer has them. `withheld`: the wishes that it ends which memd did not
    follow. Raises FactUnknown.
    """
    active, archived = facts_of(document), archive_of(document)[::-1]
    held = suspended.facts_of(document)
    versions = [fact for fact in chain(active, held, archived) if id_of(fact) == fact_id]
    if not versions:
        raise FactUnknown("E_FACT_ID", "neither the memory nor its archive has a fact with this id", "fact_id")
    newest = versions[0]
    own = {name: value for name, value in _version(newest).items() if name not in ("replacedBy", "withheld")}
    account = {**own, "id": fact_id, "lastUsedAt": last_used(newest, accesses)}
    account["replaced"] = [_named(chain(archived, active), name) for name in replaces(newest)]
    if successor := replaced_by(newest):
        account["replacedBy"] = _named(chain(active, archived), successor)
    if wishes := [
        *(entry for entry in withheld_of(document) if entry.get("fact") == fact_id),
        *(suspended.as_withheld(fact) for fact in held if fact is newest),
    ]:
        account["withheld"] = [_withheld(entry, active) for entry in wishes]
    account["earlier"] = [_version(version) for version in versions[1:]]
    return account


def with_turns(account: dict[str, Any], said: Said) -> dict[str, Any]:
    """The account with the turn of each quote and the turns around it, under `turns`, as far as they are kept."""
    for version in (account, *account["earlier"]):
        version["evidence"] = [_in_its_turn(entry, said) for entry in version["evidence"]]
    return account


def _in_its_turn(evidence: dict[str, Any], said: Said) -> dict[str, Any]:
    entry = {name: value for name, value in evidence.items() if name != "turns"}
    thread, message = str(entry.get("thread")), str(entry.get("message"))
    turn = said.by_id.get(message) or said.by_id.get(identity_of_id(thread, message))
    if turn is None:
        return entry
    around = (*said.before(turn.id, TURNS_BEFORE), turn, *said.after(turn.id, TURNS_AFTER))
    return {**entry, "turns": [{"role": one.role, "text": one.text, "saidAt": one.said_at} for one in around]}


def why_text(account: dict[str, Any]) -> str:
    """The result of `why` as text for a terminal; it may contain square brackets."""
    return "\n".join(_lines(account)) + "\n"


def refused_text(facts: Iterable[Fact]) -> str:
    """Refused facts as text for a terminal; it may contain square brackets."""
    return "\n".join(line for fact in facts for line in _refused(fact))


def _refused(fact: Fact) -> Iterator[str]:
    when, why = (printable(fact.get(name) or "?") for name in ("refusedAt", "refusedWhy"))
    yield f"{when}  {printable(content_of(fact))}"
    share = f" ({confidence_of(fact):.2f})" if why == "low_confidence" else ""
    yield f"  refused as {why}{share}: {REFUSED.get(why, 'reason unknown')}"
    yield from ("  " + line for line in details(fact))
    yield f"  {printable(id_of(fact))}, thread {printable(source_of(fact) or '?')}"
    for entry in evidence_of(fact):
        proven = "message" in entry
        yield from _quote(entry) if proven else [f'  quoted by the model: "{printable(entry.get("quote"))}"']


def _version(fact: Fact) -> dict[str, Any]:
    """One version of a fact: its fields, with those of its origin among them."""
    fields = {name: value for name, value in fact.items() if name not in ("id", "origin", "evidence", "replaces")}
    return {
        "state": "archived" if is_archived(fact) else "suspended" if suspended.WHY in fact else "active",
        **fields,
        "status": status_of(fact),
        **origin_of(fact),
        "confidence": confidence_of(fact),
        "evidence": evidence_of(fact),
    }


def _named(facts: Iterable[Fact], fact_id: str) -> dict[str, Any]:
    """Id and content of another fact, from the first of these facts with the id; content None without one."""
    fact = with_id(facts, fact_id)
    if fact is None:
        return {"id": fact_id, "content": None}
    archival: dict[str, Any] = {name: fact[name] for name in ("archiveReason", "archivedAt") if name in fact}
    return {"id": fact_id, "content": content_of(fact), **archival}


def _withheld(entry: Withheld, active: Iterable[Fact]) -> dict[str, Any]:
    """A withheld wish, with the content of the fact that was to replace this one."""
    wish: dict[str, Any] = {name: entry[name] for name in ("wanted", "why", "at", "source", "note") if name in entry}
    return wish | {"by": _named(active, entry["by"])} if isinstance(entry.get("by"), str) else wish


def _lines(account: dict[str, Any]) -> Iterator[str]:
    yield f"{printable(account['id'])}  {printable(account['content'])}"
    yield from _about(account)
    yield f"  last used {account['lastUsedAt'] or 'never'}"
    for old in account["replaced"]:
        when = f", {printable(archived_at(old))}" if archived_at(old) else ""
        yield f"  replaced {printable(old['id'])}{when}: {_content(old)}"
    if successor := account.get("replacedBy"):
        yield f"  replaced by {printable(successor['id'])}: {_content(successor)}"
    for wish in account.get("withheld", ()):
        yield from _wish(wish)
    for version in account["earlier"]:
        yield f"before: {printable(version['content'])}"
        yield from _about(version)


def _wish(wish: dict[str, Any]) -> Iterator[str]:
    note = f" ({printable(wish['note'])})" if wish.get("note") else ""
    why = WITHHELD.get(wish["why"], printable(wish["why"])) if isinstance(wish.get("why"), str) else "?"
    yield f"  withheld {printable(wish.get('at') or '?')}: to be {printable(wish.get('wanted') or '?')}{note}; {why}"
    if "by" in wish:
        yield f"    in its place {printable(wish['by']['id'])}: {_content(wish['by'])}"


def _about(version: dict[str, Any]) -> Iterator[str]:
    standing = "suspended" if version["state"] == "suspended" else version["status"]
    yield f"  {standing}, {printable(category_of(version))}, confidence {version['confidence']:.2f}"
    source = source_of(version)
    thread = f", thread {printable(source)}" if source not in ("", MANUAL, UNKNOWN) else ""
    yield f"  noted {printable(created_at(version) or 'at an unknown time')} {_origin(version)}{thread}"
    if changed := updated_at(version):
        yield f"  changed {printable(changed)}"
    yield from ("  " + line for line in details(version))
    for entry in version["evidence"]:
        yield from _quote(entry)
        yield from _around(entry)
    if not version["evidence"]:
        yield "  no quote proves it" + (f": {QUOTE_GONE}" if version.get("provenBy") else "")
    if count := confirmations_of(version):
        yield f"  confirmed {count} times, last {printable(last_confirmed_at(version) or '?')}"
    if version["state"] == "archived":
        reason, note = archive_reason(version), archive_note(version)
        noted = f" ({printable(note)})" if note else ""
        yield f"  archived {printable(archived_at(version) or '?')}: {REASONS.get(reason, printable(reason))}{noted}"


def _origin(version: dict[str, Any]) -> str:
    """One clause about where a version comes from."""
    if is_manual(version):
        return "by hand"
    if is_note(version):
        return "by an agent, as a note"
    if version.get("importedFrom"):
        return f"imported from {printable(version['importedFrom'])}"
    if version.get("model"):
        return f"by {printable(version['model'])}, prompt version {printable(version.get('promptVersion') or '?')}"
    return "by an unknown writer"


def _quote(entry: dict[str, Any]) -> Iterator[str]:
    """A quote, its message, and any further fields of the evidence."""
    yield f'  said: "{printable(entry.get("quote"))}"'
    rest = [name for name in entry if name not in ("quote", "thread", "message", "turns")]
    known = [name for name in ("thread", "message", *rest) if entry.get(name) is not None]
    yield "    " + ", ".join(f"{name} {printable(entry[name])}" for name in known)


def _around(entry: dict[str, Any]) -> Iterator[str]:
    """The turns around a quote, each on a line."""
    for turn in entry.get("turns", ()):
        text = printable(turn["text"])
        yield f"    {printable(turn['saidAt'][:10] or '?')} {turn['role']}: {text[:MAX_CHARS]}" + "…" * (
            len(text) > MAX_CHARS
        )


def _content(fact: dict[str, Any]) -> str:
    return printable(fact["content"]) if fact["content"] is not None else "no longer in the archive"
