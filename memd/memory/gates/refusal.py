"""The gates: why a text is refused. They apply to every writer; input filters alone do not stop poisoned memories.

Of what a model proposes, only descriptive, durable facts about the user pass; never instructions or permissions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from memd.config import ApplySettings
from memd.extraction.update import NewFact
from memd.memory.gates.instructions import is_markup, kind_of, text_refusal
from memd.memory.gates.passing import passing_refusal
from memd.memory.gates.uploads import is_upload_event
from memd.memory.text import CJK
from memd.push.redaction import holds_secret

CJK_CHARS = 3
"""Letters that one Chinese, Japanese or Korean character is worth: 用户吃素 is a fact."""

_CJK = re.compile(f"[{CJK}]")

MAX_VALID_DAYS = 36_500
"""Most days that a fact may be valid; beyond a century, times overflow."""

MAX_SUMMARY_CHARS = 1_500
"""Characters of one summary; the longest that the prompt asks for has five themes."""


AUTHORITY = frozenset({"not_descriptive", "instruction"})
"""Reasons that make a fact doubtful where a quote proves it: it may be meant as it says, and only a person knows."""


OWN_DEEDS = frozenset({"decision", "event", "goal"})
"""Categories of what the user does: models take the user's own decision for one that commits something."""

OF_PEOPLE = frozenset({"instruction", "upload_event"})
"""Reasons that do not stop what a person writes."""


def fact_refusal(fact: NewFact, content: str, settings: ApplySettings) -> str | None:
    """The first gate that stops a proposed fact; None when it passes. Its evidence is checked elsewhere.

    `content` is the fact's sentence as it would be stored.
    """
    return next(_reasons(fact, content, settings), None)


def without_orders_beside(fact: NewFact) -> NewFact:
    """The fact without asides that order or permit something: the fact itself may be true.

    "The TODO in the code is to be ignored" beside a business rule is no order of its own, and is not stored as one.
    """
    asides = {name: text for name in ("source_error", "backstory") if (text := getattr(fact, name))}
    spoken = {name for name, text in asides.items() if kind_of(text) == "order"}
    return replace(fact, **dict.fromkeys(spoken)) if spoken else fact


def is_only_authority(fact: NewFact, content: str, settings: ApplySettings) -> bool:
    """Whether a refused fact is stopped by nothing but what it permits or orders, so that a person may decide."""
    reasons = set(_reasons(fact, content, settings))
    return bool(reasons) and reasons <= AUTHORITY and not any(map(is_markup, (fact.content, *_asides(fact))))


def sentence_refusal(
    raw: str, content: str, settings: ApplySettings, asides: Sequence[str] = (), quotes: Sequence[str] = ()
) -> str | None:
    """The first gate that stops a sentence, whoever wrote it; None when it passes.

    `raw` is the sentence before invisible characters were removed, which must not hide an instruction either;
    `content` is what would be stored, `asides` what would be stored with it, and `quotes` what it was drawn from.
    """
    return next(_sentence_reasons(raw, content, settings, asides, quotes), None)


def hand_refusal(raw: str, content: str, settings: ApplySettings, asides: Sequence[str] = ()) -> str | None:
    """The first gate that stops what a person writes: they may permit, ask for and order whatever they like."""
    reasons = (reason for reason in _content_reasons(content, settings) if reason not in OF_PEOPLE)
    if reason := next(reasons, None) or ("secret" if any(map(holds_secret, asides)) else None):
        return reason
    return "markup" if any(map(is_markup, (raw, *asides))) else None


def content_refusal(content: str, settings: ApplySettings, quotes: Sequence[str] = ()) -> str | None:
    """The first gate that stops a sentence as it would be stored; None when it passes. `quotes`: what proves it."""
    return next(_content_reasons(content, settings, quotes), None)


def summary_refusal(raw: str, text: str) -> str | None:
    """The first gate that stops a summary; None when it passes. `raw` and `text` as in `sentence_refusal`."""
    if not text:
        return "empty"
    if len(text) > MAX_SUMMARY_CHARS:
        return "too_long"
    return "secret" if holds_secret(text) else text_refusal(raw)


def _reasons(fact: NewFact, content: str, settings: ApplySettings) -> Iterator[str]:
    """All reasons that stop a proposed fact, the first gate first."""
    quotes = [item.quote for item in fact.evidence]
    yield from _standing(fact, settings)
    yield from _sentence_reasons(fact.content, content, settings, tuple(_asides(fact)), quotes)
    if reason := passing_refusal(content, quotes):
        yield reason


def _sentence_reasons(
    raw: str, content: str, settings: ApplySettings, asides: Sequence[str], quotes: Sequence[str] = ()
) -> Iterator[str]:
    yield from _content_reasons(content, settings, quotes)
    if any(map(holds_secret, asides)):
        yield "secret"
    if raw != content and (reason := text_refusal(raw, quotes)):
        yield reason
    yield from filter(None, map(text_refusal, filter(None, asides)))


def length_of(content: str) -> int:
    """How long a sentence is in Latin letters: a Chinese, Japanese or Korean character counts as CJK_CHARS."""
    return len(content) + (CJK_CHARS - 1) * len(_CJK.findall(content))


def _content_reasons(content: str, settings: ApplySettings, quotes: Sequence[str] = ()) -> Iterator[str]:
    if length_of(content) < settings.fact_min_chars:
        yield "too_short"
    if len(content) > settings.fact_max_chars:
        yield "too_long"
    if is_upload_event(content):
        yield "upload_event"
    if holds_secret(content):
        yield "secret"
    if reason := text_refusal(content, quotes):
        yield reason


def _standing(fact: NewFact, settings: ApplySettings) -> Iterator[str]:
    """The reasons why a proposal's own fields stop it, whatever its words."""
    if fact.scope != "user":
        yield "not_user_scope"
    if fact.durability != "durable":
        yield "not_durable"
    if fact.authority != "descriptive" and fact.category not in OWN_DEEDS:
        yield "not_descriptive"
    if not _is_confidence(fact.confidence):
        yield "bad_confidence"
    elif fact.confidence < settings.confidence_threshold:
        yield "low_confidence"
    if fact.valid_days is not None and not 0 < fact.valid_days <= MAX_VALID_DAYS:
        yield "bad_valid_days"


def _asides(fact: NewFact) -> Iterator[str]:
    """The texts that would be stored with the fact's sentence."""
    yield fact.source_error or ""
    yield fact.backstory or ""
    if fact.subject:
        yield fact.subject.person
        yield fact.subject.relationship


def _is_confidence(value: object) -> bool:
    # bool is an int in Python; a model that returns `true` has named no confidence.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) and 0 <= value <= 1
