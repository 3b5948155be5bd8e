"""Review: facts past their time, or long unconfirmed, are offered to the model once more."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Literal

from memd.config import ApplySettings
from memd.extraction.update import ReviewedFact
from memd.memory.document import Document, Fact, facts_of
from memd.memory.draft import Draft
from memd.memory.facts import created_at, id_of, is_correction, is_manual, touched_at, valid_until
from memd.memory.gates.refusal import MAX_VALID_DAYS
from memd.memory.retiring import Ending
from memd.push.times import iso

CORRECTION_DAYS = 180
"""Days without confirmation after which a correction is offered too; `apply.stale_after_days` where that is longer."""

Why = Literal["ended", "stale"]


def offered(document: Document, now: datetime, settings: ApplySettings) -> dict[str, Why]:
    """The facts to offer for review, and why: those past their time, then the stale ones, the longest waiting first.

    Corrections count as stale only after CORRECTION_DAYS; manual facts are never offered.
    """
    dates = _Dates(now, settings)
    whys: dict[str, Why] = {}
    times: dict[str, str] = {}
    for fact in facts_of(document):
        created = fact.get("createdAt")
        if "validUntil" not in fact and type(created) is str and created >= dates.stale:
            continue  # most facts are new enough by this alone
        if why := dates.why(fact):
            whys[id_of(fact)], times[id_of(fact)] = why, _last(fact)
    order = sorted(whys, key=lambda fact_id: (whys[fact_id] != "ended", times[fact_id]))
    return {fact_id: whys[fact_id] for fact_id in order[: settings.review_max]}


def review(draft: Draft, offered_ids: Collection[str], verdicts: Iterable[ReviewedFact]) -> None:
    """Apply the verdicts. Of offered facts without one, those past their time go; the stale ones wait for later.

    Facts that this update has confirmed, replaced or retired are settled by the user's words; no verdict counts there.
    """
    waiting = {fact_id: why for fact_id in offered_ids if (why := _still(draft, fact_id))}
    settled = {fact_id for fact_id in offered_ids if fact_id not in waiting}
    for index, verdict in enumerate(verdicts):
        why = waiting.pop(verdict.id, None)
        if verdict.id in settled:
            continue
        if why is None:
            draft.refuse("not_in_review", "reviewedFacts", index)
        elif verdict.verdict == "retire":
            if why == "ended":
                draft.end(Ending(verdict.id, "expired"))  # it has ended by itself, which costs no budget
            else:
                draft.retire(Ending(verdict.id, "stale"), "reviewedFacts", index)
        elif verdict.verdict == "extend":
            days = min(verdict.valid_days or draft.settings.stale_after_days or 1, MAX_VALID_DAYS)
            until = iso(draft.origin.now + timedelta(days=days))
            draft.change(verdict.id, validUntil=until, reviewedAt=draft.now)
        elif why == "ended":
            draft.change(verdict.id, validUntil=None, reviewedAt=draft.now)
        else:
            draft.change(verdict.id, reviewedAt=draft.now)
    for fact_id, why in waiting.items():
        if why == "ended":
            draft.archive(fact_id, "expired")
        else:
            draft.change(fact_id, reviewedAt=draft.now)


def expire(draft: Draft) -> None:
    """Where reviews are switched off, archive facts at the end of their time."""
    if draft.settings.review_max == 0:
        for fact_id in [fact_id for fact_id in draft.facts if _still(draft, fact_id) == "ended"]:
            draft.archive(fact_id, "expired")


def _still(draft: Draft, fact_id: str) -> Why | None:
    fact = None if draft.is_confirmed(fact_id) else draft.facts.get(fact_id)
    return _Dates(draft.origin.now, draft.settings).why(fact) if fact else None


class _Dates:
    """The dates that facts are compared with, as documents write them: ISO text, which sorts like time."""

    def __init__(self, now: datetime, settings: ApplySettings) -> None:
        self._now = iso(now)
        days = settings.stale_after_days
        self.stale = iso(now - timedelta(days=days)) if days else ""
        self._stale_correction = iso(now - timedelta(days=max(days, CORRECTION_DAYS))) if days else ""

    def why(self, fact: Fact) -> Why | None:
        """Why the fact is due for review; None when it is not."""
        ended = "" < valid_until(fact) < self._now
        if not ended and (created_at(fact) >= self.stale or not "" < _last(fact) < self.stale):
            return None
        if is_manual(fact) or (not ended and is_correction(fact) and _last(fact) >= self._stale_correction):
            return None
        return "ended" if ended else "stale"


def _last(fact: Fact) -> str:
    return max(touched_at(fact), default="")
