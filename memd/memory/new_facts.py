"""New facts: how the document keeps what an update proposes, and which id it gets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from memd.config import ApplySettings
from memd.context import Message
from memd.extraction.update import NewFact
from memd.memory.categories import category_or_default
from memd.memory.document import Fact
from memd.memory.facts import AGENT, MANUAL, UNKNOWN, Evidence, said_at_of, valid_until
from memd.memory.gates.passing import PRESENT_DAYS, is_for_now
from memd.memory.gates.refusal import MAX_VALID_DAYS
from memd.memory.gates.sensitive import is_need
from memd.memory.sayings import of_evidence
from memd.memory.subjects import subject_fields
from memd.memory.text import aside
from memd.memory.to_forget import NOTHING_TO_FORGET, ToForget
from memd.push.times import iso, moment

EXPLICIT_CONFIDENCE = 0.95
"""Least confidence of a correction that the user made in so many words."""


OF_A_TIME = frozenset({"context", "event", "behavior"})
"""Categories of which a fact may end by itself though the model named no end."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of an update. `now` has a time zone and is the time of everything that the update writes.

    `ledger_name`: the thread's name in the ledger; empty: `thread_id`. `asked`: what its messages ask to forget.
    `before`: the messages before those sent, which prove nothing; names, numbers and questions may stand there.
    `zone`: where the user is, for messages whose time does not tell it.
    """

    thread_id: str
    now: datetime
    model: str
    prompt_version: str
    ledger_name: str = ""
    asked: ToForget = NOTHING_TO_FORGET
    before: tuple[Message, ...] = ()
    zone: tzinfo = UTC

    @property
    def source(self) -> str:
        """The source of its facts: the thread, with a prefix where its name equals a reserved source."""
        return f"thread:{self.thread_id}" if self.thread_id in {MANUAL, AGENT, UNKNOWN} else self.thread_id

    @property
    def session(self) -> str:
        """The name of its thread, as session facts name it."""
        return self.ledger_name or self.thread_id

    @property
    def fields(self) -> dict[str, str]:
        """A fact's `origin`."""
        return {"model": self.model, "promptVersion": self.prompt_version}


def new_fact(
    fact_id: str,
    proposed: NewFact,
    content: str,
    confidence: float,
    evidence: list[Evidence],
    origin: Origin,
    settings: ApplySettings,
) -> Fact:
    """A fact as the document keeps it: the established fields first, then what is known."""
    subject = subject_fields(proposed)
    person = subject["person"] if subject else ""
    chosen = category_or_default(proposed.category, settings.categories, content, person)
    fact = base_fact(fact_id, content, chosen, confidence, iso(origin.now), origin.source)
    if proposed.source_error and (error := aside(proposed.source_error)):
        fact["sourceError"] = error
    fact["evidence"] = evidence
    if said := said_at(evidence):
        fact["saidAt"] = said
    if subject:
        fact["subject"] = subject
    if proposed.backstory and (backstory := aside(proposed.backstory)):
        fact["backstory"] = backstory
    days = proposed.valid_days
    if days is None and chosen in OF_A_TIME and is_for_now(content) and not is_need(content):
        days = PRESENT_DAYS
    if days is not None:
        fact["validUntil"] = iso((moment(said) or origin.now) + timedelta(days=days))
    fact["origin"] = origin.fields
    return fact


def on_the_day(fact: Fact, day: date | None) -> Fact:
    """A new fact with the day on which its last quote was said, where that is another day than in UTC.

    Its `validUntil` then lies on the last day that counts from there, in UTC as well, so that its text names that day.
    """
    said, end = moment(fact.get("saidAt")), moment(valid_until(fact))
    if said is None or day is None or day == said.date():
        return fact
    dated = {**fact, "saidOn": day.isoformat()}
    if end is None:
        return dated
    later, midnight = day > said.date(), end.replace(hour=0, minute=0, second=0, microsecond=0)
    return {**dated, "validUntil": iso(midnight + timedelta(days=1) if later else midnight - timedelta(milliseconds=1))}


def said_at(evidence: Iterable[Evidence]) -> str:
    """The `saidAt` of a fact: when the last of its quotes was said; "" when that is not known."""
    return max((of_evidence(entry).at for entry in evidence), default="")


def renewed_end(fact: Fact, said: str) -> str | None:
    """The `validUntil` of a fact that the user said again: it lasts as long as before, counted from then.

    None, no end, where it is not known how long it lasted.
    """
    start, end, again = moment(said_at_of(fact)), moment(valid_until(fact)), moment(said)
    if start is None or end is None or again is None or end <= start:
        return None
    return iso(max(end, again + min(end - start, timedelta(days=MAX_VALID_DAYS))))


def base_fact(fact_id: str, content: str, category: str, confidence: float, created: str, source: str) -> Fact:
    """A fact with its established fields, in their order."""
    return {
        "id": fact_id,
        "content": content,
        "category": category,
        "confidence": confidence,
        "createdAt": created,
        "source": source,
    }
