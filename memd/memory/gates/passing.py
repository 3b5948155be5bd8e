"""Passing: facts that no memory needs: what holds only now or today, and records of the talk itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memd.memory.text import fold
from memd.push.patterns import Lists

_LISTS = Lists(
    Path(__file__).parent / "passing", "nothing", "asked", "more", "lasting", "moment", "doing", "now", "state"
)


def passing_refusal(content: str, quotes: Iterable[str]) -> str | None:
    """Why a fact that a model proposes is not worth keeping, whatever its labels; None when it is."""
    if is_about_the_talk(content):
        return "about_the_talk"
    return "not_durable" if is_passing(content, quotes) else None


def is_about_the_talk(content: str) -> bool:
    """Whether a fact only says what was asked or done in the conversation ("The user asked about …")."""
    text = fold(content).rstrip(".。!！")
    if _LISTS["nothing"].fullmatch(text):
        return True
    return bool(_LISTS["asked"].match(text)) and not _LISTS["more"].search(text)


def is_passing(content: str, quotes: Iterable[str] = ()) -> bool:
    """Whether the only time of a fact is now or today, by its own words or by all of its quotes.

    "Lives in Oslo now" lasts, "is on the train right now" does not; a date makes an event of it.
    """
    text = fold(content)
    if _LISTS["lasting"].search(text):
        return False
    if _LISTS["moment"].search(text):
        return True
    said = [fold(quote) for quote in quotes]
    momentary = bool(_LISTS["doing"].search(text)) and bool(said) and all(map(_LISTS["now"].search, said))
    return momentary or (bool(_LISTS["now"].search(text)) and bool(_LISTS["state"].search(text)))
