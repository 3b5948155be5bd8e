"""A long chat: what a user said first, and then so much work of an agent that the window is compacted three times.

The limits of the window are a tenth of the usual ones, as the labelled conversations are short. No model is asked: an
outline stands for the turns that were cut, so what is measured is that the memory has what they said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from memd.config import ExtractionSettings, SessionSettings
from memd.session.chat import ChatTurn, Text, ToolResult, ToolUse, said
from memd.session.compacting import Compactor
from memd.session.reading_chats import turns_of

COMPACTIONS = 3

LIMITS = SessionSettings(max_tokens=4_000, compact_tokens=3_000, keep_tokens=1_500, summary_tokens=200)

_WORDS = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore. "
"""Words of the work: none of them is a term of a label."""


def window_after(messages: Sequence[dict[str, Any]]) -> str:
    """The words of the window after the messages, the work and the compactions. Raises Rejected."""
    compactor = Compactor(LIMITS, ExtractionSettings(extractor="rules"))
    turns, cuts = turns_of(messages), 0
    for turn in _work():
        made = compactor.compact((*turns, turn))
        turns, cuts = made.turns, cuts + bool(made.cut)
        if cuts == COMPACTIONS:
            break
    return "\n".join(turn.text for turn in turns)


def _work() -> Iterator[ChatTurn]:
    """Tasks without end: a message of the user, two rounds of a tool, and what came of it."""
    for number in count(4_001):
        yield said("user", f"Work on ticket {number} next. {_WORDS}")
        for part in ("head", "tail"):
            use = ToolUse(f"c{number}{part}", "read_ticket", {"ticket": number, "part": part})
            yield ChatTurn("assistant", (Text(_WORDS), use))
            yield ChatTurn("tool", (ToolResult(use.id, (Text(8 * _WORDS),)),))
        yield said("assistant", f"Ticket {number} is done. {3 * _WORDS}")
