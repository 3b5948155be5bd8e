"""Readings: a text as a model would read it, and what is encoded in it.

Invisible characters are removed, look-alike letters replaced; base64, hex, percent signs, entities, rot13, tag
characters and digits for letters decoded.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from memd.memory.text import CJK
from memd.push.width import nfkc

MAX_DECODED = 8
"""Encoded runs of one text that are decoded."""

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

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнгпзԍ" + "αεορυχικνητωγ" + "ɑɡıℓ’‘“”«»„",
    "aeopcyxijshdqwkmtbhrn3g" + "aeopuxiknhtwy" + 'agil\'\'"""""',
)
"""Cyrillic, Greek and phonetic letters that look like Latin ones, and the shapes of quotation marks."""

_LOOKALIKE = re.compile(f"[{''.join(map(chr, _LOOKALIKES))}]")
"""Most texts have none, which is found in a tenth of the time of a translation."""


def is_hidden(text: str) -> bool:
    """Whether a text hides what it says: in tag characters, or spelled out one letter after the other."""
    return bool(_tags(text)) or _SPELLED.search(text) is not None


def _tags(text: str) -> list[str]:
    """The tag characters that are no part of a flag."""
    return [] if text.isascii() else _TAG.findall(_FLAG.sub("", text))


def readings(text: str) -> Iterator[str]:
    """The text as it reads, and what is encoded in it."""
    read = plain(text)[: len(text)]  # NFKC makes eighteen characters of some
    yield read
    if tags := _tags(text):
        yield plain("".join(chr(ord(tag) - 0xE0000) for tag in tags))
    for decoded in _decoded(text):
        yield plain(decoded)
    if any(word in read for word in _ROT13_WORDS) and _ROT13.search(read):
        yield codecs.decode(read, "rot13")
    if _STAND_IN.search(read) and _DIGITS.search(read):
        yield _DIGITS.sub(lambda match: match[0].translate(_LETTERS), read)


def plain(text: str) -> str:
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
