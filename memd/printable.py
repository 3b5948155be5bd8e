"""Making untrusted text safe to print: a terminal obeys control characters."""

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
