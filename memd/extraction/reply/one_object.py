"""Finds the one update in the text of a reply: without fences, prose, thinking and wrappers around it.

The text must hold exactly one object that is an update. A second, different update refuses the reply, and so does an
object that breaks off or is broken: nobody knows which one is meant, or what is missing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from memd.extraction.prompt import unescape
from memd.extraction.reply.lenient_json import Broken, LenientParser, decoder
from memd.extraction.reply.names import is_new_fact, is_update, plain
from memd.extraction.update import BadReply

MAX_PLACES = 200
"""Most places of a text where an object may begin."""

MAX_WRAPPERS = 4
"""Most objects, lists or strings around an update."""

WRAPPERS = frozenset(
    {"answer", "args", "arguments", "data", "finalanswer", "input", "json", "memory", "memoryupdate", "output"}
    | {"parameters", "payload", "reply", "response", "result", "results", "update", "updates"}
)
"""Plain names under which models and servers put the whole update."""

_TAG = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis)"
_THINKS = re.compile(rf"<{_TAG}>|\[THINK\]|◁think▷|<\|channel\|>analysis", re.I)
_THOUGHT = re.compile(rf"</{_TAG}>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>", re.I)
_BEGIN = re.compile(r"\{(?=\s*+[\"'“”\w$}])|\[(?=\s*+\{)")
_FENCE_BEFORE = re.compile(r"(?:```|~~~)[\w +-]*+\s*+\Z")
_FENCE_AFTER = re.compile(r"\s*+(?:```|~~~)")
_NEAR = 80
_ENCODED = re.compile(r'\s*+\{(?:\\[nrt]|\s)*+\\"')
_INVISIBLE = "\ufeff\u200b\u2060\x00"
_ELLIPSIS = ("...", "…")


class Quotations:
    """The messages of a request, to tell an object that the model only quotes from one of them."""

    def __init__(self, sent: Iterable[str]) -> None:
        self._sent = [_bare(message) for message in sent if "{" in message]

    def hold(self, text: str) -> bool:
        """Whether a text stands in a message, blanks and the prompt's escaping aside."""
        return bool(self._sent) and any(_bare(text) in message for message in self._sent)


def _bare(text: str) -> str:
    return "".join(unescape(text).split())


class _Found(NamedTuple):
    """One update in a text, from `start` to `end`."""

    update: dict[str, Any]
    start: int
    end: int
    bare: bool = False
    """Whether it is one new fact alone."""


def find(text: str, mended: Counter[str], quoted: Quotations, *, partial: bool = False) -> dict[str, Any]:
    """The object that is the update; `mended` counts what was cut away, by kind. Raises BadReply.

    `partial`: the reply was truncated, and its complete items count.
    """
    text = _without_marks(text, mended)
    whole = _whole(text, mended)
    if whole is None:
        bare = text.strip().strip(_INVISIBLE)
        if bare != text.strip():
            mended["bom"] += 1
            whole = _whole(bare, mended)
        if whole is None:
            return _around(_without_thinking(bare, mended), mended, quoted, partial=partial)
    update = as_update(whole[0], mended)
    if update is None or (any(update.values()) and quoted.hold(text)):
        raise BadReply("no_update")
    return update


def _without_marks(text: str, mended: Counter[str]) -> str:
    """The text without `>` at the beginning of its lines, where each line has one, as in a quoted mail."""
    lines = text.strip().split("\n") if text.lstrip()[:1] == ">" else []
    if not lines or not all(line.lstrip().startswith(">") for line in lines if line.strip()):
        return text
    mended["prose"] += 1
    return "\n".join(line.lstrip().removeprefix(">").removeprefix(" ") for line in lines)


def as_update(value: Any, mended: Counter[str], depth: int = 0) -> dict[str, Any] | None:
    """The update that a value is or wraps; None when it is none. Raises BadReply for two different ones."""
    if depth > MAX_WRAPPERS:
        return None
    if isinstance(value, dict) and is_update(value):
        return value
    facts = value if isinstance(value, list) else [value]
    if facts and all(map(is_new_fact, facts)):
        mended["bare_facts"] += 1
        return {"newFacts": facts}
    if isinstance(value, str):
        decoded = _whole(value, mended) if value.lstrip()[:1] in ("{", "[") else None
        inner = [] if decoded is None else [decoded[0]]
    elif isinstance(value, dict):
        inner = [held for name, held in value.items() if plain(name) in WRAPPERS]
    else:
        inner = value if isinstance(value, list) else []
    update = _only(found for item in inner if (found := as_update(item, mended, depth + 1)) is not None)
    if update is not None:
        mended["encoded" if isinstance(value, str) else "wrapper"] += 1
    return update


