"""A stored session as people look at it: its window, and its transcript. Looking pushes and changes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from msgspec.structs import replace

from memd.config import Settings
from memd.context import Key, identity_of_id
from memd.memory.ledger import name_of
from memd.memory.said.turns import Said, Turn
from memd.memory.store.json_store import open_store
from memd.memory.store.said_reader import read_said
from memd.memory.store.sessions import CheckpointEntry, StoredSession
from memd.push.times import moment
from memd.session import states
from memd.session.chat import ChatTurn, Text
from memd.session.pairs import paired
from memd.session.plans import Window, window_of
from memd.session.states import Held

TurnMark = Literal["", "hidden", "over"]


class SessionLook(NamedTuple):
    """A stored session. `saved_at`: ISO 8601. `window`: its turns, as they are and as the model gets them."""

    key: Key
    loaded: StoredSession
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
    loaded = sessions.load(key)
    if loaded.state is None:
        return None
    held = states.content_of(loaded.state)
    window = window_of(paired(held.turns), settings.session)
    saved_at = str(loaded.state.get("timestamp") or "")
    return SessionLook(key, loaded, saved_at, held, window, sessions.checkpoints(key))


def transcript(settings: Settings, session: SessionLook) -> list[TranscriptTurn]:
    """What was said in a session, oldest first, with its tools and system turns.

    Words come from the said layer where it has them, and from the window. The transcript has the bounds of both: what
    left the window and was not kept is missing. Raises as `look`.
    """
    store = open_store(settings)
    key, held = session.key, session.held
    document = store.peek(key.bucket).document
    said = read_said(store, key.bucket, document, settings, datetime.now(UTC))
    thread = name_of(key.thread_id, key.user_id, shared=settings.store.shared)
    joined = _Joined(key.thread_id, said)
    for kept in said.of_thread(thread):
        joined.add_said(kept)
    for waiting in held.waiting:
        joined.add(waiting, joined.words)
    for line in store.sessions.lines(key, session.loaded):
        if (turn := states.turn_of(line)) is not None:
            joined.add(turn, joined.lines)
    for turn in held.turns:
        if turn.kind == "said" and turn.role != "system":
            joined.add(turn, joined.window)
    return joined.in_order()


class _Joined:
    """The turns of a session by identity, and three orders of them: of the words that left the window, of what the
    session has written beside words (tools, system turns), and of the window."""

    def __init__(self, thread_id: str, said: Said) -> None:
        self.words: dict[str, None] = {}
        self.lines: dict[str, None] = {}
        self.window: dict[str, None] = {}
        self._thread_id = thread_id
        self._said = said
        self._turns: dict[str, TranscriptTurn] = {}

    def add_said(self, turn: Turn) -> None:
        """Add a turn of the said layer."""
        words = ChatTurn(turn.role, (Text(turn.text),), turn.id, turn.said_at or turn.at or None, turn.name or None)
        mark: TurnMark = "hidden" if turn.id in self._said.hidden else "over" if turn.id in self._said.over else ""
        self._turns[turn.id] = TranscriptTurn(words, kept=True, mark=mark)
        self.words[turn.id] = None

    def add(self, turn: ChatTurn, order: dict[str, None]) -> None:
        """Add a turn of the session; of one that is known, the blocks that are not."""
        name = identity_of_id(self._thread_id, turn.id)
        order[name] = None
        known = self._turns.get(name)
        if known is None:
            self._turns[name] = TranscriptTurn(turn)
            return
        held = known.turn.blocks
        has_words = any(isinstance(block, Text) for block in held)
        more = [block for block in turn.blocks if block not in held and not (has_words and isinstance(block, Text))]
        if more:
            self._turns[name] = known._replace(turn=replace(known.turn, blocks=(*held, *more)))

    def in_order(self) -> list[TranscriptTurn]:
        """All of them, oldest first."""
        earlier = (name for name in self._before_the_window() if name not in self.window)
        return [self._turns[name] for name in dict.fromkeys((*earlier, *self.window))]

    def _before_the_window(self) -> Iterator[str]:
        """Words and lines in one order: each keeps its own, a turn that is in both joins them, else time decides."""
        lines = deque(name for name in self.lines if name not in self.window)
        left = set(lines)
        for name in self.words:
            while lines and lines[0] != name and (name in left or self._is_before(lines[0], name)):
                left.discard(lines[0])
                yield lines.popleft()
            if name in left:
                left.discard(lines.popleft())
            yield name
        yield from lines

    def _is_before(self, line: str, words: str) -> bool:
        """Whether a line was before these words; of one moment, results were."""
        if line in self.words:
            return False  # it waits for its own words
        first, second = self._turns[line].turn, self._turns[words].turn
        times = moment(first.created_at), moment(second.created_at)
        if None in times or times[0] == times[1]:
            return first.role == "tool"
        return times[0] < times[1]  # type: ignore[operator]  # neither is None
