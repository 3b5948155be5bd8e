"""Tool text: what programs write into a user's turn: results of tools, observations of an agent's loop, reminders.

It is no word of the user, so it is cut and never proves anything. What only looks like it, such as a lab report with
"Observation:", is kept: the marks that people write as well count only after a turn of the assistant that calls a tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import orjson

from memd.push.patterns import Lists, prepared
from memd.push.prefilter import Prefilter
from memd.push.shapes import Kind, RawTurn

KIND = "tool_text"
"""What a piece is called where the cut pieces of turns are counted."""

AfterCall = Callable[[], bool]
"""Whether the turn before calls a tool."""

_QUOTES = "`'\"“‘「『（(["
"""A tag directly behind one of these is quoted."""

_LINE_ENDS = re.compile(r"[ \t]*(?:\n|<|\Z)")
"""Behind a block: the line ends, or the next tag begins."""

_ACTION_CHARS = 200
"""Characters of an action's line that show whether it names a tool."""


_WITHOUT_BRACKETS = ("heading", "heading_after_call", "loop_line")
"""The lists of what may stand in a text that has neither tags nor JSON."""

_LISTS = Lists("tool_text", *_WITHOUT_BRACKETS, "call", "result_json", "tag", "tag_after_call")


class _Span(NamedTuple):
    start: int
    end: int
    """0 until the block is closed."""

    begins_line: bool = True


@prepared
def _prefilter() -> Prefilter[None]:
    return Prefilter([(source, None) for name in _WITHOUT_BRACKETS for source in _LISTS.sources(name)], folded=True)


def _could_hold(text: str) -> bool:
    """Whether a text could hold tool text, by the characters and words that all of it has."""
    if "<" in text or "[" in text or text.startswith("{"):
        return True
    if ":" not in text and "：" not in text and "\n" not in text and "`" not in text:
        return False
    return _prefilter().finds(text)


def calls_a_tool(text: str) -> bool:
    """Whether a turn of the assistant calls a tool in its words, as models without an interface for tools do."""
    return _LISTS["call"].search(text) is not None


def without_tool_text(turns: Sequence[RawTurn]) -> list[RawTurn]:
    """The turns without the tool text in those of the user. A turn of nothing else becomes a tool's."""
    befores: Iterable[RawTurn | None] = (None, *turns)
    return [_without(turn, before) for turn, before in zip(turns, befores, strict=False)]


def _without(turn: RawTurn, before: RawTurn | None) -> RawTurn:
    if turn.kind != "user" or turn.hidden or not _could_hold(turn.text):
        return turn

    @cache  # few texts ask
    def after_call() -> bool:
        return before is not None and before.kind == "assistant" and (before.calls_tools or calls_a_tool(before.text))

    text, pieces = cut(turn.text, after_call)
    if not pieces:
        return turn
    kind: Kind = turn.kind if text or turn.has_files or turn.has_unknown else "tool"
    return turn._replace(kind=kind, text=text, cut=(*turn.cut, *((KIND, piece) for piece in pieces)))


def cut(text: str, after_call: AfterCall) -> tuple[str, tuple[str, ...]]:
    """A user's text without tool text, and the pieces that were cut. `after_call`: does the turn before call a tool?"""
    if _is_result(text, after_call):
        return "", (text,)
    spans = list(_blocks(text, after_call))
    if not spans:
        return _without_loop(text, after_call)
    kept, end = [], 0
    for span in spans:
        kept.append(text[end : span.start])
        end = span.end
    rest, more = _without_loop("".join([*kept, text[end:]]).strip(), after_call)
    return rest, tuple(text[span.start : span.end] for span in spans) + more


def _is_result(text: str, after_call: AfterCall) -> bool:
    """Whether the whole text is the result of a tool."""
    if _LISTS["heading"].match(text) or (_LISTS["heading_after_call"].match(text) and after_call()):
        return True
    return _is_json(text) and (after_call() or _LISTS["result_json"].search(text) is not None)


def _is_json(text: str) -> bool:
    if text[:1] + text[-1:] not in ("{}", "[]"):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:  # the text is kept
        return False
    return True


def _blocks(text: str, after_call: AfterCall) -> Iterator[_Span]:
    """The blocks between tags, in order, found in one pass over the tags.

    A block ends at its last closing tag before the next of its name begins, so a result that holds its own tags does
    not end there. An opening tag in a fence of code, in quotation marks or within a sentence begins no block.
    """
    if "<" not in text and "[" not in text:
        return
    found: list[_Span] = []
    opened: dict[str, _Span] = {}
    fenced = False
    for tag in _LISTS["tag_after_call" if after_call() else "tag"].finditer(text):
        if tag["fence"]:
            fenced = fenced != all(span.end or not span.begins_line for span in opened.values())
            continue
        name = tag["name"].lower().replace("-", "_")
        span = opened.get(name)
        if tag["end"]:
            if span is not None:
                opened[name] = span._replace(end=tag.end())
        elif not fenced and (span is None or span.end or not span.begins_line):
            found += [] if span is None else [span]
            opened[name] = _Span(tag.start(), 0, _begins_line(text, tag.start()))
    first = min([*found, *opened.values()], default=None)
    if first and not first.end and not text[: first.start].strip() and after_call():
        yield first._replace(end=len(text))  # a result that its host has cut short
        return
    end = 0
    for span in sorted([*found, *opened.values()]):
        if span.end and span.start >= end and _stands_out(text, span):
            yield span
            end = span.end


def _begins_line(text: str, start: int) -> bool:
    while start and text[start - 1] in " \t":
        start -= 1
    return not start or text[start - 1] == "\n"


def _stands_out(text: str, span: _Span) -> bool:
    """Whether a block begins a line, follows another one, has several lines, or is glued to text and ends a line."""
    before = text[span.start - 1 : span.start]
    if before == ">" or span.begins_line:
        return True
    if before in _QUOTES:
        return False
    if text.find("\n", span.start, span.end) >= 0:
        return True
    return not before.isspace() and _LINE_ENDS.match(text, span.end) is not None


def _without_loop(text: str, after_call: AfterCall) -> tuple[str, tuple[str, ...]]:
    """The text without the lines of an agent's loop.

    After a call they go from the observation to the end. Otherwise the turn itself has to show an action with its
    observation, and they end with the paragraph of the last one.
    """
    start, acted, last = -1, False, -1
    for line in _LISTS["loop_line"].finditer(text):
        at = line.start()
        if line["observation"] and after_call():
            return text[:at].strip(), (text[at:],)
        start = at if start < 0 else start
        acted = acted or bool(line["input"]) or (bool(line["action"]) and calls_a_tool(text[at : at + _ACTION_CHARS]))
        last = at if last >= 0 or (acted and line["observation"]) else -1
    if last < 0:
        return text, ()
    blank = text.find("\n\n", last)
    end = len(text) if blank < 0 else blank
    return (text[:start] + text[end:]).strip(), (text[start:end],)