def _only(updates: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The one update of these, which may be repeated. Raises BadReply for two different ones."""
    first = None
    for update in updates:
        if first is not None and update != first:
            raise BadReply("two_objects")
        first = update
    return first


def _whole(text: str, mended: Counter[str]) -> tuple[Any] | None:
    """The text as one JSON value and nothing else, maybe encoded once more as a string; None when it is not that."""
    counted: Counter[str] = Counter()
    value: Any
    try:
        value = decoder(counted).decode(text)
    except (ValueError, RecursionError):  # the message may quote the text
        if not _ENCODED.match(text):
            return None
        try:
            value = json.loads(f'"{text.strip()}"', strict=False)
        except ValueError:
            return None
    mended.update(counted)
    return (value,)


def _around(text: str, mended: Counter[str], quoted: Quotations, *, partial: bool) -> dict[str, Any]:
    """The update in a text that holds more than it."""
    try:
        return _single(text, mended, quoted, partial=partial)
    except BadReply:
        tail = text[max((thought.end() for thought in _THOUGHT.finditer(text)), default=len(text)) :]
        begin = _BEGIN.search(tail)
        if begin is None or _FENCE_BEFORE.sub("", tail[: begin.start()]).strip():
            raise
    mended["thinking"] += 1  # a broken draft, and then the answer
    return _single(tail, mended, quoted, partial=partial)


def _single(text: str, mended: Counter[str], quoted: Quotations, *, partial: bool) -> dict[str, Any]:
    """The update in a text without thinking at its beginning."""
    counted: Counter[str] = Counter()
    found = [one for one in _updates(text, counted, partial=partial) if not quoted.hold(text[one.start : one.end])]
    thought = max((tag.end() for tag in _THOUGHT.finditer(text) if not _within(tag, found)), default=0)
    if thought:  # its beginning was the server's, which cut it off
        counted["thinking"] += 1
        found = [one for one in found if one.start >= thought]
    found = _joined(text, found)
    if _only(one.update for one in found) is None:
        raise BadReply("no_update" if _BEGIN.search(text) else "no_object")
    before = text[thought : found[0].start]
    if _THINKS.search(before):
        raise BadReply("unclosed_thinking")
    if len(found) > 1:
        counted["repeated"] += 1
    _count_surroundings(before, text[found[-1].end :], counted)
    mended.update(counted)
    return found[0].update


def _joined(text: str, found: list[_Found]) -> list[_Found]:
    """Facts on lines of their own, with nothing between them, as one update; else what was found."""
    gaps = (text[one.end : after.start] for one, after in pairwise(found))
    if len(found) < 2 or not all(one.bare for one in found) or any(gap.strip(" \t\r\n,") for gap in gaps):
        return found
    facts = [fact for one in found for fact in one.update["newFacts"]]
    return [_Found({"newFacts": facts}, found[0].start, found[-1].end)]


def _within(tag: re.Match[str], found: Iterable[_Found]) -> bool:
    """Whether a tag is part of an update's own text."""
    return any(one.start < tag.start() < one.end for one in found)


def _updates(text: str, mended: Counter[str], *, partial: bool) -> Iterator[_Found]:
    """The updates in a text, in order. Raises BadReply for an object that is broken or breaks off."""
    place = places = 0
    while begin := _BEGIN.search(text, place):
        places += 1
        if places > MAX_PLACES:
            raise BadReply("too_many_objects")
        start = begin.start()
        try:
            value, place = _parse(text, start, mended, partial=partial)
        except Broken as error:
            if error.code == "too_deep" or (error.began and not text.startswith(_ELLIPSIS, error.place)):
                raise BadReply(error.code) from None
            if error.code == "incomplete":  # a brace and a quotation mark of the prose: nothing else follows
                return
            place = max(error.place, start + 1)  # a brace of the prose, or a template without content
        else:
            update = as_update(value, mended)
            if update is not None:
                yield _Found(update, start, place, bare=is_new_fact(value))


def _parse(text: str, start: int, mended: Counter[str], *, partial: bool) -> tuple[Any, int]:
    """The value that begins at `start`, and its end. Raises Broken."""
    counted: Counter[str] = Counter()
    try:
        value, end = decoder(counted).raw_decode(text, start)
    except (ValueError, RecursionError):  # not JSON by the standard: the slower parser says what it is
        counted.clear()
        parser = LenientParser(text, start, counted, partial)
        value, end = parser.value(), parser.place
    mended.update(counted)
    return value, end


def _without_thinking(text: str, mended: Counter[str]) -> str:
    """The text behind the thinking that it begins with."""
    if not _THINKS.match(text):
        return text
    thought = _THOUGHT.search(text)
    if thought is None:
        raise BadReply("unclosed_thinking")
    mended["thinking"] += 1
    return text[thought.end() :]


def _count_surroundings(before: str, after: str, mended: Counter[str]) -> None:
    near = before[-_NEAR:]
    unfenced = _FENCE_BEFORE.sub("", near)
    closed = _FENCE_AFTER.match(after)
    if unfenced != near or closed:
        mended["fence"] += 1
    if (before[:-_NEAR] + unfenced).strip() or after[closed.end() if closed else 0 :].strip():
        mended["prose"] += 1
