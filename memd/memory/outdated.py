"""Outdated: sentences of summaries that tell of today what an update has ended, where the update left them alone."""

from __future__ import annotations

from collections.abc import Sequence

from memd.memory.document import Fact
from memd.memory.draft import Draft
from memd.memory.duplicates import IS_CJK, tokens
from memd.memory.facts import content_of, id_of
from memd.memory.purge import Words, names_in, without_sentences
from memd.memory.sayings import earlier, end_of, of_summary

OF_TODAY = ("workContext", "personalContext", "topOfMind")
"""The summaries that tell how things are; in the others what is over has its place."""


def cut_outdated(draft: Draft) -> None:
    """Cut the sentences that hold a name or a number of a fact that this update ended, and that no fact has now."""
    ended = [entry for entry in draft.archived if id_of(entry) in draft.known and draft.is_retired(id_of(entry))]
    for name in OF_TODAY if ended else ():
        text, written = draft.summary(name), of_summary(draft.old, name)
        over = [entry for entry in ended if not earlier(end_of(entry), written)]
        if text and over and (kept := without_sentences(text, _Ended(over, list(draft.facts.values())))) != text:
            draft.rewrite(name, kept, written)


class _Ended(Words):
    """The content of ended facts, as a test of sentences."""

    def __init__(self, ended: Sequence[Fact], kept: Sequence[Fact]) -> None:
        super().__init__(ended, kept)
        known = frozenset[str]().union(*map(_telling, kept))
        self._gone = frozenset[str]().union(*map(_telling, ended)) - known

    def in_sentence(self, sentence: str) -> bool:
        """Whether it holds a name or a number that only an ended fact has, and is nearest to such a fact."""
        return not self._gone.isdisjoint(tokens(sentence)) and super().in_sentence(sentence)


def _telling(fact: Fact) -> frozenset[str]:
    """The names and numbers of a fact; in a script without capitals all its words."""
    content = content_of(fact)
    return names_in(content) | frozenset(token for token in tokens(content) if IS_CJK.match(token))
