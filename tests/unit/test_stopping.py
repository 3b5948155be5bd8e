"""Ctrl-C in a measurement: the part measured so far is reported, and asyncio prints nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.evaluation_support import read, says, update, user, write

from memd.cli import interrupt
from memd.config import Settings
from memd.evaluation.attack_cases import read_cases
from memd.evaluation.measuring import Measuring, Source, measure_cases
from memd.evaluation.stopping import completes

TRUE = {"label": "true", "kind": "home", "language": "en", "text": "I live in Porto.", "honest": {}}


@pytest.fixture(autouse=True)
def handled() -> Iterator[None]:
    """SIGINT is handled as in the command line."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt.install()
    yield
    signal.signal(signal.SIGINT, before)


def press(_count: object = None) -> None:
    """Ctrl-C, twice."""
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)


def quiet(caplog: pytest.LogCaptureFixture) -> bool:
    """Whether asyncio logged nothing, also about tasks that are gone."""
    gc.collect()
    return not [record for record in caplog.records if record.name == "asyncio"]


def test_users(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The signal comes inside a step, after the first of three users."""
    users = read(tmp_path / "set.jsonl", *(user(says("I live in Porto."), name=name) for name in ("a", "b", "c")))
    replies = write(tmp_path / "r.jsonl", *({"name": f"{name}.s1.1", "reply": update()} for name in users))
    report = Measuring(Settings(), users, Source(replay=(replies,))).measure(100, press)
    assert report["interrupted"]
    assert 1 <= report["run"]["users"] <= 3
    assert "repeat" not in report
    assert quiet(caplog)


def test_cases(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The same for attacks and true statements."""
    cases = read_cases([write(tmp_path / "a.jsonl", *(TRUE | {"id": name} for name in "abc"))])
    report = measure_cases(Settings(), cases, by_model=False, repeat=100, progress=press)
    assert report["interrupted"]
    assert 1 <= report["cases"] <= 3
    assert quiet(caplog)


def test_the_error_of_the_work_rises() -> None:
    """Only an interruption is a value."""

    async def fails() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        completes(fails)


def test_what_waits_is_cancelled_and_the_handler_is_put_back(caplog: pytest.LogCaptureFixture) -> None:
    """Work that never ends by itself, interrupted before the loop waits."""
    before = signal.getsignal(signal.SIGINT)

    async def waits() -> None:
        press()
        await asyncio.Event().wait()

    assert not completes(waits)
    assert signal.getsignal(signal.SIGINT) is before
    assert quiet(caplog)
