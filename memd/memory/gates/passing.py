"""Passing: facts that no memory needs: what holds only now or today, and records of the talk itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from memd.memory.text import fold
from memd.push.patterns import Lists

_LISTS = Lists(
    Path(__file__).parent / "passing",
    *("nothing", "asked", "more", "turned", "to_it", "clauses"),
    *("lasting", "moment", "now", "today", "state", "passing", "at_present"),
)

PRESENT_DAYS = 90
"""Days that a fact holds which says itself that it is for now, where the model named none: an illness, a leave."""


def passing_refusal(content: str, quotes: Sequence[str]) -> str | None:
    """Why a fact that a model proposes is not worth keeping, whatever its labels; None when it is."""
    if is_about_the_talk(content, quotes):
        return "about_the_talk"
    return "not_durable" if is_passing(content, quotes) else None


def is_about_the_talk(content: str, quotes: Iterable[str] = ()) -> bool:
    """Whether a fact only says what was asked or done in the conversation ("The user asked about …").

    Quotes decide it: a quote that is itself the question or the request tells of none, and one that tells of a request
    to somebody else ("I asked for a divorce") is a deed of the user's life.
    """
    text = fold(content).rstrip(".。!！")
    if _LISTS["nothing"].fullmatch(text):
        return True
    if not _LISTS["asked"].match(text) or _LISTS["more"].search(text):
        return False
    return not any(_tells_of_a_request(clause) for quote in quotes for clause in _LISTS["clauses"].split(fold(quote)))


def is_passing(content: str, quotes: Iterable[str] = ()) -> bool:
    """Whether the only time of a fact is now or today, by its own words or by all of its quotes.

    A word for now refuses nothing alone, for a diet, a leave or a home lasts: it takes a mood, a place or a task that
    is soon over. A date makes an event of it.
    """
    text = fold(content)
    if _LISTS["lasting"].search(text):
        return False
    if _LISTS["moment"].search(text) or (_LISTS["today"].search(text) and _LISTS["state"].search(text)):
        return True
    said = [fold(quote) for quote in quotes]
    is_now = bool(said) and all(map(_LISTS["now"].search, said))
    if (is_now or _LISTS["now"].search(text)) and _LISTS["passing"].search(text):
        return True
    return is_now and all(_is_of_the_state(text, quote) for quote in said)


def is_for_now(content: str) -> bool:
    """Whether a fact says itself that it will be over, and no date tells when."""
    text = fold(content)
    return bool(_LISTS["at_present"].search(text)) and not _LISTS["lasting"].search(text)


def _tells_of_a_request(clause: str) -> bool:
    return bool(_LISTS["turned"].search(clause)) and not _LISTS["to_it"].search(clause)


def _is_of_the_state(fact: str, quote: str) -> bool:
    """Whether a fact is made of the passing state that a quote tells of: "I'm on the bus", "takes the bus"."""
    ends = (match[0].split()[-1] for match in _LISTS["passing"].finditer(quote))
    return any(end in fact for end in ends)
