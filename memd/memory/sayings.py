"""Sayings: when something was said, and which of two things was said earlier. Earlier never replaces later.

Times tell them apart. Within a thread, and where two times are less than CLOSE apart, the inbox's order does: clocks of
producers differ, and the order in which a user's devices pushed does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cmp_to_key
from typing import Any, NamedTuple

from memd.context import Message
from memd.memory.document import Document, Fact, Summary, summary_entry
from memd.memory.facts import Evidence, created_at, evidence_of, last_confirmed_at, updated_at
from memd.push.times import moment

CLOSE = timedelta(minutes=10)
"""Two times less than this apart do not tell what was said first."""


class Saying(NamedTuple):
    """When something was said (ISO 8601; "" when not known), and where: thread and order are empty where unknown."""

    at: str
    thread: str = ""
    order: int = 0

    @property
    def fields(self) -> dict[str, Any]:
        """The saying as documents keep it."""
        return {"at": self.at, "thread": self.thread, "order": self.order} if self.order else {"at": self.at}


UNKNOWN = Saying("")
"""Said at no known time: neither earlier nor later than anything."""


def earlier(first: Saying, second: Saying) -> bool:
    """Whether the first was said before the second, for all that is known."""
    ordered = first.order and second.order
    if ordered and first.thread == second.thread:
        return first.order < second.order
    one, other = _time(first.at), _time(second.at)
    if one is None or other is None:
        return False
    if abs(other - one) < CLOSE:
        return bool(ordered and first.order < second.order)
    return one < other


def latest(sayings: Iterable[Saying]) -> Saying:
    """The one that none of the others is later than; of equals the last one."""
    return max(sayings, key=cmp_to_key(_compared), default=UNKNOWN)


def of_message(message: Message, thread: str) -> Saying:
    """When a message of a claim was said."""
    return Saying(message.said_at, thread, message.order)


def of_evidence(entry: Evidence) -> Saying:
    """When a quote was said."""
    return _read({"at": entry.get("saidAt"), "thread": entry.get("thread"), "order": entry.get("order")})


def said_in(evidence: Iterable[Evidence]) -> Saying:
    """When the last of these quotes was said."""
    return latest(map(of_evidence, evidence))


def of_fact(fact: Fact) -> Saying:
    """When a fact was last said: by its quotes and confirmations, or by whoever wrote or changed it by hand.

    Of a fact of an older version, which kept no such times: when it was stored or confirmed.
    """
    known = [saying for saying in (*map(of_evidence, evidence_of(fact)), _read(fact.get("lastSaid"))) if saying.at]
    stored = updated_at(fact) if known else max(updated_at(fact), last_confirmed_at(fact), created_at(fact))
    return latest([*known, Saying(stored)] if stored else known)


def of_summary(document: Document, name: str) -> Saying:
    """When the newest of the words behind a summary were said; of one without that: when it was written."""
    entry: Summary = summary_entry(document, name)
    return _read(entry.get("lastSaid")) if "lastSaid" in entry else _read({"at": entry.get("updatedAt")})


def end_of(entry: Fact) -> Saying:
    """When it was said that an archived fact is over; UNKNOWN when nobody said so."""
    return _read(entry.get("overSince"))


def _compared(first: Saying, second: Saying) -> int:
    return int(earlier(second, first)) - int(earlier(first, second))


def _read(fields: Any) -> Saying:
    if not isinstance(fields, dict):
        return UNKNOWN
    at, thread, order = fields.get("at"), fields.get("thread"), fields.get("order")
    return Saying(
        at if isinstance(at, str) else "",
        thread if isinstance(thread, str) else "",
        order if type(order) is int and order > 0 else 0,
    )


def _time(at: str) -> datetime | None:
    return moment(at) if at else None
