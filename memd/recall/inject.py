"""Inject: the `<memory>` block for the next prompt, as much of the document as fits a token budget.

Corrections have a guaranteed part and are chosen first, then summaries, then what answers the query, then facts by
confidence. The text is data: escaped, so that no fact can close the block or open another one. The same document gives
the same bytes, and the parts that change most come last, so that prompt caches hit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import getsizeof
from typing import NamedTuple

from memd.config import RecallSettings
from memd.context import tenths_of_tokens
from memd.memory import profiles
from memd.memory.document import Document, Fact, facts_of, summary, withheld_of
from memd.memory.facts import (
    DEFAULT_CATEGORY,
    category_of,
    confidence_of,
    content_of,
    is_correction,
    month_of,
    rank,
    scope_of,
    source_error,
    valid_until,
)
from memd.memory.relationships import current_facts
from memd.memory.text import one_line
from memd.memory.whom import about
from memd.recall.layers import Excerpt
from memd.recall.search import SCOPES, WEIGHTS

_FACTS = "Facts:"
_PROFILE, _PROJECT = "Profile:", "Project:"
_USER, _HISTORY, _NOW = "User Context:", "History:", "Now:"
_PENDING = "Pending (said just now, not verified):"
_SAID = "Said (not verified):"
_HEADINGS = (_PROFILE, _PROJECT, _USER, _HISTORY, _FACTS, _NOW, _PENDING, _SAID)
_ESTABLISHED = (
    (_USER, "workContext", "Work"),
    (_USER, "personalContext", "Personal"),
    (_USER, "topOfMind", "Current Focus"),
    (_HISTORY, "recentMonths", "Recent"),
    (_HISTORY, "earlierContext", "Earlier"),
    (_HISTORY, "longTermBackground", "Background"),
)
# The two that change with most conversations come after the facts:
# docs/decisions/0008-the-parts-that-change-most-come-last.md.
_STABLE = (
    (_USER, "workContext", "Work"),
    (_USER, "personalContext", "Personal"),
    (_HISTORY, "earlierContext", "Earlier"),
    (_HISTORY, "longTermBackground", "Background"),
    (_NOW, "recentMonths", "Recent"),
    (_NOW, "topOfMind", "Current Focus"),
)
PROJECT_FIELD = "projectProfile"
"""Where a memory that a read names a project for has the project's document."""

_OPEN, _CLOSE = "<memory>", "</memory>"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
# The end of a sentence; a point inside "1.5" is none. Each run of marks is tried from its beginning only.
_END = re.compile(r"""(?<![.!?])[.!?]++["'”’)]*+(?:\s+|\Z)|(?<![。！？])[。！？]++[”’）」』]*+\s*""")
_CATEGORY = re.compile(r"[\w-]{1,40}")
# Marks that chat templates put around a turn. Marks with angle brackets are escaped anyway.
_TEMPLATE = re.compile(r"\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])", re.IGNORECASE)

PROFILE_TOKENS, PROJECT_TOKENS = 300, 200
"""Tokens of the user's profile and of a project's at most; a field that does not fit is left out whole."""

PENDING_SHARE = 4
"""Pending messages may take 1/PENDING_SHARE of the budget, at the expense of the last facts."""

PENDING_CHARS = 500
"""Characters of a pending message that are shown."""

IN_SESSION = " (in this conversation)"
"""Ends the line of a session fact, in place of the day on which it ends."""

DOUBT = " (outdated?)"
"""Ends the line of a fact that the user has said is over, where memd withheld its retirement: 4 tokens. Without it the
line would contradict the newer one beside it."""

CHANGING = {"identity": "since ", "context": "since ", "goal": "since ", "event": ""}
"""Categories whose facts are shown with the month in which they were said, for what they say changes with time; and the
word before it."""

LINE_BYTES = getsizeof(("", 0)) + 2 * getsizeof(1) + 4 * 8
"""Bytes of a line besides its text: the pair, its numbers, and its places in the lists and the set."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A block for a prompt. `version`: SHA-256 of the text, cut to 32 digits; equal exactly when the text is.

    `words_only`: as in the `Hits` of a search.
    """

    text: str
    version: str
    words_only: str = ""


