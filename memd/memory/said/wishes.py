"""Wishes about what was said: to forget it, or to keep it off the record, found by the patterns of `wishes/`.

Only the user's own words count: not what a turn quotes, pastes or shows as code. Each sentence is read by itself.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from memd.memory.said.own_words import own_words
from memd.push.patterns import compiled, load
from memd.push.prefilter import Prefilter

Why = Literal["forget_wish", "off_the_record"]
Reach = Literal["", "turn", "earlier", "thread"]
"""What else a wish is about: nothing, this turn itself, the user's turn before it, or all turns of the thread."""

_ORDER = ("thread", "earlier", "back", "off", "forget")
"""The lists of wishes, those that reach farthest first."""

_QUOTED = re.compile(r"\"[^\"\n]{1,300}\"|(?<!\w)'[^'\n]{2,200}'(?!\w)|「[^」\n]{1,300}」|『[^』\n]{1,300}』|《[^》\n]{1,80}》|«[^»\n]{1,300}»")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\w)[^.!?。！？\n]*)*[.!?。！？]*")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "`": "'", **dict.fromkeys("“”„", '"')})
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile("[\u3400-\u9fff]")

LEAST_WORDS = 3
"""A turn that says less than this besides its wish says nothing that the wish could be about; CJK characters count half."""


class Wish(NamedTuple):
    """A user's wish about what was said. `own`: this very turn is to prove nothing."""

    why: Why
    reach: Reach

    @property
    def own(self) -> bool:
        """Whether the turn itself must prove nothing."""
        return self.reach in ("turn", "thread")


@cache
def _sources() -> dict[str, list[str]]:
    return load(Path(__file__).parent / "wishes")


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return compiled(_sources()[name])


@cache
def _prefilter() -> Prefilter[str]:
    return Prefilter((source, name) for name in _ORDER for source in _sources()[name])


def prepare() -> None:
    """Compile all patterns now, for this process and its future children; otherwise each list is on first use."""
    _prefilter()
    for name in (*_ORDER, "harmless", "excuses"):
        _pattern(name)


def wish_of(text: str) -> Wish | None:
    """The wish in a turn of the user, the one that reaches farthest; None when there is none."""
    folded = _folded(text)
    if not _prefilter().finds(folded):
        return None
    words = _folded(own_words(text))
    words = _pattern("harmless").sub(_gap, _QUOTED.sub(_gap, words))
    likely = set(_prefilter().select(words))
    if not likely:
        return None
    found: dict[str, str] = {}
    rest: list[str] = []
    for sentence in _SENTENCE.findall(words):
        name = next((name for name in _ORDER if name in likely and _pattern(name).search(sentence)), None)
        if name is None:
            rest.append(sentence)
        else:
            found.setdefault(name, _pattern(name).sub(" ", sentence))
    name = next((name for name in _ORDER if name in found), None)
    return None if name is None else _wish(name, rest, found)


def _wish(name: str, rest: list[str], found: dict[str, str]) -> Wish:
    """The wish of this list, in a turn with these sentences besides it, and these words around it."""
    why: Why = "off_the_record" if "off" in found and name != "forget" else "forget_wish"
    if name in ("back", "off"):
        return Wish(why, "turn" if _says_something([*rest, found[name]]) else "earlier")
    return Wish(why, "" if name == "forget" else "thread" if name == "thread" else "earlier")


def _says_something(parts: list[str]) -> bool:
    """Whether these words of a turn, without the wish, are more than what is said around a wish."""
    words = _pattern("excuses").sub(" ", " ".join(parts))
    return len(_WORD.findall(_CJK.sub(" ", words))) + len(_CJK.findall(words)) / 2 >= LEAST_WORDS


def _gap(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _folded(text: str) -> str:
    """The text in lower case and one width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_QUOTES))
    return text.lower()
