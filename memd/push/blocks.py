"""Blocks: what an app puts into a message besides the words of its user, found so that it can be cut out.

Two are known: memd's own `<memory>` block, which came back with the prompt, and the list of uploaded files that a host
writes. Both begin at a line's start, and each is told from a tag of the user's own by its content: memd's block by its
first line, and if it is not closed by the lines behind that too; the host's, which must be closed, by its lines. A text
about such a tag is kept whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memd.push.patterns import compiled, load, prepared


class Block(NamedTuple):
    """A block in a text: its kind, and its place."""

    kind: str
    start: int
    end: int


class _Blocks(NamedTuple):
    block_tag: re.Pattern[str]
    memory_part: re.Pattern[str]
    file_line: re.Pattern[str]
    host_line: re.Pattern[str]


@prepared
def _patterns() -> _Blocks:
    sources = load("blocks")
    return _Blocks(*(compiled(sources[name]) for name in _Blocks._fields))


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
    for tag in patterns.block_tag.finditer(text):
        if tag["list"]:
            uploads[tag["list"]] = tag
        elif tag["list_end"]:
            opening = uploads.pop(tag["list_end"], None)
            if opening and _lists_files(text[opening.end() : tag.start()]):
                yield Block("uploads", opening.start(), tag.end())
        else:
            if memory is not None and (end := tag.end() if tag["own_end"] else _parts_end(text, memory)):
                yield Block("memory", memory, end)
            memory = tag.start() if tag["own"] else None
    if memory is not None and (end := _parts_end(text, memory)):
        yield Block("memory", memory, end)


def _parts_end(text: str, start: int) -> int | None:
    """The end of a block of memd that was never closed: after the last part that only its own block has.

    None: there is no such part, so the user wrote it.
    """
    end, place = None, text.index("\n", start) + 1
    while part := _patterns().memory_part.match(text, place):
        end = place = part.end()
        while text.startswith("\n", place):
            place += 1
    return end


def _lists_files(body: str) -> bool:
    """Whether a host's list of files looks like this; an empty one loses nothing. Indented lines belong to a file."""
    file_line, host_line = _patterns().file_line, _patterns().host_line
    lines = [line for line in body.splitlines() if line.strip()]
    others = [line for line in lines if not file_line.match(line.strip())]
    if lines and len(others) == len(lines):
        return False
    return all(line.startswith(("  ", "\t")) or host_line.match(line.strip()) for line in others)
