"""Forgettings raced with pushes, workers, kills and a server that goes: what came after a wish stays."""

from __future__ import annotations

import pytest
from support.forget_races import play

pytestmark = pytest.mark.timing


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 5])
def test_what_came_before_a_wish_is_gone_and_what_came_after_it_is_stored(seed: int) -> None:
    """Some 70 random steps by both doors: documents, inbox, dead letters and receipts say the same, for each user."""
    races, wrong = play(seed, 70)
    assert wrong == []
    assert races > 5
