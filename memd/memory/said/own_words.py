"""Own words: a user's turn without what it only shows: code, quoted lines, pasted mails, transcripts and articles.

What is shown is blanked out, character by character, so that places in the result are places in the turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from memd.push.patterns import Lists, load, prepared
from memd.push.prefilter import Prefilter

_FOLDER = Path(__file__).with_suffix("")
_LISTS = Lists(_FOLDER, "shows", "headers", "announces", "cuts")

LONGEST_END = 160
"""Characters of a last paragraph after a paste that may be the user's own again."""

_LONGEST_ANNOUNCEMENT = 300
"""Characters of a line that can announce a paste."""

_HEADERS = 2
"""So many lines of a mail's head in a row begin a pasted mail."""

_LINE = re.compile(r"[^\n]*\n?")
_NOT_A_BREAK = re.compile(r"[^\n]")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_QUOTED = re.compile(r"[ \t]*[>＞]")
_SPEAKER = re.compile(
    r"[ \t]*(?:\[?\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?\]?[ \t,-]*)?([^\W\d_][\w .'-]{0,24})[:：][ \t]*\S"
)
_CODE = re.compile(r"`[^`\n]+`")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,40})(?:\s[^<>\n]{0,200})?>")


@prepared
def _prefilter() -> Prefilter[str]:
    sources = load(_FOLDER)
    return Prefilter([(source, name) for name, listed in sources.items() for source in listed], folded=True)


def own_words(text: str) -> str:
    """The text with everything that is only shown blanked out. It has the same length and the same line breaks."""
    if "<" in text:
        text = _without_tagged(text)
    if "`" in text or "~~~" in text:
        text = _without_fences(text)
        text = _CODE.sub(_blank, text)
    if "\n" in text or ":" in text or "：" in text or ">" in text or "＞" in text:
        text = _without_pastes(text)
    return text


def is_speech(text: str, place: int) -> bool:
    """Whether a place is in the line of a transcript: a speaker says it, who may be the user."""
    start = text.rfind("\n", 0, place) + 1
    speaker = _SPEAKER.match(text, start)
    return speaker is not None and speaker[1] in _speakers(_LINE.findall(text))


def _blank(match: re.Match[str]) -> str:
    return _blanked(match[0])


def _blanked(text: str) -> str:
    return _NOT_A_BREAK.sub(" ", text)


def _without_tagged(text: str) -> str:
    """The text without what stands between a tag and its closing one; the outermost pairs count."""
    kept, end = [], 0
    opened: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag[2].casefold()
        if not tag[1]:
            opened.setdefault(name, tag.start())
        elif (start := opened.get(name)) is not None:
            opened.clear()
            kept += [text[end:start], _blanked(text[start : tag.end()])]
            end = tag.end()
    return "".join([*kept, text[end:]])


def _without_fences(text: str) -> str:
    """The text without fenced code; a fence that is not closed goes on to the end."""
    lines, fence = [], ""
    for line in _LINE.findall(text):
        mark = _FENCE.match(line)
        closes = fence and mark is not None and mark[1] == fence
        lines.append(_blanked(line) if fence or mark else line)
        if closes:
            fence = ""
        elif mark is not None and not fence and line.count(mark[1]) == 1:
            fence = mark[1]
    return "".join(lines)


def _without_pastes(text: str) -> str:
    """The text without quoted lines, pasted mails, transcripts, and what a line announces."""
    lines = _LINE.findall(text)
    speakers = _speakers(lines)
    start = _pasted_from(text, lines)
    if start is None:
        end = len(lines)
    else:
        end = _last_paragraph(lines, start)
        lines[start:end] = map(_blanked, lines[start:end])
    shown = (index for index in range(len(lines)) if start is None or index < start or index >= end)
    for index in shown:
        lines[index] = _own_part(lines[index], speakers)
    return "".join(lines)


def _own_part(line: str, speakers: frozenset[str]) -> str:
    """A line without what it quotes or announces."""
    if _QUOTED.match(line):
        return _blanked(line)
    speaker = _SPEAKER.match(line) if speakers else None
    if speaker and speaker[1] in speakers:
        return _blanked(line)
    head = line[:_LONGEST_ANNOUNCEMENT]
    if (":" in head or "：" in head) and _could("shows", head) and (shown := _LISTS["shows"].search(head)):
        return line[: shown.end()] + _blanked(line[shown.end() :])
    return line


def _could(name: str, line: str) -> bool:
    return _prefilter().finds(line) and name in _prefilter().select(line)


def _speakers(lines: list[str]) -> frozenset[str]:
    """The names of a transcript: they stand before a colon at the start of a line, one of them more than once."""
    names = Counter(match[1] for match in map(_SPEAKER.match, lines) if match)
    return frozenset(names) if len(names) > 1 and max(names.values()) > 1 else frozenset()


def _pasted_from(text: str, lines: list[str]) -> int | None:
    """The first line of a pasted text; None when there is none."""
    if not _prefilter().finds(text):
        return None
    headers = 0
    for index, line in enumerate(lines):
        head = line[:_LONGEST_ANNOUNCEMENT].rstrip()
        headers = headers + 1 if _LISTS["headers"].match(head) else 0
        if headers == _HEADERS:
            return index - _HEADERS + 1
        if head.endswith((":", "：")) and index + 1 < len(lines) and _LISTS["announces"].search(head):
            return index + 1
        if _LISTS["cuts"].match(head):
            return index
    return None


def _last_paragraph(lines: list[str], start: int) -> int:
    """The line where a pasted text ends: before a short last paragraph, which may be the user's own again."""
    last = next((index for index in range(len(lines) - 1, -1, -1) if lines[index].strip()), -1)
    blanks = [index for index in _paragraph_ends(lines, start) if index < last]
    if len(blanks) < 1 or len("".join(lines[blanks[-1] :]).strip()) > LONGEST_END:
        return len(lines)
    return blanks[-1] if any(line.strip() for line in lines[start : blanks[-1]]) else len(lines)


def _paragraph_ends(lines: list[str], start: int) -> Iterator[int]:
    return (index for index in range(start + 1, len(lines)) if not lines[index].strip())
