"""The user's own sentences in a message, for the offline extractor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memd.push.prefilter import Prefilter

MASK = "\x00"
"""Replaces each character that somebody else may have said (code, quotations); no statement may contain it."""

MAX_SENTENCE_CHARS = 400
"""Plain statements are short; this also bounds the time that one sentence can take."""

_NOT_OWN = re.compile(
    r"```.*?(?:```|\Z)"
    r"|(?m:^[ \t]*>.*$)"
    r"|`[^`\n]*\s[^`\n]*`"
    r'|"[^"\n]*(?:"|$)|“[^”]*(?:”|\Z)|「[^」]*(?:」|\Z)|『[^』]*(?:』|\Z)|«[^»]*(?:»|\Z)',
    re.S | re.M,
)
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


def sentences(text: str) -> Iterator[tuple[str, str]]:
    """The user's own sentences, each masked (for reading) and verbatim (the quote).

    A message that asks to work on a text contains that text, so none of it is read. Text after a line that ends in a
    colon is not read either, unless the line announces facts about the user.
    """
    if _TEXT_WORK_PREFILTER.select(text) and _TEXT_WORK.search(text):
        return
    masked = _NOT_OWN.sub(_mask, text)
    start = 0
    for end in _ends(masked):
        body = masked[start:end]
        if body.rstrip().endswith((":", "：")) and not _ABOUT_ME.search(body):
            return
        skip = _BULLET.match(body)
        offset = start + (skip.end() if skip else 0)
        quote = text[offset:end].strip()
        if len(quote) <= MAX_SENTENCE_CHARS and _WORD.search(quote):
            yield masked[offset:end].strip(), quote
        start = end


def _mask(match: re.Match[str]) -> str:
    """A single quoted word stays, as it is a name or a term; anything longer may be somebody else's sentence."""
    span = match[0]
    short = len(span) <= 32 and not re.search(r"[\s`]", span) and len(re.findall("[\u4e00-\u9fff]", span)) <= 4
    return span if short else MASK * len(span)


def _ends(masked: str) -> Iterator[int]:
    for match in _END.finditer(masked):
        before = masked[max(0, match.start() - 8) : match.start()]
        long_word = len(before) >= 5 and before[-5:].isalpha()  # no abbreviation has five letters in a row
        if match[0] != "." or long_word or not _ABBREVIATION.search(before):
            yield match.end()
    yield len(masked)
