"""What the two languages of the offline extractor share: sentences of a message, rules, and what they find."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memd.push.prefilter import Prefilter

MASK = "\x00"
"""Stands for each character that somebody else may have said (code, quotations); no statement may touch it."""

MAX_VALUE_CHARS = 120
"""A longer value is a paragraph, not a plain statement."""

MAX_SENTENCE_CHARS = 400
"""Plain statements are short; the cap also bounds the time that one sentence can take."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of plain statement. `{0}` in the template is the pattern's value, `{1}` its other group.

    `single`: a user has one of these at a time, so that a new one replaces the old. `long`: the value may be a phrase
    with "and" and commas in it. `accept` has the last word on a value.
    """

    kind: str
    pattern: re.Pattern[str]
    template: str
    category: str
    single: bool = False
    long: bool = False
    accept: Callable[[str], bool] | None = None
    kin: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """One statement.

    Of the kind `over`: the fact of kind `content` with this value holds no longer. Of the kind `correction`: `value` is
    right, `wrong` was wrong, wherever that stood; the content may be empty.
    """

    kind: str
    content: str
    category: str
    value: str = ""
    single: bool = False
    corrects: bool = False
    wrong: str = ""
    person: str = ""
    relationship: str = ""


_FOREIGN = re.compile(
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
# Chinese is set with a space around Latin words and numbers.
_HAN_BEFORE = re.compile("(?<=[\u4e00-\u9fff])\\{0\\}")
_HAN_AFTER = re.compile("\\{0\\}(?=[\u4e00-\u9fff])")
_WORD = re.compile(r"[^\W\d_]")
_BULLET = re.compile(r"[\s\-*•·#]*(?:\d{1,2}[.)、]\s*)?")
_MATERIAL = re.compile(
    r"\b(?:translate|proofread|rewrite|rephrase|paraphrase|summari[sz]e|pretend|role-?play|act as)\b"
    r"|翻译|润色|改写|校对|续写|扮演|假装|总结一下这",
    re.I,
)
_WORK_ON = Prefilter([(_MATERIAL.pattern, None)], folded=True)
_ABOUT_ME = re.compile(r"\babout (?:me|myself)\b|关于我|自我介绍|我的情况", re.I)


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


def sentences(text: str) -> Iterator[tuple[str, str]]:
    """The user's own sentences: each as it is to be read (masked) and as it stands there (the quote).

    A message that asks to work on a text holds that text, so none of it is read; neither is what follows a line that
    ends in a colon, unless the line announces facts about the user.
    """
    if _WORK_ON.select(text) and _MATERIAL.search(text):
        return
    masked = _FOREIGN.sub(_mask, text)
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
    """A quoted single word stays: it is a name or a term; anything longer may be somebody else's sentence."""
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


def found_by(rule: Rule, value: str, relationship: str = "") -> Found | None:
    """What a rule says of a value; None when the value is not one that it takes."""
    if not value or (rule.accept and not rule.accept(value)):
        return None
    template = rule.template.replace("{1}", relationship)
    if value[0].isascii() and value[0].isalpha():
        template = _HAN_BEFORE.sub(" {0}", template)
    if value[-1].isascii() and value[-1].isalpha():
        template = _HAN_AFTER.sub("{0} ", template)
    return Found(
        kind=rule.kind,
        content=template.replace("{0}", value),
        category=rule.category,
        value=value,
        single=rule.single,
        person=value if rule.kin else "",
        relationship=relationship,
    )
