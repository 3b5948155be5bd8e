"""Todo lists and tasks among processes: several writers at once, a writer that is killed, a disk that refuses."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from memd.disk import files
from memd.errors import Rejected, StoreUnavailable
from memd.tasks import TaskGraph, TodoList, task_files

WRITERS, EACH = 2, 25


def _work(data_dir: Path, name: str) -> None:
    """Create tasks that the first one waits for, start whatever can start, and write a list of its own."""
    graph = TaskGraph(data_dir, "ana")
    for number in range(EACH):
        graph.update(1, add_blocked_by=[graph.create(f"{name} {number}").id])
        TodoList(data_dir, "ana", name=name).write([{"text": str(number)}])
    for task in graph.overview().can_start:
        try:
            graph.update(task.id, status="in_progress", owner=name)
        except Rejected:
            continue


def test_writers_in_two_processes_lose_nothing(tmp_path: Path) -> None:
    """No id is given twice, no edge is lost, each task has one owner."""
    graph = TaskGraph(tmp_path, "ana")
    graph.create("the last one")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_work, args=(tmp_path, name)) for name in ("one", "two")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]

    tasks = graph.list()
    made = [f"{name} {number}" for name in ("one", "two") for number in range(EACH)]
    assert sorted(task.subject for task in tasks[1:]) == sorted(made)
    assert [task.id for task in tasks] == list(range(1, 2 + WRITERS * EACH))
    assert list(tasks[0].blocked_by) == [task.id for task in tasks[1:]]
    assert {(task.blocks, task.status) for task in tasks[1:]} == {((1,), "in_progress")}
    for name in ("one", "two"):
        assert [item.text for item in TodoList(tmp_path, "ana", name=name).items()] == [str(EACH - 1)]


def _change_and_die(data_dir: Path, line: int) -> bool:
    """Complete task 1 in a forked process that kills itself at its n-th line; whether it died there.

    Lines of `task_files` and of the file replace count; test_store_processes has the other lines of `files`.
    """
    left, replacing = line, files.replace.__code__

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line" and (frame.f_code is replacing or frame.f_code.co_filename == task_files.__file__):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    child = os.fork()
    if child == 0:
        sys.settrace(trace)
        TaskGraph(data_dir, "ana").update(1, status="completed", add_blocks=[])
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def _three(data_dir: Path) -> TaskGraph:
    """Tasks 2 and 3 wait for 1."""
    graph = TaskGraph(data_dir, "ana")
    for subject in ("one", "two", "three"):
        graph.create(subject)
    graph.update(1, add_blocks=[2, 3])
    return graph


@pytest.mark.long
def test_a_process_killed_within_a_change_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    """Whichever line it dies at; nobody is locked out, and the next change goes through and leaves whole files."""
    _three(tmp_path / "template")
    outcomes, died, line = set(), True, 0
    while died:
        line += 1
        shutil.copytree(tmp_path / "template", tmp_path / "data")
        died = _change_and_die(tmp_path / "data", line)
        graph = TaskGraph(tmp_path / "data", "ana")
        outcomes.add(tuple((task.status, task.blocked_by, task.blocks) for task in graph.list()))
        graph.update(2, owner="me")
        assert [task.owner for task in graph.list()] == ["", "me", ""]
        folder = tmp_path / "data" / "tasks" / "ana"
        assert {file.name for file in folder.iterdir()} == {"task_1.json", "task_2.json", "task_3.json"}
        assert (b'"completed"' in (folder / "task_1.json").read_bytes()) == (graph.get(3).blocked_by == ())
        shutil.rmtree(tmp_path / "data")
    assert outcomes == {
        (("pending", (), (2, 3)), ("pending", (1,), ()), ("pending", (1,), ())),
        (("completed", (), ()), ("pending", (), ()), ("pending", (), ())),
    }
    assert line > 50


def test_a_disk_that_refuses_leaves_the_graph_and_the_list(tmp_path: Path) -> None:
    """The error has the disk's code, the old content is there, and no temp file stays."""
    graph, todo = _three(tmp_path), TodoList(tmp_path, "ana")
    todo.write([{"text": "old"}])
    before = graph.list()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        codes = []
        for change in (
            lambda: graph.create("new"),
            lambda: graph.update(1, status="completed"),
            lambda: todo.write([{"text": "new"}]),
        ):
            try:
                change()
            except StoreUnavailable as error:
                codes.append(str(error).partition(":")[0])
        os._exit(0 if codes == [f"E_STORE_{errno.errorcode[errno.EFBIG]}"] * 3 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert graph.list() == before
    assert [item.text for item in todo.items()] == ["old"]
    assert not list(tmp_path.rglob("*.tmp"))
