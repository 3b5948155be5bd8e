"""The user's own sentences in a message, for the offline extractor."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memd.push.prefilter import Prefilter

MASK = "\x00"
"""Replaces each character of code and quotations, which others may have written; no statement contains it."""

MAX_SENTENCE_CHARS = 400
"""Plain statements are short; this also bounds the time that one sentence can take."""

MIN_SENTENCE_CHARS = 3
"""我吃素 is the shortest statement."""

MAX_READ = 1_500
"""Most sentences of one message that are read, of those that may hold a statement. A document keeps 300 facts."""

_NOT_OWN = re.compile(
    r"```.*?(?:```|\Z)"
    r"|(?m:^[ \t]*>.*$)"
    r"|`[^`\n]*\s[^`\n]*`"
    r'|"[^"\n]*(?:"|$)|“[^”]*(?:”|\Z)|「[^」]*(?:」|\Z)|『[^』]*(?:』|\Z)|«[^»]*(?:»|\Z)',
    re.S | re.M,
)
_SINGLE_WORD = re.compile("(?=[^\\s`]{0,32}+\\Z)[^\u4e00-\u9fff]*+(?:[\u4e00-\u9fff][^\u4e00-\u9fff]*+){0,4}+")
_END = re.compile(r"[。！？!?；;…\n]+|\.+(?=[\s\x00]|$|[\u4e00-\u9fff])")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:dr|mr|mrs|ms|st|prof|vs|etc|no|inc|ltd|co|jr|sr|e\.g|i\.e|a\.m|p\.m|[A-Z](?:\.[A-Z])*)$", re.I
)
_WORD = re.compile(r"[^\W\d_]")
_BULLET = re.compile(r"[\s\-*•·#]*(?:\d{1,2}[.)、]\s*)?")
_TEXT_WORK = re.compile(
    r"\b(?:translate|proofread|rewrite|rephrase|paraphrase|summari[sz]e|pretend|role-?play|act as)\b"
    r"|翻译|润色|改写|校对|续写|扮演|假装|总结一下这",
    re.I,
)
_TEXT_WORK_PREFILTER = Prefilter([(_TEXT_WORK.pattern, None)], folded=True)
_ABOUT_ME = re.compile(r"\babout (?:me|myself)\b|关于我|自我介绍|我的情况", re.I)


def sentences(text: str, may_state: Callable[[str], bool]) -> Iterator[tuple[str, str, str]]:
    """The user's own sentences that may hold a statement, as (masked, verbatim for the quote, previous sentence).

    A message that asks to work on a text contains that text, so none of it is read. Text after a line that ends in a
    colon is not read either, unless the line announces facts about the user.
    """
    if _TEXT_WORK_PREFILTER.select(text) and _TEXT_WORK.search(text):
        return
    masked = _NOT_OWN.sub(_mask, text)
    start = read = 0
    before = ""
    for end in sentence_ends(masked):
        first, start = start, end
        if end - first < MIN_SENTENCE_CHARS:
            continue
        body = masked[first:end]
        if body.rstrip().endswith((":", "：")) and not _ABOUT_ME.search(body):
            return
        if may_state(body):
            first = _after_bullet(masked, first)
            sentence, quote = masked[first:end].strip(), text[first:end].strip()
            if len(quote) <= MAX_SENTENCE_CHARS and _WORD.search(quote):
                yield sentence, quote, before[_after_bullet(before, 0) :].strip()
                read += 1
        before = body
        if read == MAX_READ:
            return


def _after_bullet(text: str, start: int) -> int:
    bullet = _BULLET.match(text, start)
    return bullet.end() if bullet else start


def _mask(match: re.Match[str]) -> str:
    """A single quoted word stays, as it is a name or a term; anything longer may be somebody else's sentence."""
    span = match[0]
    return span if _SINGLE_WORD.fullmatch(span) else MASK * len(span)


def sentence_ends(masked: str) -> Iterator[int]:
    """Where sentences end: behind their last mark, at the ends of lines, and at the end of the text."""
    for match in _END.finditer(masked):
        if match[0] != "." or not _is_abbreviation(masked[max(0, match.start() - 8) : match.start()]):
            yield match.end()
    yield len(masked)


def _is_abbreviation(before: str) -> bool:
    """Whether the characters before a full stop are an abbreviation; no abbreviation has five letters in a row."""
    long_word = len(before) >= 5 and before[-5:].isalpha()
    return not long_word and _ABBREVIATION.search(before) is not None
