"""What the model sees of old tool rounds: less than the session keeps. The turns themselves do not change.

Before each call all results but the newest few become a line that names the tool, and what older turns gave to tools,
and got from them, is cut. Results that the model has not seen yet are whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from msgspec.structs import replace

from memd.config import SessionSettings
from memd.session.chat import ChatBlock, ChatTurn, Other, Text, ToolResult, ToolUse, json_text

SMALL_RESULT_CHARS = 100
"""A result of so many characters stays: the line that would replace it is not much shorter."""


def shrunk(turns: Sequence[ChatTurn], settings: SessionSettings) -> tuple[ChatTurn, ...]:
    """Each turn as the model is to see it, at the same place."""
    tools = {use.id: use.name for turn in turns if turn.role == "assistant" for use in turn.calls}
    unseen = _unseen(turns)
    older = min(unseen, len(turns) - settings.whole_turns)
    left = settings.tool_results - sum(len(turn.results) for turn in turns[unseen:])
    result = list(turns)
    for place in reversed(range(unseen)):
        turn = turns[place]
        if turn.role == "tool":
            old, left = max(0, len(turn.results) - max(0, left)), left - len(turn.results)
            result[place] = _shrunk(turn, old, place < older, tools, settings)
        elif turn.calls and place < older:
            result[place] = _shrunk(turn, 0, True, tools, settings)
    return tuple(result)


def _shrunk(turn: ChatTurn, old: int, is_older: bool, tools: dict[str, str], settings: SessionSettings) -> ChatTurn:
    """A turn without the content of its first `old` results, and cut if it is older; the same one each time."""
    how = (old, is_older, settings.tool_input_chars, settings.tool_result_chars)
    found = turn.shorter.get(how)
    if found is None:
        found = _without_old(turn, old, tools)
        found = turn.shorter[how] = _cut(found, settings) if is_older else found
    return found


def shortened(text: str, most: int) -> str:
    """The beginning of a text, and how much is cut, in so many characters."""
    if len(text) <= most:
        return text
    note = f" [… {len(text)} characters, cut]"
    return text[: max(0, most - len(note))] + note


def _unseen(turns: Sequence[ChatTurn]) -> int:
    """The place from which on the model has seen nothing yet: behind the last turn of the assistant."""
    return next((place + 1 for place in reversed(range(len(turns))) if turns[place].role == "assistant"), 0)


def _without_old(turn: ChatTurn, old: int, tools: dict[str, str]) -> ChatTurn:
    """The turn with a line in the place of each of its first `old` results that is large."""
    if old <= 0 or (turn.tool_chars <= SMALL_RESULT_CHARS and not turn.has_files):
        return turn
    blocks = [_used(result, tools) if _is_large(result) else result for result in turn.results[:old]]
    return replace(turn, blocks=(*blocks, *turn.results[old:]))


def _is_large(result: ToolResult) -> bool:
    return len(result.text) > SMALL_RESULT_CHARS or any(isinstance(part, Other) for part in result.output)


def _used(result: ToolResult, tools: dict[str, str]) -> ToolResult:
    return replace(result, output=(Text(f"[Previous: used {tools.get(result.tool_use_id, 'a tool')}]"),))


def _cut(turn: ChatTurn, settings: SessionSettings) -> ChatTurn:
    """The turn with its inputs and results cut."""
    most = settings.tool_result_chars if turn.role == "tool" else settings.tool_input_chars
    if turn.tool_chars <= most:
        return turn
    return replace(turn, blocks=tuple(_cut_block(block, settings) for block in turn.blocks))


def _cut_block(block: ChatBlock, settings: SessionSettings) -> ChatBlock:
    if isinstance(block, ToolUse):
        return replace(block, input=_cut_input(block.input, settings.tool_input_chars))
    if isinstance(block, ToolResult):
        return replace(block, output=tuple(_cut_output(block, settings.tool_result_chars)))
    return block


def _cut_output(result: ToolResult, most: int) -> Iterator[Text | Other]:
    """The output with `most` characters of words in all."""
    for part in result.output:
        if isinstance(part, Other):
            yield part
        elif most > 0:
            yield Text(shortened(part.text, most))
            most -= len(part.text)


def _cut_input(given: Any, most: int) -> Any:
    """The input of a tool in so many characters of JSON: its fields stay, and the long values are cut."""
    text = json_text(given)
    if len(text) <= most:
        return given
    if isinstance(given, dict):
        room = (most - 2) // len(given) - 4  # of a field: quotes, colon, comma
        fields = {name: _cut_value(value, room - len(name)) for name, value in given.items()}
        if len(orjson.dumps(fields)) <= most:
            return fields
    return {"input": shortened(text, most - 2 * len('{"input":""}'))}


def _cut_value(value: Any, most: int) -> Any:
    text = json_text(value)
    return value if len(text) <= most else shortened(text, max(0, most))
