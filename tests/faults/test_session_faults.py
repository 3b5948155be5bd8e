"""What may happen to a session within a save: killed or refused at any system call, nothing is lost or doubled."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import redis
from support import strace

from memd.client import Memd
from memd.config import Settings
from memd.context import Key
from memd.errors import StoreUnavailable
from memd.memory.store.session_files import SessionFiles
from memd.memory.store.tombstone import TombstoneFiles

KEY = Key("t", "ana")
REFUSED = 3
WRITES = frozenset({"pwrite64", "write", "fsync", "ftruncate", "mkdir", "rename", "unlink"})


@pytest.fixture(scope="module", autouse=True)
def traceable() -> None:
    """Skipped, with the reason, where strace cannot be used."""
    if reason := strace.why_not():
        pytest.skip(reason)


def sessions(folder: Path) -> SessionFiles:
    return SessionFiles(folder, TombstoneFiles(folder))


def save(folder: Path, text: str) -> None:
    """Save a session with one more line; a documented refusal is the exit code of the child."""
    store = sessions(folder)
    loaded = store.load(KEY)
    state = {"sessionId": "t", "components": {"memory": {"messages": [{"role": "USER", "id": text}]}}}
    try:
        store.save(KEY, loaded, state, [text.encode()])
    except StoreUnavailable:
        os._exit(REFUSED)


def found(folder: Path) -> tuple[str, list[bytes]]:
    """The text of the state, and the lines."""
    store = sessions(folder)
    loaded = store.load(KEY)
    assert loaded.state is not None
    return loaded.state["components"]["memory"]["messages"][0]["id"], list(store.lines(KEY, loaded))


def copied(tmp_path: Path, name: str) -> Path:
    """A folder with a session that was saved once."""
    if not (tmp_path / "template").exists():
        save(tmp_path / "template", "one")
    return Path(shutil.copytree(tmp_path / "template", tmp_path / name))


@pytest.mark.long
def test_killed_or_refused_at_any_system_call_state_and_lines_agree(tmp_path: Path) -> None:
    """Either the old session or the new one, each with its lines; the next save puts everything in order."""
    calls = strace.calls(lambda: save(copied(tmp_path, "calls"), "two"))
    assert len(calls) > 10
    for name, number in (call for call in calls if call[0] in WRITES):
        for fault in ("signal=KILL", "error=EIO"):
            folder = copied(tmp_path, "now")
            strace.inject(partial(save, folder, "two"), f"{name}:{fault}:when={number}")
            assert found(folder) in (("one", [b"one"]), ("two", [b"one", b"two"])), (name, number, fault)
            save(folder, "three")
            text, lines = found(folder)
            assert (text, lines[0], lines[-1]) == ("three", b"one", b"three"), (name, number, fault)
            assert lines[1:-1] in ([], [b"two"])
            assert not list(folder.rglob("*.tmp"))
            assert len(list(folder.rglob("lines-*"))) == 1
            shutil.rmtree(folder)


def chat(settings: Settings, user: str) -> None:
    """A chat that is too long for its window, saved once."""
    with Memd(settings) as memd:
        session = memd.session("t", user_id=user)
        for number in range(10):
            session.user(f"I own bicycle number {number}, and I live in Porto.", id=f"u{number}")
            session.assistant(f"Bicycle {number}, noted.", id=f"a{number}")
        session.save()


def test_killed_anywhere_in_a_save_that_cuts_all_turns_reach_the_inbox_once(
    configured: Callable[..., Settings], client: redis.Redis
) -> None:
    """What a save has written is pushed by the next load; what it has pushed already counts once."""
    settings = configured(
        session__compact_tokens=200, session__max_tokens=200, session__keep_tokens=50, session__summary_tokens=100
    )
    calls = [call for call in strace.calls(partial(chat, settings, "first")) if call[0] in WRITES]
    ends = set()
    for place, (name, number) in enumerate(calls):
        user = f"ana{place}"
        strace.inject(partial(chat, settings, user), f"{name}:signal=KILL:when={number}")
        with Memd(settings) as memd:
            is_saved = len(memd.session("t", user_id=user).messages) > 0
            turns = sum(key.turns for key in memd.pending(user_id=user).keys)
        assert turns == (20 if is_saved else 0), (name, number)
        ends.add(is_saved)
    assert ends == {True, False}
