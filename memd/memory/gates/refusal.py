"""The gates: why a new fact is refused. Input filters alone do not stop poisoned memories; these do, in code.

Only what the user said about themselves, what lasts, and what describes passes; never orders or permissions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from memd.config import ApplySettings
from memd.extraction.update import NewFact
from memd.memory.gates.orders import refused_as
from memd.memory.gates.uploads import is_upload_event
from memd.push.redaction import holds_secret

MAX_VALID_DAYS = 36_500
"""Days a fact may be valid; above it (a century) times overflow."""


def refusal(fact: NewFact, content: str, settings: ApplySettings) -> str | None:
    """The first gate that a new fact fails at; None when it passes. Its evidence is looked at elsewhere.

    `content` is the fact's sentence as it would be stored.
    """
    return next(_reasons(fact, content, settings), None)


def content_refusal(content: str, settings: ApplySettings) -> str | None:
    """The first gate that a sentence fails at, whoever wrote it; None when it passes."""
    return next(_content_reasons(content, settings), None)


def _content_reasons(content: str, settings: ApplySettings) -> Iterator[str]:
    if len(content) < settings.fact_min_chars:
        yield "too_short"
    if len(content) > settings.fact_max_chars:
        yield "too_long"
    if is_upload_event(content):
        yield "upload_event"
    if holds_secret(content):
        yield "secret"
    if reason := refused_as(content):
        yield reason


def _reasons(fact: NewFact, content: str, settings: ApplySettings) -> Iterator[str]:
    if fact.scope != "user":
        yield "not_user_scope"
    if fact.durability != "durable":
        yield "not_durable"
    if fact.authority != "descriptive":
        yield "not_descriptive"
    if not _is_confidence(fact.confidence):
        yield "bad_confidence"
    elif fact.confidence < settings.confidence_threshold:
        yield "low_confidence"
    if fact.valid_days is not None and not 0 < fact.valid_days <= MAX_VALID_DAYS:
        yield "bad_valid_days"
    yield from _content_reasons(content, settings)
    if any(map(holds_secret, _asides(fact))):
        yield "secret"
    # What stood there before invisible characters were taken out counts as well.
    hidden = () if fact.content == content else (fact.content,)
    yield from filter(None, map(refused_as, (*hidden, *filter(None, _asides(fact)))))


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
