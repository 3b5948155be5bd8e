"""Edits: what a hand changes in a document. Pure functions: nothing is mutated, what is refused raises Rejected.

An edited fact is a person's word: source `manual`, confidence 1.0. The model may not touch it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from memd.config import ApplySettings
from memd.errors import FactUnknown, Rejected
from memd.memory import archive, removed
from memd.memory.document import Document, Fact, complete, iso
from memd.memory.facts import MANUAL, is_manual, new_id
from memd.memory.gates.orders import refused_as
from memd.memory.gates.refusal import content_refusal
from memd.memory.text import normal_key, one_line

CONFIDENCE = 1.0
DEFAULT_CATEGORY = "context"

_SENTENCES = {
    "too_short": "content must have at least {settings.fact_min_chars} characters",
    "too_long": "content must have at most {settings.fact_max_chars} characters",
    "secret": "content holds a secret (a key, token, password or card number); secrets are not remembered",
    "upload_event": "content only says that a file was uploaded; that is true for one session and not remembered",
    "instruction": "content orders, permits or addresses the assistant; say what the user is, does or likes instead",
    "markup": "content holds tags, links or images written as markup, which a prompt could take for its own",
}
"""What a person is told of the gate they met."""

PROVEN_ONLY = ("evidence", "origin", "confirmations", "lastConfirmedAt")
"""Fields that speak of a fact's old words: they go with these to the archive."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The document after an edit, of the same revision when nothing had to change; and the id of the fact."""

    document: Document
    fact_id: str


def add(document: Document, content: str, category: str | None, now: datetime, settings: ApplySettings) -> Edited:
    """Add a fact; one that says the same becomes a person's word. What was removed may come back this way.

    Raises Rejected.
    """
    document = complete(document)
    clean = checked_content(content, settings)
    chosen = checked_category(category, settings)
    known = _saying(document, clean)
    if known is not None:
        return _rewritten(document, known, clean, chosen or known.get("category"), now, settings)
    facts = document["facts"]
    if sum(map(is_manual, facts)) >= settings.max_facts:
        _refuse("E_MEMORY_FULL", f"{settings.max_facts} facts were added by hand already; remove one first", "content")
    used = {fact.get("id") for fact in (*facts, *document["archive"])}
    fact_id = new_id(document, document["revision"] + 1, clean, 0, used)
    fact = {
        "id": fact_id,
        "content": clean,
        "category": chosen or DEFAULT_CATEGORY,
        "confidence": CONFIDENCE,
        "createdAt": iso(now),
        "source": MANUAL,
    }
    return Edited(_next({**removed.lifted(document, clean), "facts": [*facts, fact]}, now), fact_id)


def edit(
    document: Document,
    fact_id: str,
    content: str | None,
    category: str | None,
    now: datetime,
    settings: ApplySettings,
) -> Edited:
    """Change a fact's words, its category, or both; what it was goes to the archive. Raises Rejected, FactUnknown."""
    document = complete(document)
    fact = found(document, fact_id)
    if content is None and category is None:
        _refuse("E_EDIT_EMPTY", "an edit names a content, a category, or both", "content")
    clean = fact["content"] if content is None else checked_content(content, settings)
    other = _saying(document, clean) if content is not None else None
    if other is not None and other["id"] != fact_id:
        _refuse("E_FACT_KNOWN", f"another fact says this already: {other['id']}", "content")
    return _rewritten(document, fact, clean, checked_category(category, settings), now, settings)


def remove(document: Document, fact_id: str, now: datetime) -> Edited:
    """Take a fact out with all that the archive has of it, and leave a tombstone. Raises Rejected, FactUnknown.

    Facts that say the same go along, so that what was removed is gone.
    """
    document = complete(document)
    _checked_id(fact_id)
    named = [fact for fact in document["facts"] if fact.get("id") == fact_id]
    keys = {normal_key(fact["content"]) for fact in named}
    if not named:
        named = [entry for entry in document["archive"] if entry.get("id") == fact_id]
        keys = {normal_key(entry["content"]) for entry in named} - {normal_key(f["content"]) for f in document["facts"]}
    if not named:
        raise _unknown()
    gone, facts = _parted(document["facts"], fact_id, keys)
    old, entries = _parted(document["archive"], fact_id, keys)
    alive = {normal_key(fact["content"]) for fact in facts}
    dead = [fact for fact in (*gone, *old) if normal_key(fact["content"]) not in alive]
    fields = {"facts": facts, "archive": entries, removed.FIELD: removed.buried(document, dead, iso(now))}
    return Edited(_next({**document, **fields}, now), fact_id)


