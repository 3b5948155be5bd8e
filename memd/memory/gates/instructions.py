"""Orders: text that gives a permission, sends data away or sets rules aside instead of describing the user.

A memory is read at the start of every prompt, so one such sentence would act in all of them. What harms is permission,
exfiltration and override, whoever seems to say it; caution ("ask before touching production"), limits and wishes about
the way of answering do not. `orders/*.yaml` has the patterns by language. The text is checked as a model would read it:
without invisible characters, with look-alike letters replaced, and with base64, hex and entities decoded.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote

from memd.memory.text import CJK
from memd.push.patterns import load, prepared
from memd.push.prefilter import Prefilter
from memd.push.width import nfkc

LOOK_AT = 10_000
"""Characters of a text that are checked; no gate lets a longer one through."""

MAX_DECODED = 8
"""Encoded runs of one text that are decoded."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("forged_tag", "forged_update", "markup"), "markup"),
        **dict.fromkeys(
            (
                *("hidden", "override", "role", "permission", "trigger", "exfiltration", "hiding", "steering"),
                *("command", "addressed"),
            ),
            "instruction",
        ),
    }
)
"""The kinds of text that are no statement, the most telling first, and the reason each is refused with."""

HARMLESS = ("harmless", "spoken")
"""The lists of what is cut out: the first for all kinds, the second for `addressed` alone."""

_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")
"""The flags of England, Scotland and Wales: the only legitimate use of tag characters."""

_TAG = re.compile("[\U000e0000-\U000e007f]")
_CJK_GAP = re.compile(rf"[^\S\n](?<=[{CJK}].)[^\S\n]*(?=[{CJK}])")
_SPACES = re.compile(r"[^\S\n ][^\S\n]*| [^\S\n]+")
"""White space that is not a single space already."""

_SPELLED = re.compile(r"(?<!\w)(?:[^\W\d_][ .*_-]{1,3}){7,}[^\W\d_](?!\w)")
"""Eight letters or more, spelled out one by one: no such sentence is worth storing."""

SHORTEST_ENCODED = 20
"""Characters of an encoded run at least."""

_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{SHORTEST_ENCODED},}}={{0,2}}")
_HEX = re.compile(rf"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{{2}}){{{SHORTEST_ENCODED // 2},}}(?![0-9A-Za-z])")
_ROT13_WORDS = ("gur", "lbh", "naq", "nyy", "hfre", "jvgubhg", "vtaber", "cerivbhf", "vafgehpgvbaf")
"""English words in rot13 that are words of no language. Most texts hold none, which is found in a fifth of the time."""

_ROT13 = re.compile(rf"\b(?:{'|'.join(_ROT13_WORDS)})\b")

_DIGITS = re.compile(r"(?<![\w.@/])(?=\w*[a-z])(?=\w*[0134578])[a-z0134578]{3,}(?![\w.@/])")
_STAND_IN = re.compile("[0134578](?:(?=[a-z])|(?<=[a-z].))")
_LETTERS = str.maketrans("0134578", "oieastb")
"""Letters for the digits that stand in for them in a word ("1gn0re")."""

_QUOTED = re.compile(rf'"[{CJK}，、？?！]{{1,20}}"|「[{CJK}，、？?！]{{1,20}}」')
"""A title or a set phrase in quotation marks (“还有什么可以帮您”), once these look alike."""

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнгпзԍ" + "αεορυχικνητωγ" + "ɑɡıℓ’‘“”«»„",
    "aeopcyxijshdqwkmtbhrn3g" + "aeopuxiknhtwy" + 'agil\'\'"""""',
)
"""Cyrillic, Greek and phonetic letters that look like Latin ones, and the shapes of quotation marks."""

_LOOKALIKE = re.compile(f"[{''.join(map(chr, _LOOKALIKES))}]")
"""Most texts have none, which is found in a tenth of the time of a translation."""


def text_refusal(text: str) -> str | None:
    """The reason for refusing a text (`instruction`, `markup`); None when it is a statement."""
    kind = kind_of(text)
    return KINDS[kind] if kind else None


def kind_of(text: str) -> str | None:
    """The kind of a text that is no statement, one of KINDS; None for a statement. Never raises."""
    text = text[:LOOK_AT]
    return next(
        (kind for reading in _readings(text) if (kind := _first(_kinds(reading, _likely(reading))))), _hidden(text)
    )


