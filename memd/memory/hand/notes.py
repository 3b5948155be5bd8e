"""Notes: what an agent writes into a memory by a tool. Pure functions: nothing is mutated, refusals raise Rejected.

A tool's argument is a model's word, not the user's: a note has source `agent`, no evidence, less confidence than what
is proven, and never the rank of a correction. It displaces nothing. What people wrote is out of an agent's reach, and
what it takes away goes to the archive, so much a day (docs/decisions/0020-a-note-is-not-the-users-word.md).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NoReturn

from memd.config import ApplySettings
from memd.errors import Rejected
from memd.extraction.update import NewFact
from memd.memory import archive, removed
from memd.memory.apply import MAX_SUMMARY_CHARS
from memd.memory.document import DEFAULT_CONFIDENCE, SECTIONS, Document, Fact, complete, iso, summary
from memd.memory.facts import AGENT, aside, is_manual, is_note, new_id
from memd.memory.gates.refusal import refusal
from memd.memory.hand.edits import DEFAULT_CATEGORY, PROVEN_ONLY, Edited, checked_category, found
from memd.memory.text import normal_key, one_line
from memd.push.redaction import redact

SHARE = 0.2
"""The part of a memory that may be notes: most of it rests on what the user said."""

CHANGES_A_DAY = 20
"""Facts that agents may change or retire in one memory in 24 hours; a tenth of what the archive holds by default."""


def save(document: Document, content: str, category: str | None, now: datetime, settings: ApplySettings) -> Edited:
    """Add a note; where a fact says the same already nothing changes. What a person removed does not come back."""
    document = complete(document)
    clean = _checked(content, settings, "content")
    chosen = _category(category, settings)
    known = _saying(document, clean)
    if known is not None:
        return Edited(document, known["id"])
    _check_removed(document, clean)
    facts = document["facts"]
    most = int(SHARE * settings.max_facts)
    if sum(map(is_note, facts)) >= most:
        _refuse("E_NOTES_FULL", f"agents may keep {most} notes in a memory; change or delete one", "content")
    if len(facts) >= settings.max_facts:
        _refuse("E_MEMORY_FULL", f"the memory has its {settings.max_facts} facts; a note displaces none", "content")
    used = {fact.get("id") for fact in (*facts, *document["archive"])}
    fact_id = new_id(document, document["revision"] + 1, clean, 0, used)
    fact = {
        "id": fact_id,
        "content": clean,
        "category": chosen or DEFAULT_CATEGORY,
        "confidence": _confidence(settings),
        "createdAt": iso(now),
        "source": AGENT,
    }
    return Edited(_next({**document, "facts": [*facts, fact]}, now), fact_id)


def update(
    document: Document, fact_id: str, content: str, category: str | None, now: datetime, settings: ApplySettings
) -> Edited:
    """Give a fact other words; it becomes a note, whatever it was, and the archive keeps what it was.

    Raises Rejected, FactUnknown.
    """
    document = complete(document)
    fact = _reachable(document, fact_id)
    clean = _checked(content, settings, "content")
    chosen = _category(category, settings) or fact.get("category")
    if chosen == "correction":
        chosen = DEFAULT_CATEGORY
    if clean == fact["content"] and chosen == fact.get("category", DEFAULT_CATEGORY):
        return Edited(document, fact_id)
    other = _saying(document, clean)
    if other is not None and other["id"] != fact_id:
        _refuse("E_FACT_KNOWN", f"another fact says this already: {other['id']}", "content")
    _check_removed(document, clean)
    kept = {name: value for name, value in fact.items() if name not in PROVEN_ONLY}
    changed = {"content": clean, "category": chosen, "confidence": _confidence(settings), "source": AGENT}
    new = {**kept, **changed, "updatedAt": iso(now)}
    facts = [new if one is fact else one for one in document["facts"]]
    return _taken_away(document, fact, facts, "edited", "", now, settings)


def retire(document: Document, fact_id: str, reason: str, now: datetime, settings: ApplySettings) -> Edited:
    """Archive a fact, with the agent's reason. Raises Rejected, FactUnknown."""
    document = complete(document)
    fact = _reachable(document, fact_id)
    facts = [one for one in document["facts"] if one is not fact]
    return _taken_away(document, fact, facts, "retired", redact(aside(reason))[0], now, settings)


