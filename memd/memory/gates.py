"""The gates: why a new fact is refused. Input filters alone do not stop poisoned memories; these do, in code.

Only what the user said about themselves, what lasts, and what describes passes; never orders or permissions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain

from memd.config import ApplySettings
from memd.memory.update import NewFact
from memd.memory.uploads import is_upload_event
from memd.redaction import holds_secret

MAX_VALID_DAYS = 36_500
"""Days a fact may be valid; above it (a century) times overflow."""


def refusal(fact: NewFact, content: str, settings: ApplySettings) -> str | None:
    """The first gate that a new fact fails at; None when it passes. Its evidence is looked at elsewhere.

    `content` is the fact's sentence as it would be stored.
    """
    return next(_reasons(fact, content, settings), None)


def flaw(content: str, asides: Iterable[str], settings: ApplySettings) -> str | None:
    """Why nobody may have this remembered, be it the model, a hand or an import; None when there is no reason.

    `content` is a fact's sentence as it would be stored, `asides` what would stand beside it.
    """
    return next(chain(_length(content, settings), _unfit(content, asides)), None)


def _reasons(fact: NewFact, content: str, settings: ApplySettings) -> Iterator[str]:
    if fact.scope != "user":
        yield "not_user_scope"
    if fact.durability != "durable":
        yield "not_durable"
    if fact.authority != "descriptive":
        yield "not_descriptive"
    yield from _length(content, settings)
    if not _is_confidence(fact.confidence):
        yield "bad_confidence"
    elif fact.confidence < settings.confidence_threshold:
        yield "low_confidence"
    if fact.valid_days is not None and not 0 < fact.valid_days <= MAX_VALID_DAYS:
        yield "bad_valid_days"
    yield from _unfit(content, _asides(fact))


def _unfit(content: str, asides: Iterable[str]) -> Iterator[str]:
    if is_upload_event(content):
        yield "upload_event"
    if any(map(holds_secret, (content, *asides))):
        yield "secret"


def _length(content: str, settings: ApplySettings) -> Iterator[str]:
    if len(content) < settings.fact_min_chars:
        yield "too_short"
    if len(content) > settings.fact_max_chars:
        yield "too_long"


def _asides(fact: NewFact) -> Iterator[str]:
    """What would be stored beside the fact's sentence."""
    yield fact.source_error or ""
    yield fact.backstory or ""
    if fact.subject:
        yield fact.subject.person
        yield fact.subject.relationship


def _is_confidence(value: object) -> bool:
    # bool is an int in Python; a model that answers `true` has not named a confidence.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) and 0 <= value <= 1
