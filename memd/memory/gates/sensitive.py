"""Sensitive: which facts are held back for their label, by `apply.sensitive`. The label is the extractor's.

A need that an assistant must respect (an allergy, a diet, a wheelchair) is never held back, whatever its label: to lose
one is dangerous. A sentence that tells more than the need has none of this protection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from memd.config import ApplySettings
from memd.extraction.update import NewFact
from memd.memory.text import fold
from memd.push.patterns import Lists

Held = Literal["", "drop", "doubtful"]
"""What becomes of a fact for its label: nothing, or what `apply.sensitive` says."""

MAX_CHARS = 500
"""A longer sentence tells more than a need."""

_LISTS = Lists(Path(__file__).with_suffix(""), "needs", "beyond")


def held_back(fact: NewFact, content: str, settings: ApplySettings) -> Held:
    """What the label of a proposed fact means. `content`: its sentence as it would be stored."""
    if settings.sensitive == "keep" or not fact.sensitive:
        return ""
    asides = filter(None, (fact.source_error, fact.backstory))
    return "" if is_need(content) and not any(map(_tells_more, asides)) else settings.sensitive


def is_need(content: str) -> bool:
    """Whether a sentence is a need that an assistant must respect, and nothing beyond it."""
    return not _tells_more(content) and bool(_LISTS["needs"].search(fold(content)))


def _tells_more(text: str) -> bool:
    return len(text) > MAX_CHARS or bool(_LISTS["beyond"].search(fold(text)))
