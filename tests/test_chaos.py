"""The chaos run in small: what `make chaos` does for a minute, for a few seconds."""

from __future__ import annotations

import pytest
from chaos.plan import small
from chaos.run import chaos


@pytest.mark.timeout(180)
def test_nothing_is_lost_or_stored_twice_while_processes_are_killed() -> None:
    """300 contexts by both doors, ten kills: all is stored, once, in order, for its user."""
    report = chaos(small(seed=7), quiet=True)
    assert report.passed, report.table()
    assert (report.stored, sum(report.kills.values())) == (300, 10)
