"""Export and import of memories."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from memd.cli.bars import bar
from memd.cli.common import (
    DryRun,
    Json,
    SomeUser,
    check_one_or_all,
    completes,
    echo,
    echo_json,
    nothing,
    read_file,
    settings,
    warn,
)
from memd.cli.every_user import export_all, import_all
from memd.cli.output import Output, write_private
from memd.client import Memd
from memd.disk.files import MAX_BYTES
from memd.memory.hand.formats import FORMATS, parse_json, read_path
from memd.memory.hand.transfer import Imported, ImportedMemory
from memd.printable import counted, noun, printable
from memd.tasks.task_transfer import ImportedTasks

OneAgent = Annotated[str | None, typer.Option("--agent", help="Only this agent's memory of the user.")]

IntoUser = Annotated[
    str | None, typer.Option("--user", help="The user whose memory it becomes.", autocompletion=completes("user"))
]


def export(
    user: SomeUser = None,
    every: Annotated[bool, typer.Option("--all", help="All users: JSON Lines, one user a line.")] = False,
    agent: OneAgent = None,
    output: Output = None,
) -> None:
    """Export a user's memories as JSON, or those of all users as JSON Lines.

    It has the memories of all agents, with archive and ledger, their todo lists, tasks and sessions; `memd import`
    reads it. With --all a damaged memory is named and left out, and the exit code is 65.

    Example: memd export ana -o ana.json
    """
    check_one_or_all(user, every=every)
    if user is None:
        if agent is not None:
            raise typer.BadParameter("--all exports the memories of all agents", param_hint="--agent")
        export_all(output)
        return
    with Memd(settings()) as memd, bar("exporting"):
        found = memd.export(user, agent_name=agent)
    if not found["memories"] and not found["tasks"]:
        nothing("no memories of this user")
    if output is None:
        echo_json(found)
        return
    write_private(output, found)
    tasks = " with todo lists and tasks" if found["tasks"] else ""
    warn(f"{counted(len(found['memories']), 'memory', 'memories')}{tasks} written")


def import_(  # noqa: PLR0913, PLR0917  (each parameter is an option)
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file, folder or zip archive; - for JSON on standard input.")
    ],
    user: IntoUser = None,
    every: Annotated[
        bool, typer.Option("--all", help="A file of `memd export --all`: each line into its user.")
    ] = False,
    agent: Annotated[str | None, typer.Option("--agent", help="Import into the memory of this agent.")] = None,
    form: Annotated[str, typer.Option("--format", help=f"auto, or {', '.join(FORMATS)}.")] = "auto",
    best: Annotated[bool, typer.Option("--best", help="Of more facts than fit, import the best.")] = False,
    conversations: Annotated[
        bool, typer.Option("--conversations/--no-conversations", help="Push the conversations of a chat export, too.")
    ] = True,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Import an export of memd or of another system into a user's memory.

    It reads the output of `memd export`, DeerFlow's memory.json or folder, mem0's get_all(), items of a LangGraph
    store, memories of Redis' agent-memory-server, memobase's profile and events, and the data exports of ChatGPT and
    Claude, whose conversations are pushed.

    Existing facts stay. A fact with the same words as an existing one is known; every other fact is added, or counted
    as refused. A second import of the same file changes nothing. More facts than apply.max_facts leaves room for are
    refused together, with exit code 65 and nothing imported, unless --best is given.

    Example: memd import memory.json --user ana --dry-run
    """
    if (user is None) != every:
        raise typer.BadParameter("name the user, or pass --all", param_hint="--user")
    if user is None:
        if agent is not None or form not in ("auto", "memd"):
            raise typer.BadParameter("--all goes with neither --agent nor --format", param_hint="--all")
        import_all(str(file), best=best, dry_run=dry_run, as_json=as_json)
        return
    value = _read(file)
    with Memd(settings()) as memd, bar("importing"):
        found = memd.import_memory(
            user, value, agent_name=agent, format=form, best=best, conversations=conversations, dry_run=dry_run
        )
    if as_json:
        echo_json({"dry_run": dry_run, **asdict(found)})
        return
    echo(f"read as {found.format}" + (", nothing is written:" if dry_run else ":"))
    for memory in found.memories:
        _print(memory, dry_run)
    for tasks in found.tasks:
        _print_tasks(tasks)
    _print_chats(found, dry_run)
    if found.sessions:
        echo(f"  {found.sessions:>6}  {noun(found.sessions, 'session')}")
    if not found.memories and not found.tasks:
        echo("  no memories in it")
    for note in found.notes:
        warn(f"note: {note}")


def _read(file: Path) -> Any:
    if str(file) == "-":
        return parse_json(read_file("-", MAX_BYTES + 1))
    try:
        return read_path(file)
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read ({error.strerror})") from None


def _print_chats(found: Imported, dry_run: bool) -> None:
    if found.threads:
        pushed = "would be pushed" if dry_run else "pushed"
        messages, tokens = counted(found.messages, "message"), f"{found.tokens:,}"
        echo(f"  {found.threads:>6}  {noun(found.threads, 'conversation')} {pushed}: {messages}, about {tokens} tokens")


def _print(memory: ImportedMemory, dry_run: bool) -> None:
    if memory.agent_name:
        echo(f"agent {printable(memory.agent_name)}")
    added = len(memory.added)
    echo(f"  {added:>6}  {noun(added, 'fact')} {'would be added' if dry_run else 'added'}")
    for content in memory.contents:
        echo(f"          + {printable(content)}")
    for count, name in (
        (memory.known, f"{noun(memory.known, 'fact')} known already"),
        (memory.summaries, noun(memory.summaries, "summary", "summaries")),
        (memory.archived, f"archived {noun(memory.archived, 'fact')}"),
        (memory.turns, f"{noun(memory.turns, 'message')} of what was said"),
    ):
        echo(f"  {count:>6}  {name}")
    for reason, count in sorted(memory.refused.items()):
        echo(f"  {count:>6}  refused: {reason}")


def _print_tasks(tasks: ImportedTasks) -> None:
    of_agent = f" of agent {printable(tasks.agent_name)}" if tasks.agent_name else ""
    echo(f"todo lists and tasks{of_agent}")
    for count, name in (
        (tasks.lists, noun(tasks.lists, "todo list")),
        (tasks.tasks, noun(tasks.tasks, "task")),
        (tasks.known, "known already"),
        (tasks.full, "without room"),
    ):
        echo(f"  {count:>6}  {name}")
