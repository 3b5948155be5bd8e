"""Turns told as text, for who summarises them: without secrets, long texts without their middle, tool rounds short."""

from __future__ import annotations

from collections.abc import Sequence

from memd.config import SessionSettings
from memd.extraction.prompt import escape
from memd.push.limits import shorten, shorten_redacted
from memd.push.redaction import redact
from memd.session.chat import ChatBlock, ChatTurn, Other, Text, ToolResult, ToolUse, json_text

TURN_CHARS = 4_000
"""Characters of the words of a turn that are told."""


def told(turns: Sequence[ChatTurn], settings: SessionSettings, most: int) -> str:
    """The turns as data that cannot forge its tags, in at most so many characters: the first turn and the newest."""
    if not turns:
        return ""
    first = _told(turns[0], settings)
    room, kept = most - len(first), list[str]()
    for place in reversed(range(1, len(turns))):
        text = _told(turns[place], settings)
        room -= len(text) + 1
        if room < 0:
            kept.append(f'<gap turns="{place}"/>')
            break
        kept.append(text)
    return "\n".join([first[:most], *reversed(kept)])


def redacted(text: str, most: int) -> str:
    """A text without its secrets, and without its middle where it is longer."""
    return shorten_redacted(redact(shorten(text, most))[0], most)


def _told(turn: ChatTurn, settings: SessionSettings) -> str:
    name = f' name="{escape(turn.name).replace(chr(34), chr(39))}"' if turn.name else ""
    parts = "\n".join(filter(None, (_part(block, settings) for block in turn.blocks)))
    return f'<t role="{turn.role}"{name}>{escape(parts)}</t>'


def _part(block: ChatBlock, settings: SessionSettings) -> str:
    match block:
        case Text(text):
            return redacted(text, TURN_CHARS)
        case ToolUse(_, name, given):
            return f"[used {name}: {redacted(json_text(given), settings.tool_input_chars)}]"
        case ToolResult(_, _, is_error):
            words = redacted(block.text, settings.tool_result_chars)
            return f"[{'error' if is_error else 'result'}: {words}]"
        case Other(raw):
            return f"[{raw.get('type', 'file')}]"
