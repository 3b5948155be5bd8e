"""Which turns go when facts are removed: those that proved them, and those of either role that say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memd.memory.document import Fact
from memd.memory.duplicates import tokens
from memd.memory.facts import content_of, proven_by, quotes_of
from memd.memory.purge import content_words, names_in
from memd.memory.said.changes import Rewrite, rewrite
from memd.memory.said.taking import sentence_hash, sentences_in, turn_hash
from memd.memory.said.turns import Said, Turn, without

SHARE = 0.6
"""Of a fact without names and numbers, this share of its words makes a turn say the same."""


LEAST_WORDS = 2
"""Words of a sentence that stays away, not counting grammar: a bare yes is said again and again."""


@dataclass(frozen=True, slots=True)
class TurnsGone:
    """Turns that go, the layer without them (None: as it is), and the hashes that keep them, the proofs and the
    sentences that said the same away.
    """

    turns: tuple[Turn, ...]
    change: Rewrite | None
    hashes: tuple[str, ...]


def remove_turns(said: Said, facts: Sequence[Fact]) -> TurnsGone:
    """Take the turns of removed facts out of a layer."""
    proofs = {name for fact in facts for name in proven_by(fact)}
    tests = [_Test(content_of(fact)) for fact in facts]
    turns = tuple(turn for turn in said.turns if turn.id in proofs or any(test.holds(turn.text) for test in tests))
    gone = {turn.id for turn in turns}
    quotes = [quote for fact in facts for quote in quotes_of(fact)]
    told = [one for turn in turns for one in sentences_in(turn.text) if any(test.holds(one) for test in tests)]
    again = {one for one in (*quotes, *told) if len(content_words(one)) >= LEAST_WORDS}
    hashes = [*map(turn_hash, sorted(proofs | gone)), *dict.fromkeys(map(sentence_hash, sorted(again)))]
    return TurnsGone(turns, rewrite(without(said, gone)) if gone else None, tuple(hashes))


class _Test:
    """What a turn must hold to say the same as a fact."""

    def __init__(self, content: str) -> None:
        self._names = names_in(content)
        self._words = content_words(content)

    def holds(self, text: str) -> bool:
        if self._names:
            return self._names.issubset(tokens(text))
        return bool(self._words) and len(self._words & content_words(text)) >= SHARE * len(self._words)
