"""Inject: the `<memory>` block for the next prompt, as much of the document as fits a token budget.

Corrections are chosen first and have a part of the budget of their own, then summaries, then facts by confidence. The
text is data: escaped, so that no fact can close the block or open another one. The same document gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memd.config import RecallSettings
from memd.context import estimate_tokens
from memd.memory.document import Document, Fact, confidence_of, rank, summary
from memd.memory.text import one_line

_SUMMARIES = (
    ("User Context:", "workContext", "Work"),
    ("User Context:", "personalContext", "Personal"),
    ("User Context:", "topOfMind", "Current Focus"),
    ("History:", "recentMonths", "Recent"),
    ("History:", "earlierContext", "Earlier"),
    ("History:", "longTermBackground", "Background"),
)
_FACTS = "Facts:"
_HEADINGS = ("User Context:", "History:", _FACTS)
_OPEN, _CLOSE = "<memory>", "</memory>"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class _Line:
    """One line that may go in: its heading, its place in the block, and its text."""

    heading: str
    place: int
    text: str


def inject(document: Document, settings: RecallSettings, max_tokens: int | None = None) -> str:
    """The block, at most `max_tokens` by `estimate_tokens` (None: the setting); "" when there is nothing to say.

    A line goes in whole or not at all, and a long one that does not fit makes room for shorter ones after it.
    """
    if not settings.injection_enabled:
        return ""
    budget = settings.max_injection_tokens if max_tokens is None else max_tokens
    facts = sorted(document.get("facts", ()), key=_order, reverse=True)
    lines = [_Line(_FACTS, place, _fact(fact)) for place, fact in enumerate(facts)]
    corrections = [line for line, fact in zip(lines, facts, strict=True) if fact.get("category") == "correction"]
    summaries = list(_summaries(document))

    block = _Block(budget)
    block.fill(corrections, block.used + settings.correction_tokens)
    block.fill(summaries, block.used + (budget - block.used) // 2)
    block.fill(lines, budget)
    block.fill(summaries, budget)
    return block.render()


class _Block:
    """The lines chosen so far and what they cost, counted in tenths of a token, which add up exactly."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._chosen: dict[tuple[str, int], str] = {}
        self._headings: set[str] = set()
        self._cost = _cost(f"{_OPEN}\n{_CLOSE}")

    @property
    def used(self) -> int:
        """Tokens of the block as it is."""
        return -(-self._cost // 10)

    def fill(self, lines: Iterable[_Line], limit: int) -> None:
        """Add the lines that fit while the block stays within `limit` tokens."""
        for line in lines:
            cost = _cost(line.text + "\n")
            if line.heading not in self._headings:
                # One blank line stands before every heading but the first; it is counted for each.
                cost += _cost(f"\n{line.heading}\n")
            if (line.heading, line.place) not in self._chosen and self._cost + cost <= 10 * min(limit, self._budget):
                self._chosen[line.heading, line.place] = line.text
                self._headings.add(line.heading)
                self._cost += cost

    def render(self) -> str:
        """The block as text."""
        sections = []
        for heading in _HEADINGS:
            places = sorted(place for name, place in self._chosen if name == heading)
            if places:
                sections.append("\n".join([heading, *(self._chosen[heading, place] for place in places)]))
        return "\n".join([_OPEN, "\n\n".join(sections), _CLOSE]) if sections else ""


def _cost(text: str) -> int:
    """Ten times the estimate, unrounded: the estimate of ten copies."""
    return 3 * len(text) if text.isascii() else estimate_tokens(text * 10)


def _order(fact: Fact) -> tuple[bool, float, str]:
    """Corrections before all, then by confidence, then the newer; to be sorted in reverse."""
    confidence, correction, created = rank(fact)
    return correction, confidence, created


def _summaries(document: Document) -> Iterator[_Line]:
    for place, (heading, name, label) in enumerate(_SUMMARIES):
        if text := _safe(summary(document, name)):
            yield _Line(heading, place, f"- {label}: {text}")


def _fact(fact: Fact) -> str:
    subject = fact.get("subject")
    about = ""
    if isinstance(subject, dict) and (person := _safe(subject.get("person"))):
        relationship = _safe(subject.get("relationship"))
        about = f"about {person} ({relationship}): " if relationship else f"about {person}: "
    error = _safe(fact.get("sourceError"))
    avoid = f" (avoid: {error})" if error else ""
    day = _DAY.match(_safe(fact.get("validUntil")))
    until = f" (until {day[0]})" if day else ""
    category = _safe(fact.get("category")) or "context"
    return f"- [{category} | {confidence_of(fact):.2f}] {about}{_safe(fact['content'])}{avoid}{until}"


def _safe(value: object) -> str:
    """One line of text in which nothing is a tag."""
    if not isinstance(value, str):
        return ""
    return one_line(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
