"""A text as a model would read it, and whether it hides what it says.

Invisible characters are removed, look-alike letters replaced, entities and percent signs decoded. What is encoded in
base64 or hex, written in tag characters or spelled out letter by letter is no statement, whatever it says.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from urllib.parse import unquote

from memd.memory.text import CJK
from memd.push.width import nfkc

MAX_DECODED = 8
"""Encoded runs of one text that are decoded."""

_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]{4,6}\U000e007f")
"""The flags of parts of countries, such as Wales and Texas: the only legitimate use of tag characters."""

_TAG = re.compile("[\U000e0000-\U000e007f]")
_CJK_GAP = re.compile(rf"[^\S\n](?<=[{CJK}].)[^\S\n]*(?=[{CJK}])")
_SPACES = re.compile(r"[^\S\n ][^\S\n]*| [^\S\n]+")
"""White space that is not a single space already."""

_SPELLED = re.compile(r"(?<!\w)(?:[^\W\d_][ .*_-]{1,3}){7,}[^\W\d_](?!\w)")
"""Eight letters or more, one by one. Words need gaps between them, or many letters: up to twelve without a gap spell a
name, and letters up to G are grades or chords."""

_GAP = re.compile(r"[ .*_-]{2}")
_LONGEST_NAME = 12

SHORTEST_ENCODED = 20
"""Characters of an encoded run at least."""

_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{SHORTEST_ENCODED},}}={{0,2}}")
_HEX = re.compile(rf"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{{2}}){{{SHORTEST_ENCODED // 2},}}(?![0-9A-Za-z])")
_WORDS = re.compile(rf"(?<![^\W\d_])[^\W\d_]{{2,}}+[\W_]++[^\W\d_]{{2}}|[{CJK}]{{3}}")
"""Two words beside each other: chance makes printable bytes of some number, but not these."""

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнгпзԍ" + "αεορυχικνητωγ" + "ɑɡıℓ’‘“”«»„",
    "aeopcyxijshdqwkmtbhrn3g" + "aeopuxiknhtwy" + 'agil\'\'"""""',
)
"""Cyrillic, Greek and phonetic letters that look like Latin ones, and the shapes of quotation marks."""

_LOOKALIKE = re.compile(f"[{''.join(map(chr, _LOOKALIKES))}]")
"""Most texts have none, which is found in a tenth of the time of a translation."""


def is_hidden(text: str) -> bool:
    """Whether a text hides what it says: in tag characters, in an encoding, or one letter after the other."""
    if not text.isascii():
        if _TAG.search(_FLAG.sub("", text)):
            return True
        text = _visible(text)
    return _says_words(" ".join(_SPELLED.findall(text))) or _is_encoded(text)


def _says_words(spelled: str) -> bool:
    letters = [sign for sign in spelled.lower() if sign.isalpha()]
    return max(letters, default="") > "g" and (len(letters) > _LONGEST_NAME or _GAP.search(spelled) is not None)


def _visible(text: str) -> str:
    for sign in {char for char in text if unicodedata.category(char) == "Cf"}:
        text = text.replace(sign, "")
    return text


def plain(text: str) -> str:
    """The text in lower case and one width: invisible characters and gaps in Chinese removed, look-alikes Latin."""
    if "&" in text:
        text = html.unescape(text)
    if "%" in text:
        text = html.unescape(unquote(text))
    if not text.isascii():
        text = nfkc(text)
    # Then nothing in it is invisible, and no white space but spaces and line breaks: most texts are so.
    is_printable = text.replace("\n", "").isprintable()
    if not text.isascii():
        text = (text if is_printable else _visible(text)).casefold()
        text = _CJK_GAP.sub("", text.translate(_LOOKALIKES) if _LOOKALIKE.search(text) else text)
    text = text.casefold()
    return (text if is_printable and "  " not in text else _SPACES.sub(" ", text)).strip()


def _is_encoded(text: str) -> bool:
    """Whether any of the first encoded runs of a text decodes to words."""
    long_runs = " ".join([run for run in text.split() if len(run) >= SHORTEST_ENCODED])
    if not long_runs:
        return False
    of_base64, of_hex = (pattern.findall(long_runs)[:MAX_DECODED] for pattern in (_BASE64, _HEX))
    return any(map(_is_words, (*map(_from_base64, of_base64), *map(bytes.fromhex, of_hex))))


def _from_base64(text: str) -> bytes:
    whole = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4))
    except binascii.Error:  # no base64 has this length
        return b""


def _is_words(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:  # most runs of letters and digits are not base64
        return False
    return text.replace("\n", "").isprintable() and _WORDS.search(text) is not None
