"""Compaction of a session: the plan of its strategy, and the summary of what leaves the window.

A model that is away never blocks the conversation. The turns stay as long as they may; then they are cut, an outline
stands in their place, and the session owes their summary, which replaces the outline at the next chance.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from memd.config import ExtractionSettings, SessionSettings
from memd.errors import ExtractionFailed, MemdError, ModelUnavailable
from memd.events import Event
from memd.extraction import Usage
from memd.session.chat import ChatTurn, is_notes
from memd.session.outline import outline
from memd.session.plans import Offload, Plan
from memd.session.summary import MOST_CHARS, Summary, summarise
from memd.session.told import TURN_CHARS
from memd.session.window import folded, plan, plan_now, window

PAUSE_S = 60.0
"""Seconds without a call after one that found the model away, unless the endpoint asks for more: the chat goes on."""

_log = logging.getLogger("memd")


class Compaction(NamedTuple):
    """The turns of the session from now on, and what the next model call gets of them.

    `cut`: the turns that left the window; `offload`: the texts. `owed`: what the model has still to summarise, to be
    given to the next compaction. `usage`: the tokens of the summary.
    """

    turns: tuple[ChatTurn, ...]
    seen: tuple[ChatTurn, ...]
    cut: tuple[ChatTurn, ...] = ()
    offload: tuple[Offload, ...] = ()
    owed: tuple[ChatTurn, ...] = ()
    usage: Usage = Usage()


class _Notes(NamedTuple):
    """The text in the place of turns, and the turns that a model has still to summarise."""

    text: str
    owed: tuple[ChatTurn, ...] = ()
    usage: Usage = Usage()


class ModelOutage:
    """What one process knows of an outage of the model that writes its summaries. All sessions of a client share it."""

    def __init__(self) -> None:
        self._not_before = 0.0
        self._away: ModelUnavailable | None = None

    def check(self) -> None:
        """Raises ModelUnavailable while the model is taken to be away."""
        if self._away and time.monotonic() < self._not_before:
            raise self._away

    def began(self, away: ModelUnavailable) -> None:
        """A call found the model away: the first one of an outage is logged."""
        if not self._away:
            _log.warning("%s %s", Event.MODEL_OUTAGE_BEGAN, away)
        self._away, self._not_before = away, time.monotonic() + max(PAUSE_S, away.retry_after_s or 0)

    def ended(self) -> None:
        """A call was answered."""
        if self._away:
            _log.warning("%s", Event.MODEL_OUTAGE_ENDED)
            self._away = None


class Compactor:
    """Compacts a session."""

    def __init__(
        self,
        settings: SessionSettings,
        extraction: ExtractionSettings,
        remembered: Callable[[], str] = str,
        outage: ModelOutage | None = None,
    ) -> None:
        """`remembered`: what the long-term memory holds, as `inject` words it; asked for before each summary.

        `outage`: shared with other sessions, so that not each of them finds out by itself that the model is away.
        """
        self._settings, self._extraction, self._remembered = settings, extraction, remembered
        self._outage = outage or ModelOutage()

    def compact(self, turns: Sequence[ChatTurn], owed: Sequence[ChatTurn] = (), *, by_hand: bool = False) -> Compaction:
        """The turns after what their strategy asks for. `by_hand`: all but the newest turn are summarised.

        Raises ConfigError.
        """
        made = (plan_now if by_hand else plan)(turns, self._settings)
        cut = tuple(turn for turn in made.summarise if turn.kind == "said")
        if not (cut or owed):
            kept = made.keep if made.changes else tuple(turns)
            return Compaction(kept, made.seen or window(kept, self._settings), offload=made.offload)
        earlier = tuple(owed) or tuple(turn for turn in turns if is_notes(turn))
        notes = self._notes((*earlier, *cut), may_wait=not (made.changes and made.must))
        if notes is None:
            return Compaction(tuple(turns), made.seen or window(turns, self._settings), owed=tuple(owed))
        said = tuple(turn for turn in made.keep if turn.kind == "said")
        left = folded(Plan(said, (*earlier, *cut)), notes.text)
        return Compaction(left, window(left, self._settings), cut, made.offload, notes.owed, notes.usage)

    def _notes(self, turns: tuple[ChatTurn, ...], *, may_wait: bool) -> _Notes | None:
        """The model's summary; else an outline. None: the model is away, and the turns can wait for it."""
        try:
            summary = self._summary(turns)
        except ModelUnavailable:
            owed = _newest(turns)
            return None if may_wait else _Notes(outline(turns, self._settings.summary_tokens), owed)
        except ExtractionFailed as refused:  # the model would refuse these turns again, so they are not owed
            _log.warning("%s %s", Event.SUMMARY_REFUSED, refused)
            summary = None
        if summary is None:
            return _Notes(outline(turns, self._settings.summary_tokens))
        return _Notes(summary.text, usage=summary.usage)

    def _summary(self, turns: tuple[ChatTurn, ...]) -> Summary | None:
        """The model's summary; None offline. Raises ExtractionFailed, without a call while the model is away."""
        self._outage.check()
        try:
            summary = summarise(turns, self._known(), self._settings, self._extraction)
        except ModelUnavailable as away:
            self._outage.began(away)
            raise
        self._outage.ended()
        return summary

    def _known(self) -> str:
        """What the long-term memory holds; nothing while it cannot be read, and then the summary may repeat it."""
        try:
            return self._remembered()
        except MemdError as error:
            _log.warning("%s %s", Event.INJECT_FAILED, error)
            return ""


def _newest(turns: tuple[ChatTurn, ...]) -> tuple[ChatTurn, ...]:
    """Notes, and the newest turns that one summary can read: more need not be kept for it."""
    room, kept = MOST_CHARS[0], list[ChatTurn]()
    for turn in reversed(turns):
        if turn.kind == "said":
            room -= min(len(turn.text) + turn.tool_chars, TURN_CHARS)
        if room >= 0 or turn.kind == "summary":
            kept.append(turn)
    return tuple(reversed(kept))
