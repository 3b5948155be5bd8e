"""The todo list with its reminder, and the task graph: no half change, both directions mirrored, no cycles."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins
from support import code_blocks

from memd.errors import DocumentDamaged, Rejected, StoreUnavailable
from memd.tasks import TaskGraph, TodoList
from memd.tasks import graph as rules
from memd.tasks.graph import MAX_TASKS, Task, TaskChange
from memd.tasks.task_folder import TaskFolder
from memd.tasks.todo import REMINDER

ids = st.frozensets(st.integers(1, 5), max_size=2)
changes = st.one_of(
    st.just("create"),
    st.integers(1, 9),
    st.tuples(
        st.integers(1, 6),
        st.builds(TaskChange, st.sampled_from([None, *rules.STATUSES]), st.none(), ids, ids, ids),
    ),
)


@pytest.fixture
def graph(tmp_path: Path) -> TaskGraph:
    """An empty graph."""
    return TaskGraph(tmp_path, "ana")


@pytest.fixture
def todo(tmp_path: Path) -> TodoList:
    """An empty list."""
    return TodoList(tmp_path, "ana")


def applied(tasks: dict[int, Task], change: Any) -> dict[int, Task]:
    """The tasks after a random change."""
    if change == "create":
        task = rules.created(tasks, "a subject", "")
        assert task.id == max(tasks, default=0) + 1
        return {**tasks, task.id: task}
    return rules.removed(tasks, change) if isinstance(change, int) else rules.changed(tasks, *change)


@settings(max_examples=150)
@given(st.lists(changes, max_size=30))
def test_whatever_is_changed_the_graph_holds(steps: list[Any]) -> None:
    """Both directions mirror each other, nobody waits in a circle, nobody who waits has begun; or it is refused."""
    tasks = {number: Task(number, "a subject") for number in range(1, 6)}
    for step in steps:
        with suppress(Rejected):
            tasks = applied(tasks, step)
        edges = {(task.id, blocker) for task in tasks.values() for blocker in task.blocked_by}
        assert edges == {(waiting, task.id) for task in tasks.values() for waiting in task.blocks}
        assert all(tasks[waiting].status == "pending" and tasks[by].status != "completed" for waiting, by in edges)
        rules.check_cycles({task.id: frozenset(task.blocked_by) for task in tasks.values()})
        lists = rules.overview(tasks.values())
        assert len(lists.can_start) + len(lists.in_progress) + len(lists.blocked) + len(lists.done) == len(tasks)
        assert bool(lists.can_start or lists.in_progress) or not lists.blocked


def test_the_life_of_three_tasks(graph: TaskGraph, tmp_path: Path) -> None:
    """What can start, what is blocked, what is done; completing a task unblocks those that wait for it."""
    assert [graph.create(subject, "why").id for subject in ("Book the hall", "Invite", "Celebrate")] == [1, 2, 3]
    graph.update(1, add_blocks=[2, 3])
    graph.update(3, add_blocked_by=[2])
    found = graph.overview()
    assert [[task.id for task in part] for part in (found.can_start, found.blocked)] == [[1], [2, 3]]
    graph.update(1, status="in_progress", owner="lead")
    assert [task.id for task in graph.overview().in_progress] == [1]
    assert graph.update(1, status="completed").blocks == ()
    found = graph.overview()
    assert [[task.id for task in part] for part in (found.can_start, found.blocked, found.done)] == [[2], [3], [1]]
    graph.remove(2)
    assert graph.get(3).blocked_by == ()
    file = tmp_path / "tasks" / "ana" / "task_3.json"
    assert json.loads(file.read_text()) == {
        "id": 3, "subject": "Celebrate", "description": "why", "status": "pending",
        "blockedBy": [], "blocks": [], "owner": "",
    }  # fmt: skip
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert {found.name for found in file.parent.iterdir()} == {"task_1.json", "task_3.json"}


def test_users_and_agents_have_tasks_of_their_own(tmp_path: Path) -> None:
    """Ids of any writing and length, and such that look like paths."""
    owners = [
        ("ana", ""),
        ("ana", "coder"),
        ("agents", ""),
        ("../ana", ""),
        ("ana/agents/coder", ""),
        ("林" * 80, ".."),
    ]
    for user, agent in owners:
        assert TaskGraph(tmp_path, user, agent).create("mine").id == 1
        TodoList(tmp_path, user, agent, name="a/../b").write([{"text": "mine"}])
    assert all(tmp_path / "tasks" in file.parents for file in tmp_path.rglob("t*_*.json"))


@pytest.mark.parametrize(
    ("change", "code", "field", "limit"),
    [
        (lambda graph: graph.create(" \n "), "E_SUBJECT_LENGTH", "subject", 200),
        (lambda graph: graph.create("x" * 201), "E_SUBJECT_LENGTH", "subject", 200),
        (lambda graph: graph.create(7), "E_SUBJECT_TYPE", "subject", None),
        (lambda graph: graph.create("\ud800"), "E_SUBJECT_SURROGATE", "subject", None),
        (lambda graph: graph.create("x", "x" * 4_001), "E_DESCRIPTION_LENGTH", "description", 4_000),
        (lambda graph: graph.update(9), "E_TASK_UNKNOWN", "task_id", None),
        (lambda graph: graph.update(True), "E_TASK_ID_TYPE", "task_id", None),
        (lambda graph: graph.get("1"), "E_TASK_ID_TYPE", "task_id", None),
        (lambda graph: graph.remove(9), "E_TASK_UNKNOWN", "task_id", None),
        (lambda graph: graph.update(1, status="done"), "E_STATUS", "status", None),
        (lambda graph: graph.update(1, owner="x" * 101), "E_OWNER_LENGTH", "owner", 100),
        (lambda graph: graph.update(1, owner="me", status="in_progress"), "E_TASK_TAKEN", "owner", None),
        (lambda graph: graph.update(1, add_blocks="2"), "E_ADD_BLOCKS_TYPE", "add_blocks", None),
        (lambda graph: graph.update(1, add_blocked_by=["2"]), "E_ADD_BLOCKED_BY_TYPE", "add_blocked_by", None),
        (lambda graph: graph.update(2, add_blocked_by=[3, 9]), "E_TASK_UNKNOWN", "add_blocked_by", None),
        (lambda graph: graph.update(2, remove_blocked_by=[9]), "E_TASK_UNKNOWN", "remove_blocked_by", None),
        (lambda graph: graph.update(2, add_blocked_by=[2]), "E_TASK_CYCLE", "blockedBy", None),
        (lambda graph: graph.update(2, add_blocked_by=[3]), "E_TASK_CYCLE", "blockedBy", None),
        (lambda graph: graph.update(3, status="in_progress"), "E_TASK_BLOCKED", "status", None),
        (lambda graph: graph.update(3, status="completed"), "E_TASK_BLOCKED", "status", None),
        (lambda graph: graph.update(2, add_blocks=[1]), "E_TASK_BLOCKED", "add_blocks", None),
    ],
)  # fmt: skip
def test_a_task_that_is_refused_says_why(
    graph: TaskGraph, change: Callable[[Any], object], code: str, field: str, limit: int | None
) -> None:
    """Code, field and limit; and no task has changed. Task 1 is begun by another agent, 3 waits for 2."""
    for subject in ("one", "two", "three"):
        graph.create(subject)
    graph.update(1, status="in_progress", owner="another")
    graph.update(3, add_blocked_by=[2])
    before = graph.list()
    with pytest.raises(Rejected) as refused:
        change(graph)
    assert (refused.value.code, refused.value.field, refused.value.limit) == (code, field, limit)
    assert graph.list() == before


def test_a_graph_has_a_limit(tmp_path: Path) -> None:
    """At 1,000 tasks the next one is refused."""
    tasks = {number: Task(number, "x") for number in range(1, MAX_TASKS + 1)}
    with pytest.raises(Rejected) as refused:
        rules.created(tasks, "x", "")
    assert (refused.value.code, refused.value.field, refused.value.limit) == ("E_TASKS", "tasks", MAX_TASKS)
    for user, agent, code in (
        (" ana", "", "E_USER_ID_SPACE"),
        ("", "", "E_USER_ID_LENGTH"),
        ("a", "\n", "E_AGENT_NAME_CTRL"),
    ):
        with pytest.raises(Rejected) as refused:
            TaskGraph(tmp_path, user, agent)
        assert refused.value.code == code


def test_blocked_by_decides_where_people_edit_the_files(graph: TaskGraph, tmp_path: Path) -> None:
    """A mirror that is missing is there when it is read, and a file removed by hand holds nobody up."""
    for subject in ("one", "two", "three"):
        graph.create(subject)
    graph.update(3, add_blocked_by=[1, 2])
    folder = tmp_path / "tasks" / "ana"
    (folder / "task_1.json").unlink()
    (folder / "task_2.json").write_text('{"id": 2, "subject": "two", "blocks": []}')
    assert graph.get(3).blocked_by == (2,)
    assert graph.get(2).blocks == (3,)


@pytest.mark.parametrize(
    "content", ["", "{", '{"id": 2, "subject": "x"}', '{"id": 1, "subject": "x", "more": 1}', "\xff"]
)
def test_a_file_that_is_no_task_is_left_as_it_is(graph: TaskGraph, tmp_path: Path, content: str) -> None:
    """It is named, by every call; none of them guesses, and none writes over it."""
    graph.create("one")
    file = tmp_path / "tasks" / "ana" / "task_1.json"
    file.write_text(content, encoding="latin-1")
    for call in (graph.list, lambda: graph.create("two"), lambda: graph.update(1, status="completed")):
        with pytest.raises(DocumentDamaged, match=r"E_TASK_FILE: the file task_1\.json"):
            call()
    assert file.read_text(encoding="latin-1") == content
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DocumentDamaged, match="E_TASK_FILE"):
        graph.list()


def test_what_cannot_be_read_is_not_taken_for_erased(tmp_path: Path) -> None:
    """A forgetting says so and can be repeated; a user without a folder has nothing to erase."""
    folder = TaskFolder(tmp_path, "ana", None)
    assert (folder.count(), folder.erase()) == (0, 0)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "ana").write_text("no folder")
    with pytest.raises(StoreUnavailable, match="E_STORE_ENOTDIR"):
        folder.erase()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """No forgetting would reach what is behind it."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "ana").symlink_to(tmp_path)
    with pytest.raises(StoreUnavailable, match="E_STORE_LINK"):
        TaskGraph(tmp_path, "ana").create("one")


