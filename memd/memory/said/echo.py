"""Echo: what memd showed, said again by a user who pasted it. It is nothing new, so it is not kept again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import structs

from memd.memory.said.turns import Turn
from memd.memory.text import CJK, fold, normal_key

LEAST = 30
"""Characters of a line that can be an echo: shorter sentences are said twice by chance."""

LEAST_CJK = 12
"""The same for a line in Chinese, Japanese or Korean."""

_LINE = re.compile(r"[^\n]+")
_HEAD = re.compile(r"\s*(?:[-*•>]\s*)*(?:\[[^\]\n]{0,120}\]\s*)?")
"""What stands before a fact where it was shown: a bullet, and its category in brackets."""

_CJK = re.compile(f"[{CJK}]")
_PAIR = re.compile("[\u4e00-\u9fff]{2}")


def without_echo(turn: Turn, contents: Iterable[str]) -> Turn | None:
    """The turn without excerpts from lines that repeat one of these sentences; None when it has no other line."""
    lines = dict(_long_lines(turn.text))
    if not lines:
        return turn
    text, least = fold(turn.text), min(map(len, lines.values()))
    likely = (one for one in contents if len(one) >= least or not one.isascii())  # an ASCII key is no longer than it
    known = {normal_key(content) for content in likely if _is_in(text, content)}
    echoes = {span for span, key in lines.items() if key in known}
    if not echoes:
        return turn
    if {match.span() for match in _LINE.finditer(turn.text) if match[0].strip()} <= echoes:
        return None
    excerpts = tuple(
        (start, end) for start, end in turn.excerpts if not any(start < last and first < end for first, last in echoes)
    )
    return structs.replace(turn, excerpts=excerpts)


def _long_lines(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """The place and the key of each line that is long enough for an echo."""
    for line in _LINE.finditer(text):
        said = _HEAD.sub("", line[0], count=1)
        if len(said) >= (LEAST_CJK if _CJK.search(said) else LEAST):
            yield line.span(), normal_key(said)


def _is_in(text: str, content: str) -> bool:
    """Whether a folded text has a content, folded."""
    if content.isascii():
        return content.casefold().strip(" .") in text
    pair = _PAIR.search(content)  # of Chinese, folding leaves two characters in a row as they are
    return (pair is None or pair[0] in text) and fold(content).strip(" .。") in text
