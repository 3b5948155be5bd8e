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


def without_echo(turn: Turn, contents: Iterable[str]) -> Turn | None:
    """The turn without excerpts from lines that repeat one of these sentences; None when it has no other line."""
    text = fold(turn.text)
    known = {normal_key(content) for content in contents if _folded(content) in text}
    if not known:
        return turn
    echoes = set(_echoes(turn.text, known))
    if not echoes:
        return turn
    lines = {match.span() for match in _LINE.finditer(turn.text) if match[0].strip()}
    if lines <= echoes:
        return None
    excerpts = tuple(
        (start, end) for start, end in turn.excerpts if not any(start < last and first < end for first, last in echoes)
    )
    return structs.replace(turn, excerpts=excerpts)


def _folded(content: str) -> str:
    return (content.casefold() if content.isascii() else fold(content)).strip(" .。")


def _echoes(text: str, known: set[str]) -> Iterator[tuple[int, int]]:
    for line in _LINE.finditer(text):
        said = _HEAD.sub("", line[0], count=1)
        if len(said) >= (LEAST_CJK if _CJK.search(said) else LEAST) and normal_key(said) in known:
            yield line.span()
