"""Opposites: two contents that say the same but for a "not" or "no longer". `opposing/` has the words by language."""

from __future__ import annotations

import re
from pathlib import Path

from memd.memory.duplicates import Alike
from memd.memory.text import CJK, normal_key
from memd.push.patterns import Lists

_LISTS = Lists(Path(__file__).with_suffix(""), "negations", "fillers", "endings")
_SPACED = re.compile(f"[^{CJK}]")
LEAST = 0.9
"""The least similarity of what both say; less and they are about different things."""


class Opposite:
    """Finds what denies a content, or is denied by it. A few substring searches rule most contents out."""

    def __init__(self, content: str) -> None:
        key = normal_key(content)
        self._negated = _is_negated(key)
        self.alike = Alike(_affirmed(key), LEAST)

    def of(self, key: str) -> bool:
        """Whether the content with this `normal_key` is an opposite."""
        return (
            self.alike.may_be(key)
            and self._negated != _is_negated(key)
            and self.alike.to(_affirmed(key), LEAST) >= LEAST
        )


def opposes(content: str, other: str) -> bool:
    """Whether one of two contents denies what the other says."""
    return Opposite(content).of(normal_key(other))


def _is_negated(key: str) -> bool:
    return _LISTS["negations"].search(key) is not None


def _affirmed(key: str) -> str:
    """The key without its negation and the auxiliary verb that goes with it."""
    bare = _LISTS["fillers"].sub(" ", _LISTS["negations"].sub(" ", key))
    bare = " ".join(bare.split())
    return _LISTS["endings"].sub(r"\1", bare) if _SPACED.search(bare) else bare
