"""Opposites: two contents that say the same but for a "not" or "no longer"."""

from __future__ import annotations

import re

from memd.memory.duplicates import similarity
from memd.memory.text import CJK, normal_key

_NEGATION = re.compile(
    r"\b(?:no longer|any ?more|not|never|dont|doesnt|didnt|isnt|arent|wasnt|wont|cant|cannot)\b"
    r"|不再|不|没|沒|别|勿"
)
_FILLER = re.compile(r"\b(?:do|does|did)\b")
_ENDING = re.compile(r"\b(\w{3,}?)(?:ing|s)\b")
_SPACED = re.compile(f"[^{CJK}]")
LEAST = 0.9
"""The least similarity of what both say; less and they are about different things."""


def opposes(content: str, other: str) -> bool:
    """Whether one of two contents denies what the other says."""
    first, second = normal_key(content), normal_key(other)
    negated = _NEGATION.search(first) is not None
    if negated == (_NEGATION.search(second) is not None):
        return False
    return similarity(_affirmed(first), _affirmed(second), LEAST) >= LEAST


def _affirmed(key: str) -> str:
    """The key without its negation and the auxiliary verb that goes with it."""
    bare = _FILLER.sub(" ", _NEGATION.sub(" ", key))
    bare = " ".join(bare.split())
    return _ENDING.sub(r"\1", bare) if _SPACED.search(bare) else bare
