"""Text on its way into the document: what is stripped, and what counts as the same when quotes are compared."""

from __future__ import annotations

import re
import unicodedata

# C0 and C1 controls, bidi overrides and isolates, lone surrogates, tag characters.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")
_MARKS = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})
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
