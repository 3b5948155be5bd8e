"""A stored session as people look at it: its window, and its transcript. Looking pushes and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from msgspec.structs import replace

from memd.config import Settings
from memd.context import Key, identity_of_id
from memd.memory.ledger import name_of
from memd.memory.said.turns import Said, Turn
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import load_to_read
from memd.memory.store.said_reader import read_said
from memd.memory.store.sessions import CheckpointEntry
from memd.push.times import moment
from memd.session import states
from memd.session.chat import ChatTurn, Text
from memd.session.pairs import paired
from memd.session.plans import Window, window_of
from memd.session.states import Held

TurnMark = Literal["", "hidden", "over"]


class SessionLook(NamedTuple):
    """A stored session. `saved_at`: ISO 8601. `window`: its turns, as they are and as the model gets them."""

    thread_id: str
    saved_at: str
    held: Held
    window: Window
    checkpoints: list[CheckpointEntry]


class TranscriptTurn(NamedTuple):
    """A turn of the transcript. `kept`: whether the said layer has it, redacted; else it is as the session has it.

    `mark`: `hidden` when it gives no excerpt, `over` when it says what has changed since.
    """

    turn: ChatTurn
    kept: bool = False
    mark: TurnMark = ""


def look(settings: Settings, key: Key) -> SessionLook | None:
    """A session; None when there is none. Raises StoreUnavailable, DocumentDamaged, DocumentTooNew, Rejected."""
    sessions = open_store(settings).sessions
    state = sessions.load(key).state
    if state is None:
        return None
    held = states.content_of(state)
    window = window_of(paired(held.turns), settings.session)
    return SessionLook(key.thread_id, str(state.get("timestamp") or ""), held, window, sessions.checkpoints(key))


def transcript(settings: Settings, key: Key) -> list[TranscriptTurn]:
    """What was said in a session, oldest first, with its tools and system turns; empty when there is no such session.

    Words come from the said layer where it has them, and from the window. The transcript has the bounds of both: what
    left the window and was not kept is missing. Raises as `look`.
    """
    store = open_store(settings)
    loaded = store.sessions.load(key)
    if loaded.state is None:
        return []
    held = states.content_of(loaded.state)
    document = load_to_read(store, key.bucket).document
    said = read_said(store, key.bucket, document, settings, datetime.now(UTC))
    thread = name_of(key.thread_id, key.user_id, shared=settings.store.shared)
    lines = (turn for line in store.sessions.lines(key, loaded) if (turn := states.turn_of(line)) is not None)
    found = _Joined(key.thread_id, said)
    found.add_said(said.of_thread(thread))
    found.add(lines)
    found.add(turn for turn in (*held.waiting, *held.turns) if turn.kind == "said")
    return found.in_order(held.turns)


class _Joined:
    """The turns of a session by identity: their words, and what else the session keeps of them."""

    def __init__(self, thread_id: str, said: Said) -> None:
        self._thread_id = thread_id
        self._said = said
        self._turns: dict[str, TranscriptTurn] = {}

    def add_said(self, turns: Iterable[Turn]) -> None:
        """Add turns of the said layer."""
        for turn in turns:
            said_at = turn.said_at or turn.at or None
            words = ChatTurn(turn.role, (Text(turn.text),), turn.id, said_at, turn.name or None)
            self._turns[turn.id] = TranscriptTurn(words, kept=True, mark=self._mark(turn.id))

    def add(self, turns: Iterable[ChatTurn]) -> None:
        """Add turns of the session: of those that are known, the blocks that are not."""
        for turn in turns:
            name = self._identity(turn)
            known = self._turns.get(name)
            if known is None:
                self._turns[name] = TranscriptTurn(turn)
                continue
            held = known.turn.blocks
            words = any(isinstance(block, Text) for block in held)
            more = [block for block in turn.blocks if block not in held and not (words and isinstance(block, Text))]
            if more:
                self._turns[name] = known._replace(turn=replace(known.turn, blocks=(*held, *more)))

    def in_order(self, window: Sequence[ChatTurn]) -> list[TranscriptTurn]:
        """All of them: those before the window by their times, then those of the window in its order."""
        last = [name for turn in window if turn.role != "system" and (name := self._identity(turn)) in self._turns]
        newest = set(last)
        earlier = [turn for name, turn in self._turns.items() if name not in newest]
        return [*sorted(earlier, key=_when), *(self._turns[name] for name in last)]

    def _identity(self, turn: ChatTurn) -> str:
        return identity_of_id(self._thread_id, turn.id)

    def _mark(self, identity: str) -> TurnMark:
        if identity in self._said.hidden:
            return "hidden"
        return "over" if identity in self._said.over else ""


def _when(found: TranscriptTurn) -> tuple[float, int]:
    """Sorts by time; within one moment a call stands before its result, and that before what follows from it."""
    turn = found.turn
    time = moment(turn.created_at)
    step = 1 if turn.role == "tool" else 2 if turn.role == "assistant" and not turn.calls else 0
    return (time.timestamp() if time else 0.0), step
