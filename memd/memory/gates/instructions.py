"""Instructions: text that tells the assistant what to do instead of describing the user. It never becomes memory.

A memory is read at the start of every prompt, so one sentence that commands, permits, assigns a role or forges a tag
would act in all of them. A wish about the way of answering ("wants short answers") describes the user; a wish that data
leave, money moves or rules fall does not. The text is checked as a model would read it: without invisible characters,
with look-alike letters replaced, and with base64, hex and entities decoded.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from types import MappingProxyType
from urllib.parse import unquote

from memd.memory.gates import instructions_en, instructions_zh
from memd.memory.gates.addressed import addresses
from memd.memory.text import CJK
from memd.push.prefilter import Prefilter

LOOK_AT = 10_000
"""Characters of a text that are checked; no gate lets a longer one through."""

MAX_DECODED = 8
"""Encoded runs of one text that are decoded."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "forged_tag": "markup",
        "forged_update": "markup",
        "markup": "markup",
        "hidden": "instruction",
        "override": "instruction",
        "role": "instruction",
        "permission": "instruction",
        "trigger": "instruction",
        "exfiltration": "instruction",
        "steering": "instruction",
        "command": "instruction",
        "addressed": "instruction",
    }
)
"""The kinds of text that are no statement, the most telling first, and the reason each is refused with."""

_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")
"""The flags of England, Scotland and Wales: the only legitimate use of tag characters."""

_TAG = re.compile("[\U000e0000-\U000e007f]")
_HAS_CJK = re.compile(f"[{CJK}]")
_CJK_GAP = re.compile(rf"(?<=[{CJK}])[^\S\n]+(?=[{CJK}])")
_SPELLED = re.compile(r"(?<!\w)(?:[^\W\d_][ .*_-]{1,3}){7,}[^\W\d_](?!\w)")
"""Eight letters or more, spelled out one by one: no such sentence is worth storing."""

SHORTEST_ENCODED = 20
"""Characters of an encoded run at least."""

_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{SHORTEST_ENCODED},}}={{0,2}}")
_HEX = re.compile(rf"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{{2}}){{{SHORTEST_ENCODED // 2},}}(?![0-9A-Za-z])")
_ROT13 = re.compile(r"\b(?:gur|lbh|naq|nyy|hfre|jvgubhg|vtaber|cerivbhf|vafgehpgvbaf)\b")
"""English words in rot13 that are words of no language."""

_DIGITS = re.compile(r"(?<![\w.@/])(?=\w*[a-z])(?=\w*[0134578])[a-z0134578]{3,}(?![\w.@/])")
_STAND_IN = re.compile("[0134578]")
_LETTERS = str.maketrans("0134578", "oieastb")
"""Letters for the digits that stand in for them in a word ("1gn0re")."""

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнгпзԍ" + "αεορυχικνητωγ" + "ɑɡıℓ’‘“”«»„",
    "aeopcyxijshdqwkmtbhrn3g" + "aeopuxiknhtwy" + 'agil\'\'"""""',
)
"""Cyrillic, Greek and phonetic letters that look like Latin ones, and the shapes of quotation marks."""


def text_refusal(text: str) -> str | None:
    """The reason for refusing a text (`instruction`, `markup`); None when it is a statement."""
    kind = kind_of(text)
    return KINDS[kind] if kind else None


def kind_of(text: str) -> str | None:
    """The kind of a text that is no statement, one of KINDS; None for a statement. Never raises."""
    text = text[:LOOK_AT]
    return next((kind for reading in _readings(text) if (kind := _kind(reading))), _hidden(text))


def holds_order(text: str) -> bool:
    """Whether a text holds an order, a permission or markup anywhere; mere words to the assistant are none."""
    text = text[:LOOK_AT]
    return any(map(_pattern_kind, _readings(text))) or _hidden(text) is not None


def prepare() -> None:
    """Compile all patterns now, for this process and its future children; otherwise each is compiled on first use."""
    for patterns in _patterns():
        for pattern in patterns.all():
            _ = pattern.compiled


def _kind(text: str) -> str | None:
    return _pattern_kind(text) or ("addressed" if addresses(text) else None)


def _pattern_kind(text: str) -> str | None:
    english, chinese = _patterns()
    kinds = _kinds(english, text)
    if _HAS_CJK.search(text):
        kinds |= _kinds(chinese, text)
    return next((kind for kind in KINDS if kind in kinds), None)


def _kinds(patterns: Prefilter[_KindPattern], text: str) -> set[str]:
    """The kinds of all patterns that match."""
    likely = dict.fromkeys(patterns.select_part(patterns.literals_in(text), text))
    return {pattern.kind for pattern in likely if pattern.compiled.search(text)}


def _hidden(text: str) -> str | None:
    return "hidden" if _tags(text) or _SPELLED.search(text) else None


def _tags(text: str) -> list[str]:
    """The tag characters that are no part of a flag."""
    return [] if text.isascii() else _TAG.findall(_FLAG.sub("", text))


def _readings(text: str) -> Iterator[str]:
    """The text as it reads, and what is encoded in it."""
    plain = _plain(text)
    yield plain
    if tags := _tags(text):
        yield _plain("".join(chr(ord(tag) - 0xE0000) for tag in tags))
    for decoded in _decoded(text):
        yield _plain(decoded)
    if _ROT13.search(plain):
        yield codecs.decode(plain, "rot13")
    if _STAND_IN.search(plain) and _DIGITS.search(plain):
        yield _DIGITS.sub(lambda match: match[0].translate(_LETTERS), plain)


def _plain(text: str) -> str:
    """The text in lower case and one width: invisible characters and gaps in Chinese removed, look-alikes Latin."""
    if "&" in text:
        text = html.unescape(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
        text = _CJK_GAP.sub("", text.casefold().translate(_LOOKALIKES))
    return re.sub(r"[^\S\n]+", " ", text.casefold()).strip()


def _decoded(text: str) -> Iterator[str]:
    count = 0
    encoded = [run for run in text.split() if len(run) >= SHORTEST_ENCODED]
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, bytes.fromhex)):
        for match in pattern.finditer(" ".join(encoded)):
            count += 1
            if count > MAX_DECODED:
                return
            if words := _words(decode(match[0])):
                yield words
    if "%" in text and (unquoted := unquote(text)) != text:
        yield unquoted


def _from_base64(text: str) -> bytes:
    whole = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4))
    except binascii.Error:  # no base64 has this length
        return b""


def _words(data: bytes) -> str:
    """The bytes as text; "" when they are not readable text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:  # most runs of letters and digits are not base64
        return ""
    return text if text.replace("\n", "").isprintable() else ""


class _KindPattern:
    """A regex, compiled on first use, and the kind of the texts it matches."""

    def __init__(self, kind: str, source: str) -> None:
        self.kind = kind
        self._source = source

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._source)


@cache
def _patterns() -> tuple[Prefilter[_KindPattern], Prefilter[_KindPattern]]:
    """The patterns for English, which include those for markup in any language, and for Chinese."""
    return _prefilter(instructions_en.PATTERNS), _prefilter(instructions_zh.PATTERNS)


def _prefilter(patterns: Mapping[str, tuple[str, ...]]) -> Prefilter[_KindPattern]:
    sources = ((kind, source) for kind, listed in patterns.items() for source in listed)
    return Prefilter(((source, _KindPattern(kind, source)) for kind, source in sources))
