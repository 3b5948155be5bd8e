"""The state of a session as JSON: the form in which AgentScope saves one, with fields of our own beside it.

`{"sessionId": …, "components": {"memory": {"messages": […]}, …}, "timestamp": …}`; each message has a role in capitals
and a list of blocks. A state that another system wrote is read by the first component that has messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from memd.context import Key, digest
from memd.errors import DocumentDamaged
from memd.memory.store.sessions import State
from memd.push.times import iso
from memd.session.chat import ChatTurn
from memd.session.reading_chats import turns_of

MEMORY = "memory"
"""The component that holds the turns."""


class Held(NamedTuple):
    """What a session holds, besides the components of the app.

    `turns`: the window. `waiting`: the turns that are not pushed yet. `owed`: those whose summary the
    model owes: an outline stands in their place.
    """

    turns: tuple[ChatTurn, ...] = ()
    waiting: tuple[ChatTurn, ...] = ()
    owed: tuple[ChatTurn, ...] = ()
    business_state: str = ""


def state_of(key: Key, content: Held, components: Mapping[str, Any]) -> State:
    """The state to save. `components`: the states of the app's components, by name."""
    return {
        "sessionId": key.thread_id,
        "userId": key.user_id,
        "agentName": key.agent_name,
        "timestamp": iso(datetime.now(UTC)),
        "components": {**components, MEMORY: {"messages": _written(content.turns)}},
        "waiting": _written(content.waiting),
        "owed": _written(content.owed),
        "businessState": content.business_state,
    }


def content_of(state: State) -> Held:
    """What a state holds; of one that another system wrote everything waits to be pushed.

    Raises DocumentDamaged, and Rejected for messages of another system that are none.
    """
    if "version" not in state:
        turns = tuple(_identified(turns_of(_lowered(_foreign(state)))))
        return Held(turns, tuple(filter(is_told, turns)))
    memory = state["components"].get(MEMORY)
    messages = memory.get("messages") if isinstance(memory, dict) else None
    words = state.get("businessState")
    words = words if isinstance(words, str) else ""
    return Held(_read(messages), _read(state.get("waiting")), _read(state.get("owed")), words)


def is_told(turn: ChatTurn) -> bool:
    """Whether the long-term memory is told of a turn: words of the user or the assistant."""
    return turn.role in ("user", "assistant") and turn.kind == "said" and bool(turn.text.strip())


def components_of(state: State) -> dict[str, Any]:
    """The states of the app's components, by name."""
    return {name: value for name, value in state["components"].items() if name != MEMORY}


def line_of(turn: ChatTurn) -> bytes:
    """A turn as one line of JSON."""
    return msgspec.json.encode(_message(turn))


def turn_of(line: bytes) -> ChatTurn | None:
    """The turn of a line; None for the line of a text that was offloaded, and for one that cannot be read."""
    try:
        return _read([msgspec.json.decode(line)])[0]
    except (msgspec.DecodeError, DocumentDamaged):
        return None


def _written(turns: Sequence[ChatTurn]) -> list[Any]:
    return [_message(turn) for turn in turns]


def _message(turn: ChatTurn) -> dict[str, Any]:
    message: dict[str, Any] = msgspec.to_builtins(turn)
    message["role"] = turn.role.upper()
    return {
        name: value for name, value in message.items() if value not in (None, "") and (name, value) != ("kind", "said")
    }


def _read(messages: object) -> tuple[ChatTurn, ...]:
    if not isinstance(messages, list):
        raise _damaged()
    try:
        return tuple(msgspec.convert(message, ChatTurn) for message in _lowered(messages))
    except msgspec.ValidationError:
        raise _damaged() from None


def _lowered(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """The messages with their roles in small letters. Raises DocumentDamaged for what is no message."""
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise _damaged()
    return [{**message, "role": message["role"].lower()} for message in messages]


def _foreign(state: State) -> list[Any]:
    for component in state["components"].values():
        messages = component.get("messages") if isinstance(component, dict) else None
        if isinstance(messages, list):
            return messages
    return []


def _identified(turns: Sequence[ChatTurn]) -> Iterator[ChatTurn]:
    """The turns, each with an id that is the same however often the state is read."""
    for place, turn in enumerate(turns):
        yield replace(turn, id=turn.id or digest("session", str(place), turn.role, turn.text))


def _damaged() -> DocumentDamaged:
    return DocumentDamaged("E_SESSION_FILE: the messages of a session cannot be read", "components.memory.messages")
