"""Width: full-width and other compatible forms of characters as their plain ones (Unicode's NFKC)."""

from __future__ import annotations

import unicodedata

_SIGNS = dict(zip("，！？：；（）～％　", ",!?:;()~% ", strict=True)) | {"…": "..."}
"""The signs that Chinese and Japanese texts are full of. Without them most are normal already, and Python sees that a
hundred times as fast as it makes a text normal."""


def nfkc(text: str) -> str:
    """The text in Unicode's form NFKC: "，ＡＢ①" becomes ",AB1"."""
    if unicodedata.is_normalized("NFKC", text):
        return text
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    if unicodedata.is_normalized("NFKC", text):
        return text
    return "\n".join(unicodedata.normalize("NFKC", line) for line in text.split("\n"))
