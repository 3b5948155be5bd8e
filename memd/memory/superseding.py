"""Superseding: ends facts that a new fact plainly contradicts, where the extractor did not name them in `replaces`.

Cautious, as a wrong answer would end a fact that holds: only what was said earlier of the same person ends. A sentence
must say that it is over, or deny it; or it has the same frame with another name or number, and the user's words tell of
a change and not of a second thing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache

from memd.memory.contradicting import Sentence
from memd.memory.document import Fact
from memd.memory.draft import Draft
from memd.memory.duplicates import Contents
from memd.memory.facts import category_of, content_of, id_of, is_manual, proven_by, quotes_of, replaces
from memd.memory.many_texts import ManyTexts
from memd.memory.retiring import Ending
from memd.memory.sayings import earlier, of_fact
from memd.memory.telling import telling
from memd.memory.text import CJK, fold
from memd.memory.whom import whom_of

_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_ENDING = re.compile(r"(?<=...)(?:ing|ed|es|s|e)$")
_DOUBLED = re.compile(r"([bdgmnprt])\1$")


def end_superseded(draft: Draft, contents: Contents) -> None:
    """End the facts that the draft's new facts contradict. A fact that the user has said again is left alone.

    `contents`: those of the draft's facts, and maybe of some that have ended.
    """
    for fact_id, index in draft.added.items():
        if fact_id not in draft.facts:
            continue
        later = Later(draft.facts[fact_id])
        rivals = map(id_of, contents.at(later.rivals(contents.lines)))
        for old_id in [old_id for old_id in rivals if _may_end(draft, old_id, later)]:
            new = draft.facts[fact_id]
            wish = Ending(old_id, "replaced", replaced_by=fact_id, over=of_fact(new), proofs=proven_by(new))
            if draft.retire(wish, "newFacts", index):
                draft.change(fact_id, replaces=[*replaces(new), old_id])


def _may_end(draft: Draft, old_id: str, later: Later) -> bool:
    if old_id not in draft.known or old_id not in draft.facts:
        return False
    old = draft.facts[old_id]
    return (
        whom_of(old) == later.whom
        and category_of(old) != "event"
        and not is_manual(old)
        and not draft.is_confirmed(old_id)
        and later.supersedes(old)
        and earlier(of_fact(old), of_fact(later.fact))
    )


class Later:
    """A fact that may take the place of facts that were said before it."""

    def __init__(self, fact: Fact) -> None:
        self.fact = fact
        self.whom = whom_of(fact)
        self._sentence = _sentence(content_of(fact))
        self._words = frozenset(words_of(self._sentence.text))

    def rivals(self, lines: ManyTexts) -> Collection[int]:
        """The places of the `folded_lines` that this may supersede: none that it does is left out."""
        return range(len(lines.texts)) if self._over else self._sentence.rivals(lines)

    def supersedes(self, old: Fact) -> bool:
        """Whether this plainly takes the place of an older fact of the same person."""
        former = _sentence(content_of(old))
        if any(self._tells_first(former.text, thing) for thing in self._over):
            return True
        kind = self._sentence.differs_in(former)
        if kind in ("number", "name"):
            return category_of(self.fact) == category_of(old) and self._tells_of_a_change
        return kind == "negation"

    @cached_property
    def _tells_of_a_change(self) -> bool:
        told = " ".join((content_of(self.fact), *quotes_of(self.fact)))
        return telling().changed.search(told) is not None and telling().besides.search(told) is None

    @cached_property
    def _over(self) -> list[frozenset[str]]:
        """The words of each thing that the sentence says is over."""
        things = map(_telling_part, _things_over(self._sentence.text))
        return [words for thing in things if (words := frozenset(words_of(thing)))]

    def _tells_first(self, sentence: str, thing: frozenset[str]) -> bool:
        """Whether a sentence, which tells of no end itself, has all words of a thing, and before them only words that
        this fact has too or that say that somebody has or does it."""
        words = words_of(sentence)
        if not thing <= frozenset(words) or telling().over.search(sentence):
            return False
        start = min(map(words.index, thing))
        return not (frozenset(words[:start]) & frozenset(words_of(_telling_part(sentence)))) - self._words


@lru_cache(maxsize=2048)
def _sentence(content: str) -> Sentence:
    """A content without the words that tell since when it holds, taken apart."""
    return Sentence(" ".join(telling().dated.sub(" ", content).split()), "")


def _things_over(sentence: str) -> Iterator[str]:
    for match in telling().over.finditer(sentence):
        thing = next(filter(None, match.groups()))
        end = telling().clause_end.search(thing)
        yield thing[: end.start()] if end else thing


def _telling_part(text: str) -> str:
    """A text without the verbs that say only that somebody has or does a thing."""
    return telling().light.sub(" ", text)


def words_of(text: str) -> list[str]:
    """The words of a text, folded and without endings: "climbing" and "climbs" are one, as are "running" and "runs"."""
    return [_DOUBLED.sub(r"\1", _ENDING.sub("", word)) for word in _WORD.findall(fold(text))]