class Orders:
    """The orders in a text, looked for once, so that its sentences are then judged in half the time."""

    def __init__(self, text: str) -> None:
        text = text[:LOOK_AT]
        readings = list(_readings(text))
        likely = [_likely(reading) for reading in readings]
        self.found = _hidden(text) is not None or any(
            _kinds(reading, one) - {"addressed"} for reading, one in zip(readings, likely, strict=True)
        )
        """Whether it holds an order, a permission or markup anywhere; mere words to the assistant are none."""

        may_decode = any(_BASE64.search(run) or _HEX.search(run) for run in _encoded(text))
        is_plain = len(readings) == 1 and not self.found and "&" not in text and not may_decode
        self._likely = likely[0] if is_plain else None

    def refusal_of(self, sentences: str) -> str | None:
        """The `text_refusal` of whole sentences of the text, one a line.

        Of a text that nothing is encoded in, they hold no literal that it lacks: no other pattern can match them.
        """
        if self._likely is None:
            return text_refusal(sentences)
        kind = _first(_kinds(_plain(sentences), self._likely))
        return KINDS[kind] if kind else None


def is_markup(text: str) -> bool:
    """Whether a text holds tags, links or images as markup, or an update of the memory. Never raises."""
    kinds = (_kinds(reading, _likely(reading)) for reading in _readings(text[:LOOK_AT]))
    return any(KINDS[kind] == "markup" for found in kinds for kind in found)


@prepared
def _compile_all() -> None:
    for _, source in _patterns().all():
        _compiled(source)


def _first(found: set[str]) -> str | None:
    return next((kind for kind in KINDS if kind in found), None)


class _Likely(NamedTuple):
    """The patterns that could match a text, by kind, and those of what is harmless."""

    orders: Mapping[str, Collection[str]]
    harmless: Collection[str]
    spoken: Collection[str]


def _likely(text: str) -> _Likely:
    likely: dict[str, set[str]] = {}
    for kind, source in _patterns().select(text):
        likely.setdefault(kind, set()).add(source)
    harmless, spoken = (likely.pop(name, set()) for name in HARMLESS)
    return _Likely(likely, harmless, spoken)


def _kinds(text: str, likely: _Likely) -> set[str]:
    """The kinds of all patterns that match a text without what is harmless in it."""
    if not likely.orders:
        return set()
    text = _without(text, likely.harmless)
    found = {kind for kind, sources in likely.orders.items() if _matches(text, sources)}
    if found == {"addressed"}:  # a title or somebody's words in quotation marks speak to nobody
        text = _without(_QUOTED.sub(" ", text), likely.spoken)
        return found if _matches(text, likely.orders["addressed"]) else set()
    return found


def _matches(text: str, sources: Iterable[str]) -> bool:
    return any(_compiled(source).search(text) for source in sources)


def _without(text: str, sources: Iterable[str]) -> str:
    for source in sorted(sources):
        text = _compiled(source).sub(" ", text)
    return text


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
    if any(word in plain for word in _ROT13_WORDS) and _ROT13.search(plain):
        yield codecs.decode(plain, "rot13")
    if _STAND_IN.search(plain) and _DIGITS.search(plain):
        yield _DIGITS.sub(lambda match: match[0].translate(_LETTERS), plain)


def _plain(text: str) -> str:
    """The text in lower case and one width: invisible characters and gaps in Chinese removed, look-alikes Latin."""
    if "&" in text:
        text = html.unescape(text)
    if not text.isascii():
        text = nfkc(text)
    # Then nothing in it is invisible, and no white space but spaces and line breaks: most texts are so.
    is_printable = text.replace("\n", "").isprintable()
    if not text.isascii():
        for sign in [] if is_printable else [char for char in set(text) if unicodedata.category(char) == "Cf"]:
            text = text.replace(sign, "")
        text = text.casefold()
        text = _CJK_GAP.sub("", text.translate(_LOOKALIKES) if _LOOKALIKE.search(text) else text)
    text = text.casefold()
    return (text if is_printable and "  " not in text else _SPACES.sub(" ", text)).strip()


def _decoded(text: str) -> Iterator[str]:
    count, encoded = 0, " ".join(_encoded(text))
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, bytes.fromhex)) if encoded else ():
        for match in pattern.finditer(encoded):
            count += 1
            if count > MAX_DECODED:
                return
            if words := _words(decode(match[0])):
                yield words
    if "%" in text and (unquoted := unquote(text)) != text:
        yield unquoted


def _encoded(text: str) -> list[str]:
    """The runs without white space that are long enough to be something encoded."""
    return [run for run in text.split() if len(run) >= SHORTEST_ENCODED]


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


_compiled = cache(re.compile)


@prepared
def _patterns() -> Prefilter[tuple[str, str]]:
    """The patterns of all languages, each with its kind."""
    listed = load(Path(__file__).parent / "orders")
    return Prefilter((source, (kind, source)) for kind, sources in listed.items() for source in sources)
