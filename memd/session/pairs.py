"""Tool calls and their results, which belong together: every provider refuses a call or a result alone."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from memd.session.chat import ChatBlock, ChatTurn, Text, ToolResult, ToolUse

NO_RESULT = "[No result: the call was interrupted]"


class _Brought(NamedTuple):
    """A result, and the place of the turn that brought it."""

    place: int
    result: ToolResult


def paired(turns: Sequence[ChatTurn]) -> tuple[ChatTurn, ...]:
    """The turns with the results of each turn's calls directly behind it, one for each call, and no id used twice.

    A call without a result gets NO_RESULT; a result without its call goes. Where all are in order already, they are
    the same turns.
    """
    if _in_order(turns):
        return tuple(turns)
    results: dict[str, deque[_Brought]] = defaultdict(deque)
    for place, turn in enumerate(turns):
        for result in turn.results:
            results[result.tool_use_id].append(_Brought(place, result))
    used: dict[str, int] = {}
    in_order: list[ChatTurn] = []
    for place, turn in enumerate(turns):
        if turn.calls:
            in_order += _answered(turns, place, results, used)
        elif turn.role != "tool":
            in_order.append(turn)
    return tuple(in_order)


def cuts(turns: Sequence[ChatTurn]) -> list[int]:
    """The places before which paired turns may be cut, all at turns of the user or the assistant.

    So results stay with their call, and system turns with what they follow.
    """
    return [place for place, turn in enumerate(turns) if turn.role in ("user", "assistant")]


def without_stand_ins(turns: Sequence[ChatTurn]) -> Iterator[ChatTurn]:
    """The turns without NO_RESULT: the result may still come, for example when a person has to approve the call."""
    for turn in turns:
        results = tuple(result for result in turn.results if result.text != NO_RESULT)
        if len(results) == len(turn.results):
            yield turn
        elif results:
            yield replace(turn, blocks=results)


def _in_order(turns: Sequence[ChatTurn]) -> bool:
    used: set[str] = set()
    waiting: set[str] = set()
    for turn in turns:
        if turn.role == "tool":
            for result in turn.results:
                if result.tool_use_id not in waiting:
                    return False
                waiting.remove(result.tool_use_id)
        elif waiting:
            return False
        elif turn.calls:
            waiting = {use.id for use in turn.calls}
            if len(waiting) < len(turn.calls) or not used.isdisjoint(waiting):
                return False
            used |= waiting
    return not waiting


def _answered(
    turns: Sequence[ChatTurn], place: int, results: dict[str, deque[_Brought]], used: dict[str, int]
) -> Iterator[ChatTurn]:
    """A turn that calls tools, and one turn with all their results."""
    turn, blocks, answers = turns[place], list[ChatBlock](), list[ToolResult]()
    source = None
    for block in turn.blocks:
        if not isinstance(block, ToolUse):
            blocks.append(block)
            continue
        name = _unused(block.id, used)
        found = _first_behind(place, results[block.id])
        source = source or (found and turns[found.place])
        result = found.result if found else ToolResult(block.id, (Text(NO_RESULT),), is_error=True)
        blocks.append(block if name == block.id else replace(block, id=name))
        answers.append(result if name == block.id else replace(result, tool_use_id=name))
    yield turn if turn.blocks == tuple(blocks) else replace(turn, blocks=tuple(blocks))
    yield replace(source, blocks=tuple(answers)) if source else ChatTurn("tool", tuple(answers))


def _first_behind(place: int, results: deque[_Brought]) -> _Brought | None:
    """The first result that was brought behind a place, which is then used up."""
    while results:
        found = results.popleft()
        if found.place > place:
            return found
    return None


def _unused(name: str, used: dict[str, int]) -> str:
    """The id, with a number behind it if an earlier call has it. `used`: how often each was asked for."""
    free = name
    while free in used:
        used[name] += 1
        free = f"{name}_{used[name]}"
    used[free] = 1
    return free
