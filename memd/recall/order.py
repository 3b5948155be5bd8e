"""Order: what never stands above what, whatever the scores say.

What was replaced stands below what replaced it, and of two facts that say the same of different things or times the
newer stands first; an excerpt stands below every later fact that has its words. Scores are changed in place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memd.memory.document import Fact
from memd.memory.facts import content_of, person_of
from memd.recall.ranking import Answering
from memd.recall.replaced import Replaced
from memd.recall.words import roots

COMPARED = 30
"""Of so many best facts the newer stand first: a comparison of all pairs takes some 0.1 ms for each ten."""

ALIKE, ALIKE_UNSPACED = 0.6, 0.35
"""Two facts answer with the same words when they share this much of the smaller one's words, names and numbers aside.
In scripts without spaces, where a name cannot be told, whatever they do not share counts as one."""

_STEP = 1e-6
"""How much lower the score is of what stands below something of the same score."""

_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_VARYING = re.compile(r"\b[A-ZÀ-Þ]\w+|\d[\d.,:/-]*")
"""Names and numbers, in which a newer fact differs from the older one."""


def inherit(replaced: Replaced, answering: dict[int, Answering]) -> None:
    """What replaced a fact answers whatever that one answers: it gets at least its similarity."""
    for old, news in replaced.items():
        for new in news:
            if old in answering:
                known = answering.get(new, Answering(0.0, 0))
                answering[new] = Answering(max(known.similarity, answering[old].similarity), known.covered)


def replaced_below(scores: dict[int, float], replaced: Replaced) -> None:
    """A replaced fact has at most the score of each of its replacements."""
    for old, news in replaced.items():
        if old in scores:
            scores[old] = min(scores[old], *(scores[new] for new in news))


class _Words(NamedTuple):
    person: str
    constant: frozenset[str]
    varying: frozenset[str] | None


def newer_first(
    scores: dict[int, float],
    answering: Mapping[int, Answering],
    facts: Sequence[Fact],
    times: Sequence[float],
    replaced: Replaced,
) -> None:
    """Of two facts that answer with the same words and differ in names or numbers the newer takes the better score."""
    best = sorted((place for place in scores if place < len(facts)), key=lambda place: -scores[place])[:COMPARED]
    words: dict[int, _Words] = {}
    for place in sorted(best, key=lambda place: -times[place]):
        mine = _words(facts[place])
        for newer, theirs in words.items():
            same = answering[place].covered
            if not same or same & ~answering[newer].covered or times[newer] <= times[place]:
                continue
            if scores[place] > scores[newer] - _STEP and newer not in replaced and _vary(mine, theirs):
                scores[newer] = max(scores[newer], scores[place])
                scores[place] = scores[newer] - _STEP
        words[place] = mine


def excerpts_below(
    scores: dict[int, float],
    answering: Mapping[int, Answering],
    times: Sequence[float],
    facts: int,
    names: int,
) -> None:
    """An excerpt stands below each fact that was said later and has all words of the query that it has.

    `facts`: places below this are facts. `names`: the bits of roots that are names; to share only those is nothing.
    """
    known = sorted(
        ((times[place], answering[place].covered, score) for place, score in scores.items() if place < facts),
        reverse=True,
    )
    lowest: dict[int, list[tuple[float, float]]] = {}
    for time, covered, of_fact in known:
        least = min(of_fact, lowest[covered][-1][1]) if covered in lowest else of_fact
        lowest.setdefault(covered, []).append((time, least))
    for place, score in scores.items():
        own = answering[place].covered & ~names
        if place < facts or not own:
            continue
        below = score
        for covered, later in lowest.items():
            if not own & ~covered:
                # The facts come latest first: the last one that is late enough knows the least score so far.
                end = bisect_right(later, -times[place], key=lambda pair: -pair[0])
                if end:
                    below = min(below, later[end - 1][1] - _STEP)
        scores[place] = below


def _words(fact: Fact) -> _Words:
    content = content_of(fact)
    if _UNSPACED.search(content):
        return _Words(person_of(fact), frozenset(roots(content)), None)
    varying = frozenset(root for text in _VARYING.findall(content[1:]) for root in roots(text))
    return _Words(person_of(fact), frozenset(roots(content)) - varying, varying)


def _vary(older: _Words, newer: _Words) -> bool:
    if older.person != newer.person:
        return False
    unspaced = older.varying is None and newer.varying is None
    same = older.constant == newer.constant if unspaced else older.varying == newer.varying
    smaller = min(len(older.constant), len(newer.constant))
    alike = ALIKE_UNSPACED if unspaced else ALIKE
    return not same and smaller > 0 and len(older.constant & newer.constant) >= alike * smaller
