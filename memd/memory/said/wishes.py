"""Wishes about what was said: to forget it, or to keep it off the record, found by the patterns of `wishes/`.

Only the user's own words count: not what a turn quotes, pastes or shows as code. Each sentence is read by itself.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from memd.memory.said.own_words import own_words
from memd.push.patterns import compiled, load
from memd.push.prefilter import Prefilter

Why = Literal["forget_wish", "off_the_record"]
Reach = Literal["", "turn", "earlier", "next", "thread"]
"""What a wish is about: something that it names, this turn itself, the user's turn before it, the one after it, or all
turns of the thread.
"""

_ORDER = ("thread", "next", "earlier", "back", "off", "unkept", "forget")
"""The lists of wishes; of several in one turn the first in this order counts."""

_QUOTED = re.compile(
    r"\"[^\"\n]{1,300}\"|(?<!\w)'[^'\n]{2,200}'(?!\w)|「[^」\n]{1,300}」|『[^』\n]{1,300}』|《[^》\n]{1,80}》|«[^»\n]{1,300}»"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\w)[^.!?。！？\n]*)*[.!?。！？]*")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "`": "'", **dict.fromkeys("“”„", '"')})
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile("[\u3400-\u9fff]")
_QUESTION = re.compile(r"\?\W*$|[吗嗎呢]\W*$")


LOOK_AT = 10_000
"""Characters at each end of a text that are read for wishes; a longer one is mostly pasted."""


class AskedNot(NamedTuple):
    """A user's wish about what was said."""

    why: Why
    reach: Reach

    @property
    def own(self) -> bool:
        """Whether the turn itself must prove nothing."""
        return self.why == "off_the_record" or self.reach in ("turn", "thread")


class _Pattern:
    """A pattern of a list, compiled when first tried."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self._source = source

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._source)


@cache
def _sources() -> dict[str, list[str]]:
    return load(Path(__file__).parent / "wishes")


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return compiled(_sources()[name])


@cache
def _prefilter() -> Prefilter[_Pattern]:
    return Prefilter((source, _Pattern(name, source)) for name in _ORDER for source in _sources()[name])


def prepare() -> None:
    """Compile all patterns now, for this process and its future children; otherwise each is on first use."""
    for pattern in _prefilter().all():
        _ = pattern.compiled
    for name in ("harmless", "excuses"):
        _pattern(name)


def wish_of(text: str) -> AskedNot | None:
    """The wish in a turn of the user; None when there is none."""
    prefilter = _prefilter()
    if not prefilter.finds(_folded(_ends(text))):
        return None
    words = _QUOTED.sub(_gap, _folded(_ends(own_words(text))))
    literals = prefilter.literals_in(words)
    if not prefilter.could_match(literals):
        return None
    found: dict[str, tuple[int, int]] = {}
    for sentence in _SENTENCE.finditer(words):
        tried = set(prefilter.select_part(literals, sentence[0]))
        likely = [pattern for pattern in tried if pattern.compiled.search(sentence[0])]
        said = _pattern("harmless").sub(_gap, sentence[0]) if likely else ""
        for pattern in likely:
            if match := pattern.compiled.search(said):
                found.setdefault(pattern.name, (sentence.start() + match.start(), sentence.start() + match.end()))
    name = next((name for name in _ORDER if name in found), None)
    return None if name is None else _wish(name, words, found)


def _wish(name: str, words: str, found: dict[str, tuple[int, int]]) -> AskedNot:
    """The wish of this list, in a turn with these words."""
    start, end = found[name]
    before, after = _says_something(words[:start]), _says_something(words[end:])
    why: Why = "off_the_record" if "off" in found else "forget_wish"
    match name:
        case "forget":
            return AskedNot("forget_wish", "")
        case "thread":
            return AskedNot(why, "thread")
        case "next":
            return AskedNot("off_the_record", "turn" if before or after else "next")
        case "unkept" if before or after:
            return AskedNot(why if before and not after else "off_the_record", "turn")
        case "off" if before or after:
            return AskedNot(why, "turn")
        case "back" if before:
            return AskedNot(why, "turn")
    return AskedNot(why, "earlier")


def _says_something(part: str) -> bool:
    """Whether these words beside a wish state anything: two words or three CJK characters, and no question."""
    said = [sentence for sentence in _SENTENCE.findall(part) if not _QUESTION.search(sentence)]
    words = _pattern("excuses").sub(" ", " ".join(said))
    return 3 * len(_WORD.findall(_CJK.sub(" ", words))) + 2 * len(_CJK.findall(words)) >= 6


def _ends(text: str) -> str:
    """The text without the middle of a very long one."""
    return text if len(text) <= 2 * LOOK_AT else f"{text[:LOOK_AT]}\n{text[-LOOK_AT:]}"


def _gap(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _folded(text: str) -> str:
    """The text in lower case and one width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_QUOTES))
    return text.lower()
