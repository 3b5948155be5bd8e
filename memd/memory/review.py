"""Review: facts whose time is over, or that nobody has confirmed for long, are offered to the model once more."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Literal

from memd.config import ApplySettings
from memd.extraction.update import ReviewedFact
from memd.memory.document import Document, Fact, iso
from memd.memory.draft import Draft
from memd.memory.facts import is_manual
from memd.memory.gates.refusal import MAX_VALID_DAYS

Why = Literal["ended", "stale"]

_TIMES = ("createdAt", "updatedAt", "lastConfirmedAt", "reviewedAt")


def offered(document: Document, now: datetime, settings: ApplySettings) -> dict[str, Why]:
    """The facts to ask about: those past their time, then the stale ones, the longest waiting first.

    Corrections and manual facts are never among them.
    """
    dates = _Dates(now, settings)
    whys: dict[str, Why] = {}
    times: dict[str, str] = {}
    for fact in document.get("facts", ()):
        if why := dates.why(fact):
            whys[fact["id"]], times[fact["id"]] = why, _last(fact)
    order = sorted(whys, key=lambda fact_id: (whys[fact_id] != "ended", times[fact_id]))
    return {fact_id: whys[fact_id] for fact_id in order[: settings.review_max]}


def review(draft: Draft, asked: Collection[str], verdicts: Iterable[ReviewedFact]) -> None:
    """Do as the verdicts say. What was asked about and got none: past its time it goes, else it is asked later."""
    open_ids = {fact_id: why for fact_id in asked if (why := _still(draft, fact_id))}
    for index, piece in enumerate(verdicts):
        why = open_ids.pop(piece.id, None)
        if why is None:
            draft.refuse("not_in_review", "reviewedFacts", index)
        elif piece.verdict == "retire":
            draft.retire(piece.id, "expired" if why == "ended" else "stale", "reviewedFacts", index)
        elif piece.verdict == "extend":
            days = min(piece.valid_days or draft.settings.stale_after_days or 1, MAX_VALID_DAYS)
            until = iso(draft.origin.now + timedelta(days=days))
            draft.change(piece.id, validUntil=until, reviewedAt=draft.now)
        else:
            draft.change(piece.id, validUntil=None if why == "ended" else _until(draft, piece.id), reviewedAt=draft.now)
    for fact_id, why in open_ids.items():
        if why == "ended":
            draft.archive(fact_id, "expired")
        else:
            draft.change(fact_id, reviewedAt=draft.now)


def expire(draft: Draft) -> None:
    """Without reviews, what is past its time goes at once."""
    if draft.settings.review_max == 0:
        for fact_id in [fact_id for fact_id in draft.facts if _still(draft, fact_id) == "ended"]:
            draft.archive(fact_id, "expired")


def _still(draft: Draft, fact_id: str) -> Why | None:
    fact = draft.facts.get(fact_id)
    return _Dates(draft.origin.now, draft.settings).why(fact) if fact else None


def _until(draft: Draft, fact_id: str) -> object:
    return draft.facts[fact_id].get("validUntil")


class _Dates:
    """The dates that facts are held against, as documents write them."""

    def __init__(self, now: datetime, settings: ApplySettings) -> None:
        self._now = iso(now)
        days = settings.stale_after_days
        self._stale = iso(now - timedelta(days=days)) if days else ""

    def why(self, fact: Fact) -> Why | None:
        """Why the fact is due for review; None when it is not."""
        until = fact.get("validUntil")
        ended = isinstance(until, str) and "" < until < self._now
        if not ended:
            created = fact.get("createdAt")  # most facts are new enough by this alone
            if (isinstance(created, str) and created >= self._stale) or not "" < _last(fact) < self._stale:
                return None
        if is_manual(fact) or fact.get("category") == "correction":
            return None
        return "ended" if ended else "stale"


def _last(fact: Fact) -> str:
    return max((value for name in _TIMES if isinstance(value := fact.get(name), str)), default="")
