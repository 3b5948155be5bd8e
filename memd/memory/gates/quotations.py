"""Quotations: what stands in quotation marks in a user's turn is somebody else's, unless the user says it is theirs.

A title, a name or a single word in quotation marks is too short to be what somebody said.
"""

from __future__ import annotations

import re
from pathlib import Path

from memd.memory.text import CJK, fold
from memd.push.patterns import Lists

WORDS = 4
"""Words that a quotation needs to be what somebody said."""

CHARACTERS = 6
"""The same in scripts without spaces."""

_LINE = 2_000
"""Characters of a line that are read on each side of a passage."""

_BEFORE = 80
"""Characters before a quotation in which the user may say that it is their own."""

_LISTS = Lists(Path(__file__).parent / "support", "says", "says_it")
_MARKED = re.compile(
    r'"[^"\n]{1,600}"|“[^“”\n]{1,600}”|„[^„“”\n]{1,600}[“”]|«[^«»\n]{1,600}»|「[^「」\n]{1,600}」|『[^『』\n]{1,600}』'
    r"|(?<!\w)['‘](?=\w)[^'’‘\n]{1,600}(?:['’]\w[^'’‘\n]{0,600}){0,20}['’](?!\w)"
)
_MARK = re.compile("[\"“„«「『'‘]")
_SENTENCE_END = re.compile(r"[.!?。！？\n]")
_WORD = re.compile(r"\w+")
_CJK = re.compile(f"[{CJK}]")


def is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a passage of a turn is a quotation that the user does not give as their own words, or part of one.

    The words that say who speaks ("Tom says '…'") may stand in the passage too.
    """
    first = max(0, start - _LINE, text.rfind("\n", 0, start) + 1)
    text, start, end = text[first : end + _LINE], start - first, end - first
    spans = [
        marked.span()
        for marked in (_MARKED.finditer(text) if _MARK.search(text) else ())
        if marked.start() < end and start < marked.end() and _is_speech(marked[0]) and not _is_own(text, marked.start())
    ]
    outside = "".join(
        text[place] for place in range(start, end) if not any(first <= place < last for first, last in spans)
    )
    if not spans or not any(map(str.isalnum, outside)):
        return bool(spans)
    inside = sum(map(str.isalnum, text[start:end])) - sum(map(str.isalnum, outside))
    return inside > sum(map(str.isalnum, outside)) and _LISTS["says"].search(fold(outside)) is not None


def _is_speech(marked: str) -> bool:
    return len(_CJK.findall(marked)) >= CHARACTERS or len(_WORD.findall(marked)) >= WORDS


def _is_own(text: str, start: int) -> bool:
    """Whether the words before a quotation, in its sentence, say that the user says it."""
    before = _SENTENCE_END.split(text[max(0, start - _BEFORE) : start])[-1]
    return _LISTS["says_it"].search(fold(before)) is not None
