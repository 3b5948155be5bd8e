"""Harm: how much the words of a sentence speak for a permission, data sent away, or a rule set aside.

Learned from labelled sentences: a logistic regression over the words, the pairs and the parts of words of a sentence
and of the quote it was drawn from. Each is hashed to one of PLACES weights (feature hashing: Weinberger et al., 2009),
a signed byte each. `evaluation/orders` has the sentences, and `memd.evaluation.order_learning` learns from them.

The quote is what tells most: whoever permits something says "you can", and whoever describes something does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Literal, NamedTuple
from zlib import crc32

from memd.push.patterns import prepared

WEIGHTS = Path(__file__).parent / "orders" / "weights.bin"
NUMBERS = WEIGHTS.with_suffix(".json")

PLACES = 1 << 18
"""Weights; with a quarter of them, two or three attacks more in a hundred pass."""

PART = 4
"""Bytes of a part of a word."""

PHRASE = 2
"""Characters of the longest part of a Chinese, Japanese or Korean text, which has no spaces between words."""

WORDS_KEPT = 4_096
"""Words whose places are kept; few others make up most of what people say. Runs without spaces are rarely the same."""

LONGEST_WORD = 40
"""Characters of a word that are looked at."""

Kind = Literal["fact", "bare", "text", "said"]
"""fact: a sentence with the quote it was drawn from. bare: the same, looked at without the quote. text: a sentence that
has none. said: the user's own words."""

FEWEST = 3
"""Words of a piece at least, two Chinese, Japanese or Korean characters counting as one: fewer tell nothing."""

SHORT = 12
"""Words of a sentence that is looked at as a whole alone."""

_CLAUSE = re.compile(
    r"[,;:，；：、—–]|\s(?:and|but|so|und|aber|et|mais|y|pero|e|ma|mas)\s|并且|而且|但是|不过|还有|同时|另外"
)

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:['’][^\W_{_UNSPACED}]+)*")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_DIGIT = re.compile(r"\d")


class Weights(NamedTuple):
    """What was learned."""

    of_place: memoryview
    """A signed byte for each place."""

    scale: float
    """What one step of them is worth."""

    bias: float
    limits: Mapping[Kind, float]
    """The log-odds from which on a text is refused."""


class Weighed(NamedTuple):
    """The words of a text and what they weigh together."""

    words: int
    weight: int


@prepared
def weights() -> Weights:
    """The weights that memd ships."""
    numbers = json.loads(NUMBERS.read_bytes())
    return Weights(memoryview(WEIGHTS.read_bytes()).cast("b"), numbers["scale"], numbers["bias"], numbers["limits"])


def pieces(folded: str) -> list[str]:
    """A sentence, and its clauses if it is long: whatever stands beside an order makes it none the less one."""
    words = _count(folded)
    if words < FEWEST:
        return []
    clauses = _CLAUSE.split(folded) if words > SHORT else [folded]
    return [folded, *(clause for clause in clauses if _count(clause) >= FEWEST)] if len(clauses) > 1 else clauses


def _count(text: str) -> float:
    if text.isascii():
        return len(_WORD.findall(text))
    return sum([len(word) / 2 if _IS_UNSPACED.match(word) else 1.0 for word in _WORD.findall(text)])


def sentence_words(folded: str) -> Weighed:
    """The words of a sentence of a memory."""
    return _weighed(places_of_sentence(folded))


def quote_words(folded: str) -> Weighed:
    """The words of what somebody said."""
    return _weighed(places_of_quote(folded))


def is_harmful(kind: Kind, *parts: Weighed) -> bool:
    """Whether a text with these words reads like an order."""
    learned = weights()
    count = sum([part.words for part in parts])
    if not count:
        return False
    weight = sum([part.weight for part in parts])
    return learned.scale * weight / sqrt(count) + learned.bias > learned.limits[kind]


def places_of_sentence(folded: str) -> set[int]:
    """The places of a sentence's words, pairs of words and parts of words, in time in proportion to its length.

    The same word weighs differently in a sentence and in a quote, so each of them has places of its own.
    """
    return _places(folded, _OF_SENTENCE)


def places_of_quote(folded: str) -> set[int]:
    """The same for a quote."""
    return _places(folded, _OF_QUOTE)


def _weighed(places: set[int]) -> Weighed:
    return Weighed(len(places), sum(map(weights().of_place.__getitem__, places)))


_OF_SENTENCE, _OF_QUOTE = crc32(b"c:"), crc32(b"q:")
"""What the hashes of both begin with."""


def _places(folded: str, start: int) -> set[int]:
    if not folded:
        return set()
    places, before = set[int](), b"^"
    for found in _WORD.findall(folded):
        word, own = _of_word(found, start)
        places.update(own)
        places.add(crc32(b"%b %b" % (before, word), start) % PLACES)
        before = word
    places.add(crc32(before + b" $", start) % PLACES)
    return places


@lru_cache(maxsize=WORDS_KEPT)
def _of_word(found: str, start: int) -> tuple[bytes, tuple[int, ...]]:
    """What stands for a word in pairs, and its own places and those of its parts. A number counts as any number."""
    if _IS_UNSPACED.match(found):
        phrases = [found[i : i + length] for length in range(1, PHRASE + 1) for i in range(len(found) - length + 1)]
        return b"#", tuple({crc32(phrase.encode(), start) % PLACES for phrase in phrases})
    word = b"0" if _DIGIT.search(found) else found[:LONGEST_WORD].encode(errors="replace")
    hashes = [crc32(word, start)]
    if len(word) >= PART:
        whole, of_part = b"<%b>" % word, crc32(b"~", start)
        hashes += [crc32(whole[i : i + PART], of_part) for i in range(len(whole) - PART + 1)]
    return word, tuple({found % PLACES for found in hashes})
