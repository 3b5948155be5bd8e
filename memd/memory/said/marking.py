"""Marking: which turns of the layer a commit hides, and which say what has changed since. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memd.memory.document import Document, Fact, archive_of
from memd.memory.duplicates import tokens
from memd.memory.facts import by_id, content_of, id_of, proven_by
from memd.memory.purge import content_words, names_in
from memd.memory.said.removal import SHARE
from memd.memory.said.turns import Mark, Said, Turn
from memd.memory.text import CJK, normal_key

_CJK = re.compile(f"[{CJK}]")


class Changed(NamedTuple):
    """A fact that went to the archive because the user said so, and the one in its place; None when none is."""

    old: Fact
    new: Fact | None


def changed_facts(before: Mapping[str, Fact], archive: Iterable[Fact], after: Mapping[str, Fact]) -> Iterator[Changed]:
    """The change of each of these archive entries. `before` and `after`: the facts by id around the commit."""
    for entry in archive:
        old = before.get(str(entry.get("id")))
        if old is not None:
            yield Changed(old, after.get(str(entry.get("replacedBy"))))


def edited_facts(before: Document, after: Document) -> Iterator[Changed]:
    """The change of each fact whose words somebody changed by hand, or which they archived; removed facts are none."""
    facts, archive = by_id(after), {id_of(entry) for entry in archive_of(after)}
    for fact_id, old in by_id(before).items():
        new = facts.get(fact_id)
        if new is None and fact_id in archive:
            yield Changed(old, None)
        elif new is not None and normal_key(content_of(new)) != normal_key(content_of(old)):
            yield Changed(old, new)


def hidden_marks(identities: Iterable[str], now: str, why: str = "update") -> list[Mark]:
    """Marks that hide these turns."""
    return [Mark(identity, "hidden", why, now) for identity in dict.fromkeys(identities)]


def over_marks(said: Said, changes: Sequence[Changed], now: str, latest: str = "") -> list[Mark]:
    """Marks on the turns of the user that say what these changes have ended.

    These are the turns that proved the old fact, and those with the names and numbers that it has and the new one
    lacks; where it has no such, most of its words. `latest`: when the newest word of the change was said; turns said
    later are not touched.
    """
    tests = [_Test(change) for change in changes]
    return [
        Mark(turn.id, "over", "changed", now)
        for turn in said.turns
        if turn.role == "user" and turn.id not in said.over and not ("" < latest < turn.said_at)
        if any(test.holds(turn) for test in tests)
    ]


class _Test:
    """What a turn must hold to say what a change has ended."""

    def __init__(self, change: Changed) -> None:
        old, new = content_of(change.old), content_of(change.new) if change.new else ""
        kept = frozenset(tokens(new))
        self._proofs = frozenset(proven_by(change.old)).difference(proven_by(change.new) if change.new else ())
        self._words = content_words(old)
        self._own = frozenset(_own(self._words, kept, new))
        named = names_in(old) - kept
        if new and not named:
            named = frozenset(token for token in self._own if _CJK.match(token))
        self._named = named
        self._others = self._words - named if all(map(_is_number, named)) else frozenset[str]()

    def holds(self, turn: Turn) -> bool:
        """Whether a turn is to be marked."""
        if turn.id in self._proofs:
            return True
        has = frozenset(tokens(turn.text))
        if self._named:
            return self._named <= has and (not self._others or not self._others.isdisjoint(has))
        return bool(self._own & has) and len(self._words & has) >= SHARE * len(self._words)


def _own(words: Iterable[str], kept: frozenset[str], new: str) -> Iterator[str]:
    """The words that the new sentence lacks. A pair of CJK characters that shares one with it is no word of its own."""
    for word in words:
        if word not in kept and not (_CJK.match(word) and any(char in new for char in word)):
            yield word


def _is_number(token: str) -> bool:
    return any(map(str.isdigit, token))
