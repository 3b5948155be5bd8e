"""Parts: a system prompt made of texts with budgets of their own. What is too long loses its oldest paragraphs.

A part over its budget loses whole paragraphs, the topmost first, as logs and notes grow at their end. Its headings
stay, and nothing is cut inside a paragraph. Then, while all parts together are over the total, the last ones lose more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memd.context import tenths_of_tokens

TOTAL_TOKENS = 15_000

_HEADING = re.compile(r"#{1,6}[ \t]+\S")
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_BETWEEN = "\n\n"


@dataclass
class Part:
    """One part of a prompt. Make it once and pass it to each `assemble`.

    `text`: the text, or a function that returns it. `tokens`: its budget, estimated (CJK counts more); None: only the
    total limits it. `keep_whole`: it is never cut, whatever the budgets say. `ttl_s`: seconds for which the text of a
    function is used again; 0: it is called each time. What the function raises, `assemble` raises.
    """

    name: str
    text: str | Callable[[], str]
    tokens: int | None = None
    keep_whole: bool = False
    ttl_s: float = 0.0
    _read: tuple[float, str] | None = field(default=None, init=False, repr=False, compare=False)

    def read(self, now: float) -> str:
        """The text at `now`, a time of `time.monotonic`."""
        if isinstance(self.text, str):
            return self.text.strip()
        if self._read is None or now - self._read[0] >= self.ttl_s:
            self._read = (now, self.text().strip())
        return self._read[1]


class _Paragraph(NamedTuple):
    """A paragraph with the blank lines behind it, or a heading, and ten times its estimated tokens."""

    text: str
    cost: int
    is_heading: bool


def assemble(parts: Sequence[Part], total: int = TOTAL_TOKENS, *, now: float | None = None) -> str:
    """The texts of the parts in their order, within their budgets and the total (estimated tokens).

    Where parts that are never cut, and headings, take more than the total alone, the result is longer.
    `now`: of `time.monotonic`, for parts with `ttl_s`; None: the present.
    """
    now = time.monotonic() if now is None else now
    texts = [part.read(now) for part in parts]
    texts = [
        text if part.keep_whole or part.tokens is None else fitted(text, part.tokens)
        for part, text in zip(parts, texts, strict=True)
    ]
    over = tenths_of_tokens(_BETWEEN.join(filter(None, texts))) - 10 * total
    for place in reversed(range(len(parts))):
        if over > 0 and not parts[place].keep_whole:
            before = tenths_of_tokens(texts[place])
            texts[place] = _cut(texts[place], before - over)
            over -= before - tenths_of_tokens(texts[place])
    return _BETWEEN.join(filter(None, texts))


def fitted(text: str, tokens: int) -> str:
    """The text without its topmost paragraphs, as far as it must lose some to have so many tokens. Headings stay."""
    return _cut(text, 10 * tokens)


def _cut(text: str, most: int) -> str:
    """The same for ten times the tokens."""
    cost = tenths_of_tokens(text)
    if cost <= most:
        return text
    kept = []
    for paragraph in _paragraphs(text):
        if cost > most and not paragraph.is_heading:
            cost -= paragraph.cost
        else:
            kept.append(paragraph.text)
    return "".join(kept).strip()


def _paragraphs(text: str) -> Iterator[_Paragraph]:
    """The paragraphs and headings, which joined are the text. A fence of code is one paragraph, blank lines or not."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        is_heading = not fence and _HEADING.match(line) is not None
        ends = bool(lines) and (not lines[-1].strip() or _HEADING.match(lines[0]) is not None)
        if lines and not fence and line.strip() and (ends or is_heading):
            yield _paragraph(lines)
            lines = []
        if mark:
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        lines.append(line)
    if lines:
        yield _paragraph(lines)


def _paragraph(lines: list[str]) -> _Paragraph:
    text = "".join(lines)
    return _Paragraph(text, tenths_of_tokens(text), _HEADING.match(text) is not None)
