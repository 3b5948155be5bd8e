"""Todo lists and tasks in exports: they come back, nothing that is there changes, a second import adds nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import make_settings

from memd.client import Memd
from memd.errors import Rejected
from memd.tasks import TaskGraph, TodoList
from memd.tasks.graph import MAX_TASKS, STATUSES, Task, check_cycles, mirrored
from memd.tasks.joining import joined
from memd.tasks.task_transfer import ImportedTasks

LONG = "林" * 80

tasks = st.lists(
    st.builds(
        Task,
        st.integers(1, 9),
        st.sampled_from(["a", "b", "c"]),
        status=st.sampled_from(STATUSES),
        blocked_by=st.lists(st.integers(1, 9), max_size=2).map(tuple),
    ),
    max_size=6,
    unique_by=lambda task: task.id,
).map(lambda found: mirrored({task.id: task for task in found}))


@pytest.fixture
def app(data_dir: Path) -> Memd:
    """A client whose server nobody asks."""
    return Memd(make_settings(data_dir, "unix:///nowhere/s"))


def export(app: Memd, **options: Any) -> dict[str, Any]:
    """An export of ana, as it comes out of a file."""
    value: dict[str, Any] = json.loads(json.dumps(app.export("ana", **options)))
    return value


def planned(app: Memd, user: str = "ana", agent: str = "") -> TaskGraph:
    """The graph of an agent: task 2 waits for 1."""
    graph = TaskGraph(app.settings.data_dir, user, agent)
    graph.create("Book the hall", "for 40")
    graph.create("Invite")
    graph.update(2, add_blocked_by=[1])
    return graph


def test_lists_and_tasks_of_all_agents_come_back(app: Memd) -> None:
    """Also for a user without memories, and for an agent whose long name is no name of a folder; once."""
    for agent in ("", "coder", LONG):
        planned(app, agent=agent)
    TodoList(app.settings.data_dir, "ana", LONG, name="../thread").write([{"text": "看"}, {"id": "b", "text": "buy"}])
    value = export(app)
    assert value["memories"] == []
    assert [one["agentName"] for one in value["tasks"]] == ["", "coder", LONG]

    added = app.import_memory("bea", value).tasks
    assert added == (
        ImportedTasks("", 0, 2, 0, 0), ImportedTasks("coder", 0, 2, 0, 0), ImportedTasks(LONG, 1, 2, 0, 0)
    )  # fmt: skip
    bea = json.loads(json.dumps(app.export("bea")))
    assert bea["tasks"] == value["tasks"]
    assert [one.known for one in app.import_memory("bea", value).tasks] == [2, 2, 3]
    assert app.export("bea")["tasks"] == app.export("ana")["tasks"]


def test_one_agents_lists_and_tasks_go_with_its_memory(app: Memd) -> None:
    """Exported and imported alone, or into another agent; never those of an agent that was not asked for."""
    planned(app)
    planned(app, agent="coder")
    app.add_fact("ana", "Likes tea", agent_name="coder")
    assert [one["agentName"] for one in export(app, agent_name="coder")["tasks"]] == ["coder"]
    value = export(app)
    assert [one.agent_name for one in app.import_memory("bea", value, agent_name="coder").tasks] == ["coder"]
    [memory] = (found := app.import_memory("bea", value, agent_name="other")).memories
    assert (memory.agent_name, [one.agent_name for one in found.tasks]) == ("other", ["other"])
    with pytest.raises(Rejected, match="E_IMPORT_AGENT"):
        app.import_memory("bea", {**value, "memories": []}, agent_name="nobody")


def test_what_is_there_stays(app: Memd) -> None:
    """A task that went on keeps its state, a list its items; the others get free ids and wait for the right ones."""
    planned(app)
    todo = TodoList(app.settings.data_dir, "ana")
    todo.write([{"text": "old"}])
    value = export(app)
    graph = TaskGraph(app.settings.data_dir, "bea")
    graph.create("Something else")
    graph.create("Book the hall", "for 40")
    graph.update(2, status="in_progress", owner="me")
    here = TodoList(app.settings.data_dir, "bea")
    here.write([{"text": "new"}])
    would = app.import_memory("bea", value, dry_run=True).tasks
    assert len(graph.list()) == 2
    assert app.import_memory("bea", value).tasks == would == (ImportedTasks("", 0, 1, 2, 0),)
    assert [(task.id, task.subject, task.status, task.blocked_by) for task in graph.list()] == [
        (1, "Something else", "pending", ()), (2, "Book the hall", "in_progress", ()), (3, "Invite", "pending", (2,)),
    ]  # fmt: skip
    assert [item.text for item in here.items()] == ["new"]


@settings(max_examples=100)
@given(tasks, tasks)
def test_whatever_is_joined_the_graph_holds(there: dict[int, Task], others: dict[int, Task]) -> None:
    """What was there is unchanged but for its mirror, nobody waits in a circle, and the second time adds nothing."""
    for graph in (there, others):
        try:
            check_cycles({task.id: frozenset(task.blocked_by) for task in graph.values()})
        except Rejected:  # no graph is like this
            return
    after, full = joined(there, others.values())
    assert full == 0
    assert {one: (task.subject, task.status, task.blocked_by) for one, task in after.items() if one in there} == {
        one: (task.subject, task.status, task.blocked_by) for one, task in there.items()
    }
    edges = {(task.id, blocker) for task in after.values() for blocker in task.blocked_by}
    assert edges == {(waiting, task.id) for task in after.values() for waiting in task.blocks}
    assert joined(after, others.values()) == (after, 0)


def test_without_room_they_are_counted(app: Memd) -> None:
    """A graph has 1,000 tasks and an agent 100 lists; what has room is taken."""
    full = {number: Task(number, str(number)) for number in range(1, MAX_TASKS)}
    assert joined(full, [Task(1, "x"), Task(2, "y")])[1] == 1
    lists = [{"name": f"n{number}", "items": [{"id": "1", "text": "x"}]} for number in range(101)]
    value = {"format": "memd", "version": 1, "memories": [], "tasks": [{"agentName": "", "todo": lists}]}
    assert app.import_memory("ana", value).tasks == (ImportedTasks("", 100, 0, 0, 1),)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("x", "tasks"),
        ([7], "tasks"),
        ([{"agentName": "a"}, {"agentName": "a"}], "tasks"),
        ([{}, {"agentName": "\n"}], "tasks[1]"),
        ([{"graph": [{"id": 1}]}], "tasks"),
        ([{"graph": [{"id": 0, "subject": "x"}]}], "tasks[0]"),
        ([{"graph": [{"id": 1, "subject": "secret" * 40}]}], "tasks[0]"),
        ([{"graph": [{"id": 1, "subject": "x"}, {"id": 1, "subject": "y"}]}], "tasks[0]"),
        (
            [{"graph": [{"id": 1, "subject": "x", "blockedBy": [2]}, {"id": 2, "subject": "y", "blockedBy": [1]}]}],
            "tasks[0]",
        ),
        ([{"todo": [{"name": "", "items": [{"id": "1", "text": "x"}]}]}], "tasks[0]"),
        ([{"todo": [{"name": "x", "items": [{"id": "1", "text": ""}]}]}], "tasks[0]"),
        ([{"todo": [{"name": "x", "items": [{"id": "1", "text": "y"}]}] * 2}], "tasks[0]"),
    ],
)
def test_what_is_no_list_or_graph_is_refused_with_its_place(app: Memd, value: object, place: str) -> None:
    """Before anything is written, memories included; the sentence has nothing of the text."""
    memory = {"facts": [{"content": "Likes tea", "confidence": 0.9}]}
    with pytest.raises(Rejected) as refused:
        app.import_memory("ana", {"format": "memd", "version": 1, "memories": [memory], "tasks": value})
    assert (refused.value.code, refused.value.field) == ("E_IMPORT_TASKS", place)
    assert "secret" not in str(refused.value)
    assert not {"users", "tasks"} & {path.name for path in app.settings.data_dir.iterdir()}
