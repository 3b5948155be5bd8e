"""Turns of agents that wait in their process while the inbox is away."""

from __future__ import annotations

import logging

import pytest
from support import make_settings

from memd.adapters.agent_run import AgentRun
from memd.adapters.waiting_turns import MAX_WAITING, WaitingTurns
from memd.client import Memd
from memd.config import Settings

ANA, BEN = AgentRun("ana", "t"), AgentRun("ben", "t")


def turns(count: int, name: str = "m") -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"I own boat {name}{number}.", "id": f"{name}{number}"} for number in range(count)
    ]


@pytest.fixture
def away(settings: Settings) -> WaitingTurns:
    """No server listens there."""
    return WaitingTurns(Memd(make_settings(settings.data_dir, "unix:///nowhere/memd.sock")), "")


def test_what_waits_goes_with_the_next_push_in_its_order(away: WaitingTurns, memd: Memd) -> None:
    """Each thread's own, once; a flush takes those of all."""
    assert not away.push(ANA, turns(2))
    assert not away.push(BEN, turns(1))
    assert len(away) == 3
    away._memd = memd  # the inbox is back
    assert away.push(ANA, turns(3)[2:])
    assert [key.turns for key in memd.pending(user_id="ana").keys] == [3]
    assert memd.pending(user_id="ben").keys == ()
    assert away.push_all()
    assert [key.turns for key in memd.pending(user_id="ben").keys] == [1]
    assert len(away) == 0


def test_the_oldest_go_when_too_many_wait(away: WaitingTurns, caplog: pytest.LogCaptureFixture) -> None:
    """Of the thread that waits longest; the newest stay, and the log counts what went."""
    away.push(BEN, turns(3, "b"))
    with caplog.at_level(logging.ERROR, "memd"):
        away.push(ANA, turns(MAX_WAITING + 2))
    assert "E_WAITING_FULL: 3 turns dropped" in caplog.text
    assert "E_WAITING_FULL: 2 turns dropped" in caplog.text
    (waiting,) = away._waiting.values()
    assert [waiting[0]["id"], waiting[-1]["id"], len(waiting)] == ["m2", f"m{MAX_WAITING + 1}", MAX_WAITING]


def test_one_bad_turn_holds_back_no_other(memd: Memd, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged by its code, and dropped: memd will never accept it."""
    with caplog.at_level(logging.ERROR, "memd"):
        assert WaitingTurns(memd, "").push(ANA, [*turns(1), {"role": "wizard", "content": "x"}, *turns(1, "n")])
    assert "push_refused E_ROLE" in caplog.text
    assert [key.turns for key in memd.pending(user_id="ana").keys] == [2]
