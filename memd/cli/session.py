"""Sessions: list, show, compact, export, remove."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NoReturn

import typer

from memd.cli.common import Agent, Json, User, Yes, confirm, echo, echo_json, nothing, settings, warn
from memd.cli.output import Output, write_private
from memd.cli.tables import table
from memd.client import Memd
from memd.config import Settings
from memd.memory.hand.session_transfer import exported_session
from memd.memory.store.sessions import SessionEntry, State
from memd.printable import counted, printable
from memd.session.chat import ChatTurn, Other, Text, ToolResult, ToolUse, json_text
from memd.session.opening import key_of, stored
from memd.session.pairs import paired
from memd.session.plans import window_of
from memd.session.states import Held, content_of

Thread = Annotated[str, typer.Argument(help="The thread's id, as `memd session list` prints it.")]

NO_SESSION = 1
"""Exit code when there is no such session."""

session = typer.Typer(
    help="List, show, compact, export or remove sessions.\n\nConversations in a window of bounded size.",
    no_args_is_help=True,
)


@session.command("list")
def list_(user: User, agent: Agent = "", as_json: Json = False) -> None:
    """List the sessions of a user, the one saved last first.

    Example: memd session list ana
    """
    with Memd(settings()) as memd:
        found = memd.sessions(user, agent_name=agent)
    if as_json:
        echo_json([entry._asdict() for entry in found])
    elif found:
        table(("thread", "saved", "saves", "bytes"), _rows(found), ("saves", "bytes"))
    else:
        nothing("no sessions of this user")


@session.command()
def show(user: User, thread: Thread, agent: Agent = "", as_json: Json = False) -> None:
    """Show the window of a session: its turns, and how many wait to be pushed. With --json: its state.

    Example: memd session show ana thread-1
    """
    chosen = settings()
    state = _state(chosen, user, thread, agent)
    if as_json:
        echo_json(state)
        return
    held = content_of(state)
    for turn in held.turns:
        for line in "\n".join(_lines(turn)).split("\n"):
            echo(printable(line))
    echo(f"{_size(held, chosen)}, saved {state['timestamp']}")
    echo(f"{counted(len(held.waiting), 'turn')} not pushed yet")
    if held.business_state:
        echo(f"state: {printable(held.business_state)}")


@session.command()
def compact(user: User, thread: Thread, agent: Agent = "") -> None:
    """Put a summary in the place of everything but the newest turn. What leaves the window is pushed.

    An app that has the session open is told at its next save that it has to load it again.

    Example: memd session compact ana thread-1
    """
    chosen = settings()
    before = content_of(_state(chosen, user, thread, agent))
    with Memd(chosen) as memd:
        memd.session(thread, user_id=user, agent_name=agent).compact()
    after = content_of(_state(chosen, user, thread, agent))
    echo(f"{_size(before, chosen)} -> {_size(after, chosen)}")
    if after.owed:
        warn("the model is away: an outline stands in the place of its summary, which follows at the next save")
    if after.waiting:
        warn("the inbox is out of reach: what left the window is kept, and pushed when the session is loaded again")


@session.command()
def export(user: User, thread: Thread, agent: Agent = "", output: Output = None) -> None:
    """Export a session as JSON: its state, its lines (tools, system turns, offloaded texts) and its checkpoints.

    The state has the form of AgentScope's sessions: sessionId, components, timestamp.

    Example: memd session export ana thread-1 -o thread-1.json
    """
    chosen = settings()
    _state(chosen, user, thread, agent)
    found = exported_session(stored(chosen), key_of(thread, user, agent))
    value = {**found["state"], "lines": found["lines"], "checkpoints": found["checkpoints"]}
    if output is None:
        echo_json(value)
    else:
        write_private(output, value)


@session.command()
def rm(user: User, thread: Thread, agent: Agent = "", yes: Yes = False) -> None:
    """Remove a session with its lines and checkpoints. The memory stays as it is; `memd forget` removes both.

    Example: memd session rm ana thread-1 --yes
    """
    held = content_of(_state(settings(), user, thread, agent))
    lost = f"; {counted(len(held.waiting), 'turn')} not pushed yet would be lost" if held.waiting else ""
    if not yes:
        confirm(f"remove the session {printable(thread)}{lost}?")
    with Memd(settings()) as memd:
        memd.remove_session(thread, user_id=user, agent_name=agent)
    echo("removed")


def _rows(found: list[SessionEntry]) -> Iterator[tuple[object, ...]]:
    return ((entry.thread_id, entry.saved_at, entry.revision, entry.bytes) for entry in found)


def _state(chosen: Settings, user: str, thread: str, agent: str) -> State:
    """The stored state, as it is: nothing is pushed. Ends the command where there is none."""
    loaded = stored(chosen).load(key_of(thread, user, agent))
    return loaded.state if loaded.state is not None else _none()


def _none() -> NoReturn:
    nothing("no such session")
    raise typer.Exit(NO_SESSION)


def _size(held: Held, chosen: Settings) -> str:
    tokens = window_of(paired(held.turns), chosen.session).tokens
    return f"{counted(len(held.turns), 'turn')}, {counted(tokens, 'token')}"


def _lines(turn: ChatTurn) -> Iterator[str]:
    who = "summary" if turn.kind == "summary" else turn.name or turn.role
    for block in turn.blocks:
        match block:
            case Text(text):
                yield f"{who}: {text}"
            case ToolUse(name=name, input=given):
                yield f"{who} -> {name}({json_text(given)})"
            case ToolResult():
                yield f"{who}: {block.text}"
            case Other(raw):
                yield f"{who}: [{raw.get('type', 'block')}]"