def test_a_list_is_replaced_whole_and_rendered(todo: TodoList, tmp_path: Path) -> None:
    """Items keep their ids, or get their number; an empty list leaves no file."""
    assert todo.render() == "No todos."
    todo.write([{"text": "look"}])
    todo.write([
        {"id": "a", "text": "look", "status": "completed"},
        {"text": "做\n[x] #9: wait", "status": "in_progress"},
        {"id": 7, "text": "test"},
    ])  # fmt: skip
    assert TodoList(tmp_path, "ana").render() == (
        "[x] #a: look\n[>] #2: 做 [x] #9: wait\n[ ] #7: test\n(1 of 3 completed)"
    )
    assert TodoList(tmp_path, "ana", name="other").items() == []
    file = tmp_path / "tasks" / "ana" / "todo_default.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    todo.write([])
    todo.write([])
    assert not file.exists()


@pytest.mark.parametrize(
    ("items", "code", "field", "limit"),
    [
        ([{"id": n, "text": "a", "status": "in_progress"} for n in (1, 2)], "E_TODO_IN_PROGRESS", "items", 1),
        ([{"id": "1", "text": "a"}, {"id": 1, "text": "b"}], "E_ITEMS_ID_TWICE", "items", None),
        ([{"text": "a"}] * 101, "E_ITEMS_LENGTH", "items", 100),
        ("text", "E_ITEMS_TYPE", "items", None),
        ({"text": "a"}, "E_ITEMS_TYPE", "items", None),
        (["a"], "E_ITEMS_TYPE", "items[0]", None),
        ([{"text": "a"}, {}], "E_ITEMS_TEXT_TYPE", "items[1].text", None),
        ([{"text": " "}], "E_ITEMS_TEXT_LENGTH", "items[0].text", 500),
        ([{"text": "x" * 501}], "E_ITEMS_TEXT_LENGTH", "items[0].text", 500),
        ([{"text": "\udfff"}], "E_ITEMS_TEXT_SURROGATE", "items[0].text", None),
        ([{"text": "a", "status": "done"}], "E_ITEMS_STATUS", "items[0].status", None),
        ([{"text": "a", "status": []}], "E_ITEMS_STATUS", "items[0].status", None),
        ([{"text": "a", "id": ""}], "E_ITEMS_ID_LENGTH", "items[0].id", 50),
        ([{"text": "a", "id": True}], "E_ITEMS_ID_TYPE", "items[0].id", None),
        ([{"text": "a", "due": "now"}], "E_ITEMS_FIELD", "items[0]", None),
    ],
)  # fmt: skip
def test_a_list_that_is_refused_says_why(todo: TodoList, items: Any, code: str, field: str, limit: int | None) -> None:
    """Code, field and limit; and the list is what it was."""
    before = todo.write([{"text": "before"}])
    with pytest.raises(Rejected) as refused:
        todo.write(items)
    assert (refused.value.code, refused.value.field, refused.value.limit) == (code, field, limit)
    assert todo.items() == before


