"""The chat in a session: its turns, what the next model call gets of them, and the state of the task."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from memd.config import SessionSettings
from memd.errors import Rejected
from memd.push.times import iso
from memd.session import reading_chats, window
from memd.session.chat import ChatTurn
from memd.session.parts import Part
from memd.session.states import is_told
from memd.session.writing_chats import Shape, written

MAX_BUSINESS_CHARS = 200


class Chatting:
    """The half of a session that is in memory. Methods that add a message raise Rejected."""

    _settings: SessionSettings
    _turns: list[ChatTurn]

    _waiting: dict[str, ChatTurn]
    """The turns that are not pushed yet, by id."""

    _unsaved: dict[str, ChatTurn]
    """What was added since the last save, by id."""

    _unwritten: list[ChatTurn]
    """The same, with each call of a tool apart from the words that it belongs to."""

    _owed: tuple[ChatTurn, ...]
    """The turns behind an outline in the window, which a summary is to replace."""

    _business_state: str

    def user(
        self, content: object, *, id: str | None = None, created_at: str | None = None, name: str | None = None
    ) -> None:
        """A message of the user: text or blocks. The rest is as in a push; by default a new id, now, and no name."""
        self.add({"role": "user", "content": content, "id": id, "created_at": created_at, "name": name})

    def assistant(self, content: object, *, id: str | None = None, created_at: str | None = None) -> None:
        """A message of the assistant."""
        self.add({"role": "assistant", "content": content, "id": id, "created_at": created_at})

    def system(self, content: object) -> None:
        """Instructions of the app. They are never pushed; at the beginning of the session they are never cut."""
        self.add({"role": "system", "content": content})

    def tool_use(self, id: str, name: str, input: object) -> None:
        """A call of a tool by the assistant; it joins the assistant's message before it."""
        use = reading_chats.use_of(id, name, input)
        last = self._turns[-1] if self._turns else None
        if last is None or last.role != "assistant" or last.kind != "said":
            self._take(ChatTurn("assistant", (use,)))
            return
        self._turns[-1] = joined = replace(last, blocks=(*last.blocks, use))
        if last.id in self._waiting:
            self._waiting[last.id] = joined
        if last.id in self._unsaved:
            self._unsaved[last.id] = joined
        else:
            self._unsaved[f"{last.id} {id}"] = ChatTurn("assistant", (use,))
        self._unwritten.append(replace(last, blocks=(use,)))

    def tool_result(self, tool_use_id: str, output: object, *, is_error: bool = False) -> None:
        """The result of the call with this id: text, blocks, or any other value of JSON."""
        self._take(ChatTurn("tool", (reading_chats.result_of(tool_use_id, output, is_error=is_error),)))

    def add(self, message: object) -> None:
        """A message in the shape of Anthropic, OpenAI or LangChain, or a turn of `messages`."""
        turns = (message,) if isinstance(message, ChatTurn) else reading_chats.read(message)
        for turn in turns:
            if turn.id and (turn.id in self._waiting or any(turn.id == other.id for other in self._turns)):
                raise Rejected("E_MESSAGE_ID", "this session has a message with this id already", "id")
        for turn in turns:
            self._take(turn)

    @property
    def messages(self) -> tuple[ChatTurn, ...]:
        """The turns of the window, oldest first; they cannot be changed."""
        return tuple(self._turns)

    @property
    def waiting(self) -> int:
        """How many turns are not pushed yet."""
        return len(self._waiting)

    def delete(self, index: int) -> None:
        """Take one turn out of the window. One that is not pushed yet is not pushed. Raises IndexError."""
        self._waiting.pop(self._turns.pop(index).id, None)

    def clear(self) -> None:
        """Empty the window. What is not pushed yet still is: only a forgetting takes it."""
        self._turns.clear()
        self._owed = ()

    def window(self, shape: Shape = "anthropic", *, system: str = "") -> dict[str, Any]:
        """The arguments of the next model call, in the shape of Anthropic or OpenAI: `messages`, and `system` where the
        shape has it apart. `system`: the app's system prompt.
        """
        return written(window.window(self._turns, self._settings), shape, system)

    @property
    def business_state(self) -> str:
        """The phase of the task in the app's own words, such as "waiting for payment"."""
        return self._business_state

    @business_state.setter
    def business_state(self, words: str) -> None:
        if len(words) > MAX_BUSINESS_CHARS:
            sentence = f"the state of a task may have {MAX_BUSINESS_CHARS} characters"
            raise Rejected("E_BUSINESS_STATE", sentence, "business_state", MAX_BUSINESS_CHARS)
        self._business_state = words

    @property
    def business_part(self) -> Part:
        """The state of the task as a part of the system prompt, for `assemble`. It is never cut."""
        return Part(
            "business_state", lambda: self._business_state and f"State: {self._business_state}", keep_whole=True
        )

    def _business_text(self) -> str:
        return f"State: {self._business_state}" if self._business_state else ""

    def _take_back(self, turns: Iterable[ChatTurn], business_state: str) -> None:
        """Put the turns of a checkpoint in the place of the window."""
        self._turns, self._owed = list(turns), ()
        self._business_state = business_state

    def _take(self, turn: ChatTurn) -> None:
        """Add a turn, with an id and a time if it has none."""
        turn = replace(turn, id=turn.id or uuid4().hex, created_at=turn.created_at or iso(datetime.now(UTC)))
        self._turns.append(turn)
        self._unwritten.append(turn)
        self._unsaved[turn.id] = turn
        if is_told(turn):
            self._waiting[turn.id] = turn
