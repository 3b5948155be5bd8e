"""Passing: facts that no memory needs: what holds only now or today, and records of the talk itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from memd.memory.text import fold
from memd.push.patterns import compiled, load

_HERE = Path(__file__).parent


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return compiled(load(_HERE / "passing")[name])


def passing_refusal(content: str, quotes: Iterable[str]) -> str | None:
    """Why a fact that a model proposes is not worth keeping, whatever its labels; None when it is."""
    if is_about_the_talk(content):
        return "about_the_talk"
    return "not_durable" if is_passing(content, quotes) else None


def is_about_the_talk(content: str) -> bool:
    """Whether a fact only says what was asked or done in the conversation ("The user asked about …")."""
    text = fold(content).rstrip(".。!！")
    if _pattern("nothing").fullmatch(text):
        return True
    return bool(_pattern("asked").match(text)) and not _pattern("more").search(text)


def is_passing(content: str, quotes: Iterable[str] = ()) -> bool:
    """Whether the only time of a fact is now or today, by its own words or by all of its quotes.

    "Lives in Oslo now" lasts, "is on the train right now" does not; a date makes an event of it.
    """
    text = fold(content)
    if _pattern("lasting").search(text):
        return False
    if _pattern("moment").search(text):
        return True
    said = [fold(quote) for quote in quotes]
    momentary = bool(_pattern("doing").search(text)) and bool(said) and all(map(_pattern("now").search, said))
    return momentary or (bool(_pattern("now").search(text)) and bool(_pattern("state").search(text)))
