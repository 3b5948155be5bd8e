"""`auto`: at too many messages or too large a share of the model's window, in steps that end as soon as it fits.

Messages are counted as a provider gets them, neighbours of one role together. All but the newest `auto_keep` turns
become the summary; then large texts are offloaded, the oldest first, and a reference stays in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeVar

from msgspec.structs import replace

from memd.config import SessionSettings
from memd.context import digest, tenths_of_tokens
from memd.session.chat import ChatBlock, ChatTurn, Text, ToolResult
from memd.session.plans import Offload, Plan, Window, window_of

B = TypeVar("B", bound=ChatBlock)


def plan(turns: Sequence[ChatTurn], settings: SessionSettings) -> Plan:
    """What is left of the newest turns may still be too large, where nothing in them can be offloaded."""
    window = window_of(turns, settings)
    if _fits(window, settings):
        return window.unchanged()
    behind = len(window.turns) - settings.auto_keep
    cut = window.cut_before(max((place for place in window.places if place <= behind), default=window.head))
    window = window_of(cut.keep, settings)
    return cut if _fits(window, settings) else _offloaded(window, cut, settings)


def reference(offload: Offload) -> str:
    """What stands in the place of an offloaded text."""
    return f"[offloaded {offload.id}: {len(offload.text)} characters]"


def _most_tokens(settings: SessionSettings) -> int:
    return int(settings.auto_share * settings.model_tokens)


def _fits(window: Window, settings: SessionSettings) -> bool:
    messages = sum(1 for _ in groupby(window.turns[window.head :], lambda turn: turn.role))
    return messages <= settings.auto_messages and window.tokens <= _most_tokens(settings)


def _offloaded(window: Window, cut: Plan, settings: SessionSettings) -> Plan:
    """The plan with large texts offloaded until it fits. The newest turn stays as it is."""
    over = 10 * (window.tokens - _most_tokens(settings))
    keep, offload = list(window.turns), list[Offload]()
    for place in range(window.head, window.newest):
        if over <= 0:
            break
        turn = window.turns[place]
        texts = _large(window.shrunk[place], settings.offload_chars)  # what the model does not see saves nothing
        if texts:
            keep[place] = replace(turn, blocks=tuple(_without(block, texts) for block in turn.blocks))
            offload += texts.values()
            over -= sum(tenths_of_tokens(text.text) - tenths_of_tokens(reference(text)) for text in texts.values())
    return cut._replace(keep=tuple(keep), offload=tuple(offload))


def _large(turn: ChatTurn, most: int) -> dict[str, Offload]:
    """The texts of a turn that are larger, each with its offload."""
    texts = [
        part.text
        for block in turn.blocks
        for part in (block.output if isinstance(block, ToolResult) else (block,))
        if isinstance(part, Text) and len(part.text) > most
    ]
    return {text: Offload(f"off_{digest('offload', text, size=8)}", text) for text in texts}


def _without(block: ChatBlock, texts: dict[str, Offload]) -> ChatBlock:
    if isinstance(block, ToolResult):
        return replace(block, output=tuple(_referring(part, texts) for part in block.output))
    return _referring(block, texts)


def _referring(block: B, texts: dict[str, Offload]) -> B | Text:
    if isinstance(block, Text) and block.text in texts:
        return Text(reference(texts[block.text]))
    return block
