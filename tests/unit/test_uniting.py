"""United tombstones: what either of two forgot is forgotten, and whoever unites them again changes nothing."""

from __future__ import annotations

import itertools

from memd.context import Bucket
from memd.memory.store.protocol import Cut, Tombstone, Wish
from memd.memory.store.uniting import united

GONE = Bucket("gone")
FIRST = Tombstone("owner", 0, "salt", frozenset()).grown(Wish("gone", None, Cut(1, 1)), ["n1"], begins=True)
LATER = FIRST.grown(Wish("gone", "chef", Cut(2, 2)), ["n2"], begins=True)
APART = FIRST.grown(Wish("gone", None, Cut(3, 3)), ["n3"], begins=True)
OTHERS = Tombstone("owner", 0, "pepper", frozenset()).grown(Wish("gone", None, Cut(4, 4)), ["n4"], begins=True)


def test_nothing_that_either_forgot_is_lost() -> None:
    """Hashes under each salt, and wishes; the generation grows, so that no commit takes it for what it was."""
    for one, other in itertools.permutations((FIRST, LATER, APART, OTHERS), 2):
        both = united(one, other)
        scopes = (GONE, Bucket("gone", "chef"))
        for bucket, name in itertools.product(scopes, ("n1", "n2", "n3", "n4", "n5")):
            assert both.holds(bucket, name) == (one.holds(bucket, name) or other.holds(bucket, name))
        assert set(both.wished) == {*one.wished, *other.wished}
        assert (both is one) == (set(other.wished) <= set(one.wished))
        assert both is one or both.generation > max(one.generation, other.generation)
        assert united(both, other) is both
        assert united(both, one) is both


def test_a_wish_alone_takes_the_others_hashes_and_stays_open() -> None:
    """Of a user whose forgetting was killed at its start."""
    wish = Wish("gone")
    both = united(Tombstone("owner", 0, "unused", frozenset(), open=(wish,)), LATER)
    assert (both.open, both.wished, both.salt) == ((wish,), LATER.wished, "salt")