def found(document: Document, fact_id: str) -> Fact:
    """The fact with this id. Raises FactUnknown, Rejected."""
    _checked_id(fact_id)
    fact = with_id(document.get("facts", ()), fact_id)
    if fact is not None:
        return fact
    if with_id(document.get("archive", ()), fact_id) is not None:
        raise FactUnknown("E_FACT_ARCHIVED", "this fact is in the archive, it does not hold any more", "fact_id")
    raise _unknown()


def checked_content(content: object, settings: ApplySettings) -> str:
    """A fact's sentence as it is stored: on one line, and past the gates. Raises Rejected."""
    if not isinstance(content, str):
        _refuse("E_FACT_TYPE", "content must be text", "content")
    clean = one_line(content)
    # What stood there before invisible characters were taken out counts as well.
    reason = content_refusal(clean, settings) or refused_as(content)
    if reason:
        sentence = _SENTENCES.get(reason, "content is nothing that may be remembered")
        _refuse(f"E_FACT_{reason.upper()}", sentence.format(settings=settings), "content")
    return clean


def checked_category(category: object, settings: ApplySettings) -> str | None:
    """A category of the settings, whatever its case; None stays None. Raises Rejected."""
    if category is None:
        return None
    clean = one_line(category).casefold() if isinstance(category, str) else None
    if clean not in settings.categories:
        _refuse("E_CATEGORY", f"category must be one of {', '.join(settings.categories)}", "category")
    return clean


def _rewritten(
    document: Document, fact: Fact, content: str, category: str | None, now: datetime, settings: ApplySettings
) -> Edited:
    changed: dict[str, Any] = {"content": content, "confidence": CONFIDENCE, "source": MANUAL}
    if category is not None:
        changed["category"] = category
    if all(fact.get(name) == value for name, value in changed.items()):
        return Edited(document, fact["id"])
    kept = fact
    if content != fact["content"]:
        kept = {name: value for name, value in fact.items() if name not in PROVEN_ONLY}
    new = {**kept, **changed, "updatedAt": iso(now)}
    old = archive.entry(fact, "edited", iso(now))
    fields = {
        "facts": [new if one is fact else one for one in document["facts"]],
        "archive": archive.extend(document["archive"], [old], settings.archive_cap),
    }
    return Edited(_next({**removed.lifted(document, content), **fields}, now), fact["id"])


def _parted(entries: list[Fact], fact_id: str, keys: set[str]) -> tuple[list[Fact], list[Fact]]:
    """What is of this fact or says the same, and the rest."""
    gone = [entry for entry in entries if entry.get("id") == fact_id or normal_key(entry["content"]) in keys]
    taken = set(map(id, gone))
    return gone, [entry for entry in entries if id(entry) not in taken]


def _saying(document: Document, content: str) -> Fact | None:
    """The fact about the user that says the same."""
    key = normal_key(content)
    same = (fact for fact in document["facts"] if not fact.get("subject") and normal_key(fact["content"]) == key)
    return next(same, None)


def _next(document: Document, now: datetime) -> Document:
    return {**document, "revision": document["revision"] + 1, "lastUpdated": iso(now)}


def _checked_id(fact_id: object) -> str:
    if not isinstance(fact_id, str):
        _refuse("E_FACT_ID_TYPE", "fact_id must be text", "fact_id")
    return fact_id


def with_id(entries: Iterable[Fact], fact_id: str) -> Fact | None:
    """The first of them with this id."""
    return next((entry for entry in entries if entry.get("id") == fact_id), None)


def _unknown() -> FactUnknown:
    return FactUnknown("E_FACT_ID", "the memory has no fact with this id", "fact_id")


def _refuse(code: str, sentence: str, field: str) -> NoReturn:
    raise Rejected(code, sentence, field)
