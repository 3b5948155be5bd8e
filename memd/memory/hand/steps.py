"""The steps that edits, notes and imports share. Pure functions: nothing is mutated, refusals raise Rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from memd.config import ApplySettings
from memd.errors import FactUnknown, Rejected
from memd.memory.categories import category_named
from memd.memory.document import Document, Fact, archive_of, facts_of, revised, revision_of
from memd.memory.duplicates import Contents
from memd.memory.fact_ids import new_id
from memd.memory.facts import (
    DEFAULT_CATEGORY,
    USER_SCOPE,
    Scope,
    archive_with,
    id_of,
    ids_in_use,
    person_of,
    with_id,
)
from memd.memory.gates.refusal import hand_refusal, sentence_refusal
from memd.memory.new_facts import base_fact
from memd.memory.said.changes import SaidChange
from memd.memory.scoped import all_facts, home_of, of_scope, with_facts_of
from memd.memory.text import one_line

PROVEN_ONLY = ("evidence", "provenBy", "origin", "confirmations", "lastConfirmedAt", "saidAt", "saidOn", "lastSaid")
"""Fields about a fact's old words; they go to the archive with them."""


_SENTENCES = {
    "too_short": "{field} must have at least {settings.fact_min_chars} characters",
    "too_long": "{field} must have at most {settings.fact_max_chars} characters",
    "secret": "{field} contains a secret (a key, token, password or card number); secrets are not remembered",
    "upload_event": "{field} only says that a file was uploaded; that holds for one session and is not remembered",
    "instruction": "{field} instructs or addresses the assistant; describe what the user is, does or likes instead",
    "markup": "{field} contains tags, links or images as markup, which a model could mistake for the prompt's own",
}
"""The message of each gate for a person or an agent."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes a fact by hand: the source it gets, and its confidence."""

    source: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Edited:
    """The document after an edit, of the same revision when nothing changed, and the id of the fact."""

    document: Document
    fact_id: str
    said: SaidChange | None = None


def existing(document: Document, fact_id: str) -> Fact:
    """The fact with this id. Raises FactUnknown, Rejected."""
    check_id(fact_id)
    fact = with_id(all_facts(document), fact_id)
    if fact is not None:
        return fact
    if with_id(archive_of(document), fact_id) is not None:
        raise FactUnknown("E_FACT_ARCHIVED", "this fact is in the archive; it no longer holds", "fact_id")
    raise unknown_fact()


def saying(document: Document, content: str, person: str = "", scope: Scope = USER_SCOPE) -> str | None:
    """The id of a fact of this scope that says the same about this person (folded; "": the user), or None."""
    return Contents(of_scope(document, scope)).same(content, person)


def check_unsaid(document: Document, content: str, fact: Fact) -> None:
    """Raise Rejected when a fact other than `fact`, of its scope, says the same about the same person."""
    same = saying(document, content, person_of(fact), home_of(document, fact))
    if same not in (None, id_of(fact)):
        refuse("E_FACT_KNOWN", f"another fact says this already: {same}", "content")


def checked_category(category: object, settings: ApplySettings, content: str = "") -> str | None:
    """A category of the settings, or an alias of it, whatever its case; None stays None. Raises Rejected."""
    if category is None:
        return None
    found = category_named(category, settings.categories, content) if isinstance(category, str) else None
    if found is None:
        refuse("E_CATEGORY", f"category must be one of {', '.join(settings.categories)}", "category")
    return found


def with_new_fact(document: Document, content: str, category: str | None, author: Author, now: str) -> Edited:
    """The document with a new fact at its end."""
    fact_id = new_id(document, revision_of(document) + 1, content, 0, ids_in_use(document))
    fact = base_fact(fact_id, content, category or DEFAULT_CATEGORY, author.confidence, now, author.source)
    return Edited(revised(document, now, facts=[*facts_of(document), fact]), fact_id)


def checked_text(text: object, settings: ApplySettings, code: str, field: str = "content") -> str:
    """Put a text on one line and check it by the gates. Raises Rejected with a code that starts with `code`."""
    return _checked(text, settings, code, field, sentence_refusal)


def _checked(
    text: object,
    settings: ApplySettings,
    code: str,
    field: str,
    gate: Callable[[str, str, ApplySettings], str | None],
) -> str:
    if not isinstance(text, str):
        refuse(f"{code}_TYPE", f"{field} must be text", field)
    clean = one_line(text)
    if reason := gate(text, clean, settings):
        sentence = _SENTENCES.get(reason, "{field} cannot be remembered")
        refuse(f"{code}_{reason.upper()}", sentence.format(field=field, settings=settings), field)
    return clean


def checked_by_hand(text: object, settings: ApplySettings) -> str:
    """The same for what a person writes, who may permit and order what they like. Raises Rejected."""
    return _checked(text, settings, "E_FACT", "content", hand_refusal)


def reworded(fact: Fact, content: str, category: str | None, author: Author, now: str) -> Fact:
    """The fact in this author's words. `category` None keeps its own."""
    changed: dict[str, Any] = {"content": content, "confidence": author.confidence, "source": author.source}
    if category is not None:
        changed["category"] = category
    return {**fact, **changed, "updatedAt": now}


def without_proof(fact: Fact) -> Fact:
    """The fact without the fields that prove its words."""
    return {name: value for name, value in fact.items() if name not in PROVEN_ONLY}


def superseded(
    document: Document, fact: Fact, new: Fact | None, entry: Fact, now: str, settings: ApplySettings
) -> Edited:
    """The document with `new` in place of a fact (None: nothing), and with `entry` at the end of its archive."""
    scope = home_of(document, fact)
    facts = [new if other is fact else other for other in of_scope(document, scope)]
    left = with_facts_of(document, scope, [other for other in facts if other is not None])
    archive = archive_with(archive_of(document), [entry], settings.archive_cap)
    return Edited(revised(left, now, archive=archive), id_of(fact))


def check_id(fact_id: object) -> None:
    """Raise Rejected for an id that is not text."""
    if not isinstance(fact_id, str):
        refuse("E_FACT_ID_TYPE", "fact_id must be text", "fact_id")


def unknown_fact() -> FactUnknown:
    """The error for an id that no fact has."""
    return FactUnknown("E_FACT_ID", "the memory has no fact with this id", "fact_id")


def refuse(code: str, sentence: str, field: str) -> NoReturn:
    """Raise Rejected."""
    raise Rejected(code, sentence, field)
