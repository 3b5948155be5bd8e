"""The user's own sentences in a message, for the offline extractor."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from memd.push.sentence_ends import sentence_ends

if TYPE_CHECKING:
    from memd.extraction.offline.grammar import Grammar

MASK = "\x00"
"""Replaces each character of code and quotations, which others may have written; no statement contains it."""

MAX_SENTENCE_CHARS = 400
"""Plain statements are short; this also bounds the time that one sentence can take."""

MAX_MESSAGE_CHARS = 1_500
"""A longer message holds pasted text: of the false facts that were drawn from real turns most came out of one."""

MAX_OWN_CHARS = 8_000
"""The same for a message that begins by announcing facts about the user, which is read whatever it mentions: 30 ms."""

ANNOUNCED_CHARS = 60

_NOT_OWN = re.compile(
    r"```.*?(?:```|\Z)"
    r"|(?m:^[ \t]*>.*$)"
    r"|`[^`\n]*\s[^`\n]*`"
    r'|"[^"\n]*(?:"|$)|“[^”]*(?:”|\Z)|「[^」]*(?:」|\Z)|『[^』]*(?:』|\Z)|«[^»]*(?:»|\Z)',
    re.S | re.M,
)
_SINGLE_WORD = re.compile("(?=[^\\s`]{0,32}+\\Z)[^\u4e00-\u9fff]*+(?:[\u4e00-\u9fff][^\u4e00-\u9fff]*+){0,4}+")
_INTRODUCES = re.compile(r"[:：](?:\s*\d{1,2}[.)、])?\Z")
"""The end of a line, or of the part before the first number of a list, that says what follows."""

_BULLET = re.compile(r"[\s\-*•·#]*(?:\d{1,2}[.)、]\s*)?")


def sentences(text: str, grammars: Collection[Grammar]) -> Iterator[tuple[str, str]]:
    """The user's own sentences, as (masked, verbatim for the quote).

    A message that asks to work on a text, or to play a role, contains words of others, so none of it is read. Text
    after a line that ends in a colon is not read either, nor a list behind a colon, unless facts about the user are
    announced.
    """
    own = any(each.marks["about_me"].search(text[:ANNOUNCED_CHARS]) for each in grammars)
    if len(text) > (MAX_OWN_CHARS if own else MAX_MESSAGE_CHARS):
        return
    if not own and any(each.pasted.any_in(text) for each in grammars):
        return
    masked = _NOT_OWN.sub(_mask, text)
    start = 0
    for end in sentence_ends(masked):
        first, start = start, end
        body = masked[first:end].strip()
        colon = _INTRODUCES.search(body)
        if colon and not any(each.marks["about_me"].search(body[: colon.start()]) for each in grammars):
            return
        bullet = _BULLET.match(masked, first)
        first = bullet.end() if bullet else first
        if body and end - first <= MAX_SENTENCE_CHARS:
            yield masked[first:end].strip(), text[first:end].strip()


def _mask(match: re.Match[str]) -> str:
    """A single quoted word stays, as it is a name or a term; anything longer may be somebody else's sentence."""
    span = match[0]
    return span if _SINGLE_WORD.fullmatch(span) else MASK * len(span)
