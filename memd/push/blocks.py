"""Blocks: what an app puts into a message besides the words of its user, found so that it can be cut out.

Two are known: memd's own `<memory>` block, which came back with the prompt, and the list of uploaded files that a host
writes. Both begin at a line's start, and each is told from a tag of the user's own by its content: memd's block by its
first line, the host's, which must be closed, by lines that are no placeholder. A text about such a tag is kept whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from memd.push.patterns import compiled, load


class Block(NamedTuple):
    """A block in a text: its kind, and its place."""

    kind: str
    start: int
    end: int


class _Blocks(NamedTuple):
    tag: re.Pattern[str]
    memory_line: re.Pattern[str]
    placeholder: re.Pattern[str]


@cache
def _patterns() -> _Blocks:
    sources = load("blocks")
    return _Blocks(*(compiled(sources[name]) for name in ("block_tag", "memory_line", "placeholder")))


def cut(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The text without its blocks, and the blocks, each with its kind."""
    if "<" not in text:
        return text, ()
    found = sorted(_blocks(text), key=lambda block: block.start)
    if not found:
        return text, ()
    kept, end = [], 0
    for block in found:
        kept.append(text[end : block.start])
        end = max(end, block.end)
    return "".join([*kept, text[end:]]), tuple((block.kind, text[block.start : block.end]) for block in found)


def _blocks(text: str) -> Iterator[Block]:
    """The blocks of a text, in one pass over the tags: a closing tag belongs to the nearest opening one before it."""
    patterns = _patterns()
    memory: int | None = None
    uploads: dict[str, re.Match[str]] = {}
    for tag in patterns.tag.finditer(text):
        if tag["list"]:
            uploads[tag["list"]] = tag
        elif tag["list_end"]:
            opening = uploads.pop(tag["list_end"], None)
            if opening and not patterns.placeholder.match(text[opening.end() : tag.start()]):
                yield Block("uploads", opening.start(), tag.end())
        else:
            if memory is not None:
                yield Block("memory", memory, tag.end() if tag["own_end"] else _lines_end(text, memory))
            memory = tag.start() if tag["own"] else None
    if memory is not None:
        yield Block("memory", memory, _lines_end(text, memory))


def _lines_end(text: str, start: int) -> int:
    """The end of a block of memd that was never closed: after the last line that only its own block has."""
    end = text.index("\n", start)
    while (line := _patterns().memory_line.match(text, end + 1)) and line.end() > end:
        end = line.end()
        if end >= len(text):
            break
    return end
