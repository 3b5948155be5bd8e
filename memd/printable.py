"""Text for people: untrusted text made safe to print, as a terminal obeys control characters, and counted nouns."""

from __future__ import annotations

import unicodedata

_OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")


def printable(value: object) -> str:
    r"""The text with controls, bidi marks and other invisible characters escaped, as `\x1b` or `\u202e`."""
    text = value if isinstance(value, str) else str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    # Joiners belong to emoji and to scripts that need them, and do nothing to a terminal.
    if unicodedata.category(char) not in _OBEYED or char in _JOINERS:
        return char
    return char.encode("unicode_escape").decode("ascii")


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 fact", "2 facts", "1,000 memories" (`many`: a plural that takes more than an s)."""
    return f"{count:,} {noun(count, one, many)}"


def noun(count: int, one: str, many: str = "") -> str:
    """A noun in the form for this number."""
    return one if count == 1 else many or one + "s"