def summarize(document: Document, name: str, text: str, now: datetime, settings: ApplySettings) -> Edited:
    """Rewrite one of the six summaries, or empty it; these are a model's words whoever writes them. Raises Rejected."""
    document = complete(document)
    if name not in SECTIONS:
        _refuse("E_SUMMARY", f"a memory has the summaries {', '.join(SECTIONS)}", "summary")
    clean = _checked(text, settings, "summary") if one_line(text) else ""
    if len(clean) > MAX_SUMMARY_CHARS:
        _refuse("E_NOTE_TOO_LONG", f"a summary has at most {MAX_SUMMARY_CHARS} characters", "summary")
    if clean == summary(document, name):
        return Edited(document, "")
    section = {**document[SECTIONS[name]], name: {"summary": clean, "updatedAt": iso(now)}}
    return Edited(_next({**document, SECTIONS[name]: section}, now), "")


def _taken_away(
    document: Document,
    fact: Fact,
    facts: list[Fact],
    why: archive.Reason,
    note: str,
    now: datetime,
    settings: ApplySettings,
) -> Edited:
    """The document with these facts, and in its archive what the fact was."""
    most = min(CHANGES_A_DAY, settings.archive_cap)
    yesterday = iso(now - timedelta(days=1))
    lately = sum(_was_taken_by_an_agent(entry, yesterday) for entry in document["archive"])
    if lately >= most:
        _refuse("E_CHANGES_A_DAY", f"agents may change or delete {most} facts of a memory in a day", "fact_id")
    old = {**archive.entry(fact, why, iso(now), note=note), "archivedBy": AGENT}
    entries = archive.extend(document["archive"], [old], settings.archive_cap)
    return Edited(_next({**document, "facts": facts, "archive": entries}, now), fact["id"])


def _was_taken_by_an_agent(entry: Fact, since: str) -> bool:
    time: Any = entry.get("archivedAt")
    return entry.get("archivedBy") == AGENT and isinstance(time, str) and time > since


def _reachable(document: Document, fact_id: str) -> Fact:
    fact = found(document, fact_id)
    if is_manual(fact):
        _refuse("E_FACT_BY_HAND", "a person wrote this fact; only a person may change it", "fact_id")
    return fact


def _checked(text: str, settings: ApplySettings, field: str) -> str:
    """A text past the gates that a model's facts pass, all but the one for evidence. Raises Rejected."""
    clean = one_line(text)
    piece = NewFact(text, DEFAULT_CATEGORY, 1.0, "user", "durable", "descriptive", evidence=())
    if reason := refusal(piece, clean, settings):
        limits = f" ({settings.fact_min_chars} to {settings.fact_max_chars} characters)"
        why = f"{reason.replace('_', ' ')}{limits if reason.startswith('too_') else ''}"
        _refuse(f"E_NOTE_{reason.upper()}", f"this may not be remembered: {why}", field)
    return clean


def _category(category: str | None, settings: ApplySettings) -> str | None:
    chosen = checked_category(category, settings)
    if chosen == "correction":  # corrections go into the prompt first, with a budget of their own
        _refuse("E_CATEGORY", "only what the user said can be a correction; name another category", "category")
    return chosen


def _check_removed(document: Document, content: str) -> None:
    if removed.refusal(removed.hashes(document), content):
        _refuse("E_FACT_REMOVED", "a person removed this; only a person may add it again", "content")


def _confidence(settings: ApplySettings) -> float:
    return min(DEFAULT_CONFIDENCE, settings.confidence_threshold)


def _saying(document: Document, content: str) -> Fact | None:
    key = normal_key(content)
    return next((fact for fact in document["facts"] if normal_key(fact["content"]) == key), None)


def _next(document: Document, now: datetime) -> Document:
    return {**document, "revision": document["revision"] + 1, "lastUpdated": iso(now)}


def _refuse(code: str, sentence: str, field: str) -> NoReturn:
    raise Rejected(code, sentence, field)