class _BlockLine(NamedTuple):
    """One line of the block: its heading, its place under it, its text, and its cost in tenths of a token."""

    heading: str
    place: int
    text: str
    cost: int


class Lines:
    """The lines of a document, independent of budget and query. Built once, never changed."""

    def __init__(self, document: Document, settings: RecallSettings) -> None:
        facts = facts_of(document)
        # As tuples of texts and numbers: the garbage collector does not look at those again and again.
        self._facts = tuple((text, tenths_of_tokens(text + "\n")) for text in _fact_lines(document))
        places = [place for place, (text, _) in enumerate(self._facts) if text]
        ranks = list(map(_rank, facts))
        self._corrections = {place for place in places if is_correction(facts[place])}
        self._of_session = {place for place in places if scope_of(facts[place]).kind == "session"}
        self._chosen = tuple(sorted(places, key=ranks.__getitem__, reverse=True))
        self._shown = tuple(sorted(places, key=lambda place: self._in_block(ranks[place], place)))
        self.profile = [_line(_PROFILE, place, text) for place, text in enumerate(_profile_lines(document))]
        project = document.get(PROJECT_FIELD)
        lines = _profile_lines(project) if isinstance(project, dict) else ()
        self.project = [_line(_PROJECT, place, text) for place, text in enumerate(lines)]
        self.summaries = list(_summaries(document, _ESTABLISHED if settings.order == "established" else _STABLE))

    @cached_property
    def bytes_taken(self) -> int:
        """The bytes that the lines take, by estimate."""
        others = (*self.summaries, *self.profile, *self.project)
        texts = (*(text for text, _ in self._facts), *(line.text for line in others))
        return sum(map(getsizeof, texts)) + LINE_BYTES * len(texts)

    def holds(self, place: int) -> bool:
        """Whether the fact at this place has a line: one without words has none."""
        return bool(self._facts[place][0])

    def facts(self, first: Sequence[int]) -> tuple[list[_BlockLine], list[_BlockLine]]:
        """The corrections, and all facts, each in the order of choice, `first` before the others.

        Among facts of equal confidence newer ones are chosen first but shown last, so a new fact leaves the lines
        before it unchanged.
        """
        ahead = set(first)
        chosen = [*first, *(place for place in self._chosen if place not in ahead)]
        shown = [*first, *(place for place in self._shown if place not in ahead)]
        number = {place: at for at, place in enumerate(shown)}
        lines = [_BlockLine(_FACTS, number[place], *self._facts[place]) for place in chosen]
        return [line for line, place in zip(lines, chosen, strict=True) if place in self._corrections], lines

    def _in_block(self, rank: tuple[float, bool, str], place: int) -> tuple[bool, bool, float, str, int]:
        """Sorts facts for display: corrections first, then by rank, then the older; those of the conversation last."""
        return place in self._of_session, place not in self._corrections, -rank[0], rank[2], place


def _rank(fact: Fact) -> tuple[float, bool, str]:
    """The rank of a fact where no query is given: by all of its score but the similarity, as a confidence."""
    confidence, correction, created = rank(fact)
    nearer = SCOPES[scope_of(fact).kind] - SCOPES["user"]
    return confidence + WEIGHTS[2] / WEIGHTS[1] * nearer, correction, created


def versioned(text: str) -> Injection:
    """A block with its version."""
    return Injection(text, hashlib.sha256(text.encode()).hexdigest()[:32])


