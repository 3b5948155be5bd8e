"""What may happen to the said layer within a commit: killed or refused at any system call, document and layer agree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support import strace
from support.stores import ALICE, options, ours

from memd.errors import Conflict, StoreUnavailable
from memd.memory.said.changes import SaidChange, append, rewrite
from memd.memory.said.turns import Said, Turn, without
from memd.memory.store.json_store import JsonStore

REFUSED = 3
OLD = [Turn("i1", "t", "user", "one"), Turn("i2", "t", "user", "two")]
NEW = Turn("i3", "t", "user", "three")
CHANGES: dict[str, Callable[[Said], SaidChange | None]] = {
    "append": lambda _: append([NEW]),
    "rewrite": lambda said: rewrite(without(said, ["i1"]), [NEW]),
}
AFTER = {"append": ["i1", "i2", "i3"], "rewrite": ["i2", "i3"]}


@pytest.fixture(scope="module", autouse=True)
def traceable() -> None:
    """Skipped, with the reason, where strace cannot be used."""
    if reason := strace.why_not():
        pytest.skip(reason)


def commit(store: JsonStore, change: Callable[[Said], SaidChange | None]) -> None:
    """Change the layer, and count the revision."""
    loaded = store.load(ALICE)
    said = change(store.read_said(ALICE, loaded.document))
    store.commit(ALICE, loaded, {**loaded.document, "revision": loaded.revision + 1}, ours, said=said)


def attempt(store: JsonStore, change: str) -> None:
    """Change the layer, in a child; a documented refusal is its exit code."""
    try:
        commit(store, CHANGES[change])
    except (StoreUnavailable, Conflict):
        os._exit(REFUSED)


def state(store: JsonStore) -> tuple[int, list[str]]:
    """The revision, and the identities of the turns."""
    loaded = store.load(ALICE)
    return loaded.revision, [turn.id for turn in store.read_said(ALICE, loaded.document).turns]


def copied(tmp_path: Path, name: str) -> JsonStore:
    """A store of its own with two turns."""
    if not (tmp_path / "template").exists():
        commit(JsonStore(tmp_path / "template", options()), lambda _: append(OLD))
    shutil.copytree(tmp_path / "template", tmp_path / name)
    return JsonStore(tmp_path / name, options())


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
def test_killed_at_any_system_call_layer_and_document_agree(tmp_path: Path, change: str) -> None:
    """Both old or both new; and whatever was left, the next change is right and leaves one file."""
    found = []
    for name, when in strace.calls(partial(attempt, copied(tmp_path, "traced"), change)):
        store = copied(tmp_path, f"{name}-{when}")
        assert strace.inject(partial(attempt, store, change), f"{name}:signal=SIGKILL:when={when}").killed
        revision, turns = now = state(store)
        assert now in [(1, ["i1", "i2"]), (2, AFTER[change])], (name, when)
        commit(store, lambda _: append([Turn("i9", "t", "user", "next")]))
        assert state(store) == (revision + 1, [*turns, "i9"]), (name, when)
        store.sweep_said(ALICE)
        assert len(list((tmp_path / f"{name}-{when}").rglob("said-*"))) == 1
        found.append(revision)
    assert found == sorted(found)
    assert set(found) == {1, 2}


@pytest.mark.parametrize("code", ["ENOSPC"])
@pytest.mark.parametrize("change", CHANGES)
def test_where_any_write_fails_layer_and_document_agree(tmp_path: Path, change: str, code: str) -> None:
    """Refused, both are the old ones; only what cannot be deleted afterwards is refused with both new."""
    calls = strace.calls(partial(attempt, copied(tmp_path, "traced"), change))
    refused = set()
    for name, when in calls:
        if name not in {"pwrite64", "write", "fsync", "ftruncate", "unlink", "linkat", "rename"}:
            continue
        store = copied(tmp_path, f"{name}-{when}")
        ended = strace.inject(partial(attempt, store, change), f"{name}:error={code}:when={when}")
        now = state(store)
        assert now in [(1, ["i1", "i2"]), (2, AFTER[change])], (name, when)
        assert ended.code == (0 if now[0] == 2 and name != "unlink" else ended.code), (name, when)
        assert ended.code in (0, REFUSED)
        assert now[0] == 2 or ended.code == REFUSED, (name, when)
        refused |= {name} if ended.code == REFUSED else set()
    assert refused >= {"pwrite64", "write", "fsync", "rename"}


def test_a_plain_append_costs_no_further_fsync(tmp_path: Path) -> None:
    """A change that must not be lost, as a mark, costs one."""
    counts = [
        sum(name == "fsync" for name, _ in strace.calls(partial(commit, copied(tmp_path, label), change)))
        for label, change in (("none", lambda _: None), ("plain", CHANGES["append"]))
    ]
    assert counts[0] == counts[1]
