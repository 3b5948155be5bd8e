"""New facts as the document keeps them: their fields and their ids."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memd.config import ApplySettings
from memd.context import digest
from memd.extraction.update import NewFact
from memd.memory.document import Document, Fact, iso
from memd.memory.text import fold, one_line

MAX_ASIDE_CHARS = 500
"""Characters of what stands beside a fact: what was wrong, circumstance, a person, a relationship."""


MANUAL = "manual"
"""The source of facts that a person wrote."""

AGENT = "agent"
"""The source of notes: facts that an agent wrote by a tool."""

EXPLICIT_CONFIDENCE = 0.95
"""Least confidence of a correction that the user made in so many words."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an update comes from. `now` is aware of its zone; all times written are this one."""

    thread_id: str
    now: datetime
    model: str
    prompt_version: str

    @property
    def source(self) -> str:
        """What facts name as their source: the thread; one that is called as another source is told apart from it."""
        return f"thread:{self.thread_id}" if self.thread_id in {MANUAL, AGENT, "unknown"} else self.thread_id


def new_fact(
    fact_id: str,
    wanted: NewFact,
    content: str,
    evidence: list[dict[str, Any]],
    origin: Origin,
    settings: ApplySettings,
) -> Fact:
    """A fact as the document keeps it: the established fields first, then what is known."""
    category = one_line(wanted.category).casefold()
    fact: Fact = {
        "id": fact_id,
        "content": content,
        "category": category if category in settings.categories else "context",
        "confidence": wanted.confidence,
        "createdAt": iso(origin.now),
        "source": origin.source,
    }
    if wanted.source_error and (error := aside(wanted.source_error)):
        fact["sourceError"] = error
    fact["evidence"] = evidence
    if wanted.subject and (person := aside(wanted.subject.person)):
        fact["subject"] = {"person": person, "relationship": aside(wanted.subject.relationship)}
    if wanted.backstory and (backstory := aside(wanted.backstory)):
        fact["backstory"] = backstory
    if wanted.valid_days is not None:
        fact["validUntil"] = iso(origin.now + timedelta(days=wanted.valid_days))
    fact["origin"] = {"model": origin.model, "promptVersion": origin.prompt_version}
    return fact


def is_manual(fact: Fact) -> bool:
    """Whether a person wrote the fact: no update replaces, retires or evicts it."""
    return fact.get("source") == MANUAL


def is_note(fact: Fact) -> bool:
    """Whether an agent wrote the fact and no word of the user's proves it. (A thread may be called `agent`, too.)"""
    return fact.get("source") == AGENT and not fact.get("evidence")


def person_of(fact: Fact) -> str:
    """Whom the fact is about, folded; "" for the user."""
    subject = fact.get("subject")
    person = subject.get("person") if isinstance(subject, dict) else None
    return fold(person) if isinstance(person, str) else ""


def quotes_any(fact: Fact, thread_id: str, names: Container[str]) -> bool:
    """Whether a fact's evidence names a message of the thread by one of these ids or identities."""
    pieces = fact.get("evidence")
    named = [piece for piece in pieces if isinstance(piece, dict)] if isinstance(pieces, list) else []
    return any(piece.get("thread") == thread_id and str(piece.get("message")) in names for piece in named)


def aside(text: str) -> str:
    """A text that stands beside a fact, on one line and cut to its length."""
    return one_line(text)[:MAX_ASIDE_CHARS].strip()


def new_id(document: Document, revision: int, content: str, index: int, used: Container[str]) -> str:
    """`fact_` and 8 hex digits, the same for the same input, and none of `used`."""
    fields = ("fact", str(document.get("userId")), str(document.get("agentName")), str(revision), content, str(index))
    salt = 0
    while (fact_id := "fact_" + digest(*fields, str(salt), size=4)) in used:
        salt += 1
    return fact_id
