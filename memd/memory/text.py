"""Text on its way into the document: what is stripped, and what counts as the same when quotes are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# C0 and C1 controls, bidi overrides and isolates, lone surrogates, tag characters.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")
_MARKS = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
# Neither letters, digits nor signs with a meaning of their own; a point or dash only counts next to a digit.
_PUNCTUATION = re.compile(r"[^\w\s#%&@*/+=<>$€£¥°^|~.,:'−-]|_|[.,:−-](?!\d)")
_ASCII = str.maketrans(
    {char: " " for char in map(chr, range(128)) if char in ".,:-" or _PUNCTUATION.match(char)} | {"'": "", "\n": "\n"}
)
"""The same for ASCII in which nothing of it stands before a digit; ten times as fast."""
_BEFORE_DIGIT = re.compile(r"[.,:-]'*\d")
# White space beside a CJK character, which some writers set and others do not.
_GAP = re.compile(f"(?<=[{_CJK}]) | (?=[{_CJK}])")
_TRIMMED = str.maketrans({"\u200b": None, "\ufeff": None})


def one_line(text: str) -> str:
    """The text with white space folded to single spaces and without control, bidi and tag characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join(_UNSAFE.sub("", " ".join(text.split())).split())


def fold(text: str) -> str:
    """What is compared: width (NFKC), case and white space do not count, nor does the shape of quotation marks."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_TRIMMED).translate(_MARKS)).casefold()
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def same_key(content: str) -> str:
    """Two facts with the same key are one (the established system's rule)."""
    return content.strip().casefold()


def normal_key(content: str) -> str:
    """What is left when width, case, punctuation and spacing do not count: equal keys, equal facts.

    Signs that make a difference stay: those of "C#" and "50%", and what stands before a digit ("1.5", "-3").
    """
    text = fold(content).replace("'", "")
    return _GAP.sub("", " ".join(_PUNCTUATION.sub(" ", text).split()))


def normal_keys(contents: Sequence[str]) -> list[str]:
    """The `normal_key` of each content; many at once cost a fifth."""
    keys: list[str | None] = [None] * len(contents)
    plain = [place for place, content in enumerate(contents) if content.isascii() and "\n" not in content]
    text = "\n".join([contents[place] for place in plain])
    if _BEFORE_DIGIT.search(text):
        plain = [place for place in plain if not _BEFORE_DIGIT.search(contents[place])]
        text = "\n".join([contents[place] for place in plain])
    for place, line in zip(plain, text.lower().translate(_ASCII).split("\n"), strict=False):
        keys[place] = " ".join(line.split())
    return [normal_key(content) if key is None else key for key, content in zip(keys, contents, strict=True)]
