"""A session: one conversation in a window of bounded size. What a compaction cuts is handed to the long-term memory.

Every save writes first and pushes then. The state names the turns that are not pushed yet, so whatever is killed, the
next load pushes them; a turn that is pushed twice counts once, by its id.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import orjson
from msgspec.structs import replace

from memd.config import Settings
from memd.context import Key
from memd.errors import (
    InboxFull,
    InboxUnavailable,
    NotReady,
    Rejected,
    SessionChanged,
    SessionForgotten,
)
from memd.events import Event, logger
from memd.memory.store.sessions import Sessions, State
from memd.session import states
from memd.session.chat import ChatTurn, Text
from memd.session.chatting import Chatting
from memd.session.checkpoints import Checkpointing
from memd.session.compacting import Compactor
from memd.session.pairs import without_stand_ins
from memd.session.pushes import batches
from memd.session.states import Held

AGAIN_S = 10.0
"""Seconds without a further attempt to push, once the inbox was out of reach: a chat must not wait for it each time."""

MAX_BUSINESS_CHARS = 200


class Pushing(Protocol):
    """What a session needs of a client."""

    settings: Settings

    @property
    def push(self) -> Callable[..., Any]:
        """Push messages."""
        ...


class Component(Protocol):
    """A part of an app that is saved with the session, such as its tools or its plan."""

    def save_state(self) -> dict[str, Any]:
        """Its state, of JSON values."""
        ...

    def load_state(self, state: dict[str, Any]) -> None:
        """Take a saved state in the place of the present one."""
        ...


class Session(Chatting, Checkpointing):
    """One conversation. Not for several threads at once; of two processes the second save is refused.

    Methods that add a message raise Rejected; those that read or write raise StoreUnavailable.
    """

    def __init__(
        self, client: Pushing, sessions: Sessions, key: Key, compactor: Compactor, user_name: str | None = None
    ) -> None:
        """Begins empty; `load_if_exists` reads what is stored."""
        self.key = key
        self._client = client
        self._sessions = sessions
        self._compactor = compactor
        self._user_name = user_name
        self._settings = client.settings.session
        self._components: dict[str, Component] = {}
        self._unclaimed: dict[str, Any] = {}
        self._loaded = sessions.load(key)
        self._no_push_until = 0.0
        self._empty()

    # --- parts of the app ---

    def add_component(self, component: Component, name: str = "") -> None:
        """Save and load this with the session. `name`: by default that of its class."""
        name = name or type(component).__name__
        if name == states.MEMORY:
            raise Rejected("E_COMPONENT", f"{states.MEMORY} is the session's own component", "name")
        self._components[name] = component
        if name in self._unclaimed:
            component.load_state(self._unclaimed.pop(name))

    # --- saving ---

    def load_if_exists(self) -> bool:
        """Read what is stored in the place of what is here, and push what waits; whether there was a session.

        Raises DocumentDamaged, DocumentTooNew.
        """
        self._loaded = self._sessions.load(self.key)
        self._empty()
        if self._loaded.state is None:
            return False
        content = states.content_of(self._loaded.state)
        self._set(content)
        self._unclaimed = states.components_of(self._loaded.state)
        for name in self._components.keys() & self._unclaimed.keys():
            self._components[name].load_state(self._unclaimed.pop(name))
        self._push(now=False)
        return True

    def save(self) -> None:
        """Save the session, compacted if it is too large, and push what is new.

        While the inbox is out of reach the turns wait, and the next save or load pushes them. Raises SessionChanged
        with the turns since the last save in `unsaved`, and SessionForgotten; the session is empty then.
        """
        self._settle(by_hand=False)

    def compact(self) -> None:
        """Save, with a summary in the place of everything but the newest turn. Raises as `save`."""
        self._settle(by_hand=True)

    def reload(self, id: str) -> str:
        """The text that a reference `[offloaded <id>: …]` stands for. Raises Rejected for an unknown id."""
        for line in self._sessions.lines(self.key, self._loaded):
            if id.encode() in line and (found := orjson.loads(line)).get("offloaded") == id:
                text: str = found["text"]
                return text
        raise Rejected("E_OFFLOADED", "nothing with this id was offloaded, or it left with the oldest lines", "id")

    def state(self) -> State:
        """The state that a save would write."""
        components = {name: component.save_state() for name, component in self._components.items()}
        return states.state_of(self.key, self._content(), {**self._unclaimed, **components})

    # --- the steps ---

    def _settle(self, *, by_hand: bool) -> None:
        """Cut, write, push, and write without what was pushed."""
        made = self._compactor.compact(self._turns, self._owed, by_hand=by_hand)
        self._turns, self._owed = list(without_stand_ins(made.turns)), made.owed
        self._offloaded += [orjson.dumps({"offloaded": text.id, "text": text.text}) for text in made.offload]
        self._write()
        if self._push(now=bool(made.cut)) and made.cut:
            self._write()

    def _write(self) -> None:
        new = [states.line_of(rest) for turn in self._unwritten if (rest := _beside_words(turn)) is not None]
        try:
            self._loaded = self._sessions.save(self.key, self._loaded, self.state(), (*new, *self._offloaded))
        except SessionForgotten:
            self._empty()
            self._loaded = self._sessions.load(self.key)
            raise
        except SessionChanged as error:
            error.unsaved = tuple(self._unsaved.values())
            raise
        self._unwritten.clear()
        self._offloaded.clear()
        self._unsaved.clear()

    def _push(self, *, now: bool) -> bool:
        """Push what waits; whether nothing waits any more. While the inbox is away it goes on waiting."""
        if time.monotonic() < self._no_push_until:
            return False
        for batch in batches(list(self._waiting.values()), self._client.settings.client):
            try:
                self._client.push(
                    [_pushed(turn) for turn in batch],
                    thread_id=self.key.thread_id,
                    user_id=self.key.user_id,
                    user_name=self._user_name,
                    agent_name=self.key.agent_name,
                    now=now,
                )
            except (InboxUnavailable, InboxFull, NotReady) as error:
                logger().warning(Event.PUSH_DELAYED, code=type(error).__name__)
                self._no_push_until = time.monotonic() + AGAIN_S
                return False
            for turn in batch:
                del self._waiting[turn.id]
        return True

    def _content(self) -> Held:
        return Held(tuple(self._turns), tuple(self._waiting.values()), self._owed, self._business_state)

    def _set(self, content: Held) -> None:
        self._turns = list(content.turns)
        self._waiting = {turn.id: turn for turn in content.waiting}
        self._owed = content.owed
        self._business_state = content.business_state

    def _empty(self) -> None:
        self._set(Held())
        self._unwritten = []
        self._offloaded: list[bytes] = []
        self._unsaved = {}


def _pushed(turn: ChatTurn) -> dict[str, Any]:
    """A turn as a message of a push."""
    message = {"role": turn.role, "content": turn.text, "id": turn.id, "created_at": turn.created_at, "name": turn.name}
    return {name: value for name, value in message.items() if value is not None}


def _beside_words(turn: ChatTurn) -> ChatTurn | None:
    """What of a turn the said layer does not take: its tools and files, or all of a system turn. None: nothing."""
    words = () if turn.role in ("system", "tool") else (Text,)
    rest = tuple(block for block in turn.blocks if not isinstance(block, words))
    return replace(turn, blocks=rest) if rest else None