def inject(
    document: Document | Lines,
    settings: RecallSettings,
    max_tokens: int | None = None,
    *,
    first: Sequence[int | Excerpt] = (),
    pending: Sequence[str] = (),
) -> str:
    """The block, at most `max_tokens` (None: the setting); "" when nothing is known.

    Tokens are `estimate_tokens` times `recall.tokens_per_estimate`.

    `first`: what to choose before all other facts, in this order: the places of facts, and excerpts, which get
    `recall.excerpt_tokens` and half of the block at most. `pending`: messages not extracted yet, oldest first.
    A fact is included whole or not at all; when a long line does not fit, shorter lines after it may.
    A summary that does not fit is cut at the end of a sentence.
    """
    if not settings.injection_enabled:
        return ""
    lines = document if isinstance(document, Lines) else Lines(document, settings)
    most = settings.max_injection_tokens if max_tokens is None else max_tokens
    budget, of_corrections, of_excerpts = (
        int(tokens / settings.tokens_per_estimate)
        for tokens in (most, settings.correction_tokens, settings.excerpt_tokens)
    )
    first = [answer for answer in first if not isinstance(answer, int) or lines.holds(answer)]
    corrections, facts = lines.facts([place for place in first if isinstance(place, int)])

    block = _Block(budget)
    block.fill(lines.profile, min(budget, block.used + PROFILE_TOKENS))
    block.fill(lines.project, min(budget, block.used + PROJECT_TOKENS))
    block.fill(corrections, block.used + of_corrections)
    block.fill_texts(lines.summaries, block.used + (budget - block.used) // 2)
    block.fill(reversed(_pending_lines(pending)), block.used + budget // PENDING_SHARE)
    block.fill_ranked(_ranked(first, facts), budget, min(of_excerpts, budget // 2))
    block.fill(facts, budget)
    block.fill_texts(lines.summaries, budget)
    return block.render()


class _Block:
    """The lines chosen so far and their cost, in tenths of a token, which add up exactly."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._chosen: dict[tuple[str, int], str] = {}
        self._costs: dict[tuple[str, int], int] = {}
        self._headings: set[str] = set()
        self._cost = tenths_of_tokens(f"{_OPEN}\n{_CLOSE}")

    @property
    def used(self) -> int:
        """Tokens of the block so far."""
        return -(-self._cost // 10)

    def fill(self, lines: Iterable[_BlockLine], limit: int) -> None:
        """Add the lines that fit while the block stays within `limit` tokens."""
        room = 10 * min(limit, self._budget)
        for line in lines:
            self._add(line, room)

    def fill_ranked(self, lines: Iterable[_BlockLine], limit: int, excerpts: int) -> None:
        """Add the lines that fit, in this order; those of excerpts take `excerpts` tokens at most."""
        left = 10 * excerpts
        for line in lines:
            before = self._cost
            if line.heading != _SAID or line.cost + self._heading_cost(line) <= left:
                self._add(line, 10 * min(limit, self._budget))
                left -= self._cost - before if line.heading == _SAID else 0

    def fill_texts(self, lines: Iterable[_BlockLine], limit: int) -> None:
        """Add the lines while the block stays within `limit` tokens; one that does not fit is cut at a sentence.

        A line that was cut before is replaced by as much of it as fits now.
        """
        room = 10 * min(limit, self._budget)
        for line in lines:
            if not self._add(line, room):
                left = room - self._cost - self._heading_cost(line) + self._costs.get((line.heading, line.place), 0)
                if cut := _cut_at_sentence(line, left):
                    self._add(cut, room)

    def _add(self, line: _BlockLine, room: int) -> bool:
        """Add a line if it fits; a longer one takes the place of the same line cut short."""
        key = line.heading, line.place
        known = self._costs.get(key, 0)
        cost = line.cost - known + self._heading_cost(line)
        if self._cost + cost > room:
            return False
        if line.cost > known:
            self._chosen[key], self._costs[key] = line.text, line.cost
            self._headings.add(line.heading)
            self._cost += cost
        return True

    def _heading_cost(self, line: _BlockLine) -> int:
        """What the heading of a line still costs. A blank line before each heading is counted, also of the first."""
        return 0 if line.heading in self._headings else tenths_of_tokens(f"\n{line.heading}\n")

    def render(self) -> str:
        """The block as text."""
        sections = []
        for heading in _HEADINGS:
            places = sorted(place for name, place in self._chosen if name == heading)
            if places:
                sections.append("\n".join([heading, *(self._chosen[heading, place] for place in places)]))
        return "\n".join([_OPEN, "\n\n".join(sections), _CLOSE]) if sections else ""


def _profile_lines(document: Document) -> Iterator[str]:
    return (f"- {label}: {_safe(text)}" for label, text in profiles.lines_of(document))


def _summaries(document: Document, order: Sequence[tuple[str, str, str]]) -> Iterator[_BlockLine]:
    for place, (heading, name, label) in enumerate(order):
        if text := _safe(summary(document, name)):
            yield _line(heading, place, f"- {label}: {text}")


def _fact_lines(document: Document) -> Iterator[str]:
    """The line of each fact, with a doubt where the user has said that it is over."""
    doubted = {entry.get("fact") for entry in withheld_of(document)}
    for fact in current_facts(document):
        line = fact_line(fact)
        yield line + DOUBT if line and fact.get("id") in doubted else line


def fact_line(fact: Fact) -> str:
    """One fact as a line of the block, in which nothing is a tag; "" for a fact without words."""
    content = _safe(content_of(fact))
    if not content:
        return ""
    person = _safe(about(fact))
    whom = f"about {person}: " if person else ""
    error = _safe(source_error(fact))
    avoid = f" (avoid: {error})" if error else ""
    day = _DAY.match(_safe(valid_until(fact)))
    until = f" (until {day[0]})" if day else ""
    scope = scope_of(fact)
    if scope.kind == "session" and scope.id:  # a pending message names no conversation
        until = IN_SESSION
    month = month_of(fact) if category_of(fact) in CHANGING else ""
    since = f" ({CHANGING[category_of(fact)]}{month})" if month and month[:4] not in content else ""
    category = category_of(fact) if _CATEGORY.fullmatch(category_of(fact)) else DEFAULT_CATEGORY
    return f"- [{category} | {confidence_of(fact):.2f}] {whom}{content}{avoid}{since}{until}"


def _ranked(first: Sequence[int | Excerpt], facts: Sequence[_BlockLine]) -> Iterator[_BlockLine]:
    """The lines of `first`, of which the facts are the first of `facts`."""
    of_facts = iter(facts)
    for number, answer in enumerate(first):
        if isinstance(answer, int):
            yield next(of_facts)
        else:
            yield _line(_SAID, number, excerpt_line(answer))


def excerpt_line(excerpt: Excerpt) -> str:
    """One excerpt as a line of the block, in which nothing is a tag, with the day on which it was said."""
    day = _DAY.match(excerpt.said_at)
    said = f"said {day[0]}" if day else "said"
    return f"- [{said}{', since changed' if excerpt.over else ''} | not verified] {_safe(excerpt.text)}"


def _pending_lines(messages: Sequence[str]) -> list[_BlockLine]:
    texts = [_safe(_cut(message)) for message in messages]
    return [_line(_PENDING, place, f"- [pending | unverified] {text}") for place, text in enumerate(texts) if text]


def _line(heading: str, place: int, text: str) -> _BlockLine:
    return _BlockLine(heading, place, text, tenths_of_tokens(text + "\n"))


def _cut_at_sentence(line: _BlockLine, room: int) -> _BlockLine | None:
    """The line up to the last sentence that fits into so many tenths of a token; None without any."""
    end, cost = 0, tenths_of_tokens("\n")
    for sentence in _END.finditer(line.text):
        cost += tenths_of_tokens(line.text[end : sentence.end()])
        if cost > room:
            break
        end = sentence.end()
    return _line(line.heading, line.place, line.text[:end].rstrip()) if end else None


def _cut(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= PENDING_CHARS else line[:PENDING_CHARS].rstrip() + "…"


def _safe(text: str) -> str:
    """One line of text in which nothing is a tag."""
    if not text:
        return ""
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _TEMPLATE.sub("[ ", text) if "[" in text else text
