"""Passing: facts that no memory needs: what holds only now or today, and records of the talk itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from memd.memory.text import CJK, fold
from memd.push.patterns import Lists

_LISTS = Lists(
    Path(__file__).parent / "passing",
    *("nothing", "asked", "inquired", "more", "sentences", "first", "to_it", "turned", "long"),
    *("lasting", "moment", "now", "today", "state", "passing", "at_present"),
)

_QUESTIONS = Lists(Path(__file__).parent / "support", "asks")
_WORD = re.compile(rf"[^\W\d_{CJK}]+")
_CJK_RUN = re.compile(f"[{CJK}]+")
_STEM = 4
_SMALL = frozenset({"that", "this", "with", "from", "their", "them", "they", "about", "because", "user"})

PRESENT_DAYS = 90
"""Days that a fact holds which says itself that it is for now, where the model named none: an illness, a leave."""


def passing_refusal(content: str, quotes: Sequence[str]) -> str | None:
    """Why a fact that a model proposes is not worth keeping, whatever its labels; None when it is."""
    if is_about_the_talk(content, quotes):
        return "about_the_talk"
    return "not_durable" if is_passing(content, quotes) else None


def is_about_the_talk(content: str, quotes: Iterable[str] = ()) -> bool:
    """Whether a fact only says what was asked or done in the conversation ("The user asked about …").

    Quotes decide it. One that asks or orders something is the deed itself; one that states what was asked for
    ("I had to ask for an extension"), or that somebody was asked, tells a deed of the user's life.
    """
    text = fold(content).rstrip(".。!！")
    if _LISTS["nothing"].fullmatch(text):
        return True
    about = _LISTS["inquired"].match(text)
    asked = about or _LISTS["asked"].match(text)
    if not asked or _LISTS["more"].search(text):
        return False
    stated = [part for quote in quotes for part in _LISTS["sentences"].findall(fold(quote)) if _states(part)]
    if about:
        return not any(_LISTS["turned"].search(part) or _LISTS["long"].search(part) for part in stated)
    matter = text[asked.end() :]
    return not any(_shares(matter, sentence) for sentence in stated)


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


def _states(sentence: str) -> bool:
    """Whether a sentence tells something of the user, and neither asks nor orders anything here."""
    to_it = _LISTS["to_it"].search(sentence) or _QUESTIONS["asks"].search(sentence)
    return bool(_LISTS["first"].search(sentence)) and (not to_it or bool(_LISTS["long"].search(sentence)))


def _shares(matter: str, sentence: str) -> bool:
    """Whether a sentence has a word of what was asked for, or two characters of it side by side."""
    words = {word for word in _WORD.findall(matter) if len(word) >= _STEM and word not in _SMALL}
    if any(word[:_STEM] in sentence for word in words):
        return True
    return any(pair in sentence for run in _CJK_RUN.findall(matter) for pair in map("".join, pairwise(run)))


def _is_of_the_state(fact: str, quote: str) -> bool:
    """Whether a fact is made of the passing state that a quote tells of: "I'm on the bus", "takes the bus"."""
    ends = (match[0].split()[-1] for match in _LISTS["passing"].finditer(quote))
    return any(end in fact for end in ends)
