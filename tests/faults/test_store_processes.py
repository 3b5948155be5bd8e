"""The store among processes: several writers, a writer that is killed, and system calls that fail."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.stores import ALICE, contents, names, options, save

from memd.disk import files
from memd.errors import Conflict
from memd.memory.store.json_store import JsonStore


@pytest.fixture
def store(tmp_path: Path) -> JsonStore:
    """A store in an empty data folder."""
    return JsonStore(tmp_path / "data", options())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where Alice's document is."""
    return tmp_path / "data" / "users" / "alice@example.com" / "memory.json"


def _add_from_process(data_dir: Path, first: int) -> None:
    store = JsonStore(data_dir, options())
    for number in range(first, first + 20):
        while True:
            try:
                save(store, f"cat {number}")
            except Conflict:
                continue
            break


def test_no_update_is_lost_between_processes(store: JsonStore, tmp_path: Path) -> None:
    """The lock and the check hold between processes too."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add_from_process, args=(tmp_path / "data", n * 100)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)

    assert len(set(contents(store))) == 60
    assert store.load(ALICE).revision == 60


def _save_and_die(store: JsonStore, line: int) -> bool:
    """Save in a forked process that kills itself at its n-th line of `files`; whether it died there."""
    left = line

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line" and frame.f_code.co_filename == files.__file__:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    child = os.fork()
    if child == 0:
        sys.settrace(trace)
        save(store, "new")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_a_process_killed_within_a_commit_leaves_the_old_or_the_new_document(tmp_path: Path) -> None:
    """Whichever line it dies at, the document is whole, nobody is locked out, and the next commit goes through."""
    outcomes = set()
    for line in range(1, 500):
        store = JsonStore(tmp_path / str(line), options())
        save(store, "old")
        died = _save_and_die(store, line)

        outcomes.add((died, tuple(contents(store))))
        save(store, "next")
        assert contents(store)[-1] == "next"
        assert names(tmp_path / str(line) / "users" / "alice@example.com") == {"memory.json", "memory.prev.json"}
        if not died:
            break
    assert outcomes == {(True, ("old",)), (True, ("old", "new")), (False, ("old", "new"))}


def _can_inject() -> bool:
    strace = shutil.which("strace")
    return bool(strace) and subprocess.run([str(strace), "-o", os.devnull, "true"], check=False).returncode == 0


COMMIT = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from memd.memory.store.json_store import JsonStore
from support.stores import ALICE, options, ours
from memd.errors import StoreUnavailable
store = JsonStore(Path(sys.argv[1]), options())
loaded = store.load(ALICE)
try:
    store.commit(ALICE, loaded, {**loaded.document, "revision": 2, "facts": []}, ours)
except StoreUnavailable as error:
    print(error)
"""


@pytest.mark.skipif(not _can_inject(), reason="needs strace and the right to trace")
@pytest.mark.parametrize(
    ("calls", "code", "when"),
    [
        ("fsync", "EIO", 1),
        ("fsync", "EIO", 2),
        ("?rename,?renameat,?renameat2", "EDQUOT", 1),
        ("?link,linkat", "EIO", 1),
        ("write", "ENOSPC", 1),
    ],
)
def test_a_system_call_that_fails_leaves_the_old_document_and_no_temp_file(
    store: JsonStore, file: Path, calls: str, code: str, when: int
) -> None:
    """Also when it is the fsync of the folder, after the rename: a name that may not last is taken back."""
    loaded = save(store, "The user likes tea")
    only = [part for path in (file.parent, file, file.with_name("memory.json.tmp")) for part in ("-P", str(path))]
    fault = ["-e", f"trace={calls}", "-e", f"inject={calls}:error={code}:when={when}"]
    commit = [sys.executable, "-c", COMMIT, str(file.parents[2]), str(Path(__file__).parents[1])]
    process = subprocess.run(
        ["strace", "-f", "-o", os.devnull, *only, *fault, *commit], check=True, capture_output=True, text=True
    )

    assert process.stdout.startswith(f"E_STORE_{code}")
    assert store.load(ALICE) == loaded
    assert names(file.parent) <= {"memory.json", "memory.prev.json"}