def test_one_task_in_progress_is_said_in_the_known_words(todo: TodoList) -> None:
    """Agents that were trained on this error know it."""
    with pytest.raises(Rejected, match="Only one task can be in_progress"):
        todo.write([{"id": str(n), "text": "a", "status": "in_progress"} for n in range(2)])


def test_lists_side_by_side_have_a_limit(tmp_path: Path) -> None:
    """100 of one agent; one that is emptied makes room."""
    folder = tmp_path / "tasks" / "ana"
    folder.mkdir(parents=True)
    for number in range(100):
        (folder / f"todo_{number}.json").write_text("{}")
    with pytest.raises(Rejected) as refused:
        TodoList(tmp_path, "ana", name="more").write([{"text": "a"}])
    assert (refused.value.code, refused.value.field, refused.value.limit) == ("E_TODO_LISTS", "name", 100)
    with pytest.raises(DocumentDamaged, match="E_TODO_FILE"):
        TodoList(tmp_path, "ana", name="7").items()
    TodoList(tmp_path, "ana", name="7").write([])
    TodoList(tmp_path, "ana", name="more").write([{"text": "a"}])


@pytest.mark.parametrize(
    ("result", "reminder"),
    [
        ({"type": "tool_result", "tool_use_id": "1", "content": "ok"}, {"type": "text", "text": REMINDER}),
        ({"role": "tool", "tool_call_id": "1", "content": "ok"}, {"role": "user", "content": REMINDER}),
    ],
)
def test_three_rounds_without_the_list_bring_the_reminder(
    todo: TodoList, result: dict[str, Any], reminder: dict[str, Any]
) -> None:
    """After the tool results, which must come first; again in each further round, and not after the list was used."""
    assert REMINDER == "<reminder>Update your todos.</reminder>"
    results, seen = [result], []
    for used in (False, False, False, False, True, False):
        todo.round(used)
        seen.append(todo.remind(results))
    assert seen == [results, results, [*results, reminder], [*results, reminder], results, results]
    assert len(results) == 1


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python of docs/tasks.md prints what stands beside it."""
    monkeypatch.setenv("MEMD_DATA_DIR", str(tmp_path))
    for code in code_blocks("docs/tasks.md", "python"):
        exec(compile(code, "docs/tasks.md", "exec"), {})  # noqa: S102  (our own page, in a folder of its own)
    printed = capsys.readouterr().out
    assert "[>] #2: book the hall" in printed
    assert "[1] [2]" in printed


def test_a_task_is_plain_json() -> None:
    """The names of the fields are those of its file."""
    assert list(to_builtins(Task(1, "x"))) == ["id", "subject", "description", "status", "blockedBy", "blocks", "owner"]
