"""Filtering: keeps the user's messages and the final replies of a push, and drops the rest.

In this order: every message becomes a turn, memd's own blocks and upload blocks are cut out, signals are detected in
the last user messages, and turns are dropped, each counted by its reason. The reply to a dropped user turn is also
dropped. What is left gets its identities, and then is made to fit the limits (`limits.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from memd.context import Context, Message, Role, identify
from memd.push.limits import fit
from memd.push.tool_text import without_tool_text
from memd.push.turns import Turn, to_turn
from memd.push.validation import RawPush, as_text, clean_text, read_created_at

if TYPE_CHECKING:
    from memd.push.signals import Patterns

SIGNAL_MESSAGES = 6
"""Signals are detected in this many last user messages (DeerFlow's figure)."""

_ACKNOWLEDGEMENT_MAX = 60
"""Characters; longer texts are kept. It also bounds the work of the pattern."""


class _Filters(NamedTuple):
    uploads: re.Pattern[str]
    memory: re.Pattern[str]
    acknowledgement: re.Pattern[str]


@cache
def _filters() -> _Filters:
    from memd.push.patterns import compiled, load  # noqa: PLC0415  (reads YAML: for the first push, not for the import)

    return _Filters(**{name: compiled(sources) for name, sources in load("filtering").items()})


class Examined(NamedTuple):
    """What filtering does with a turn: the blocks that it cuts out, why it drops the turn (None: it keeps it), and the
    signals in it, each with the words that show it.
    """

    turn: Turn
    cut: list[str]
    dropped: str | None
    signals: dict[str, str]


def examine(push: RawPush, patterns: Patterns) -> list[Examined]:
    """The decision of filtering on each turn of a push, for display."""
    came = [to_turn(message) for message in push.messages]
    turns = without_tool_text(list(map(_cleaned, came)))
    searched = _searched(turns)
    return [
        Examined(
            turn,
            [*_cut_out(before), *(piece for _, piece in turn.cut)],
            reason,
            patterns.evidence(turn.text) if index in searched else {},
        )
        for index, (before, turn, reason) in enumerate(zip(came, turns, _reasons(turns), strict=True))
    ]


def to_context(push: RawPush, patterns: Patterns) -> Context:
    """The context of a push: filtered, with signals and identities, within the limits. It may have no messages left."""
    turns = without_tool_text([_cleaned(to_turn(message)) for message in push.messages])
    signals = _signals(turns, patterns)
    dropped: dict[str, int] = {}
    kept, orphaned = _keep(turns, signals, dropped)
    others = _pass_on(kept, push.signals | orphaned)
    if kept and others:  # no user message is left: they stay with the push, though a reply proves nothing
        kept[-1] = replace(kept[-1], signals=kept[-1].signals | others)
    messages = _with_times(identify(push.key.thread_id, kept), turns)
    if push.former_thread:
        formers = identify(push.former_thread, kept)
        messages = tuple(replace(m, former=f.identity) for m, f in zip(messages, formers, strict=True))
    fitting, cut = fit(messages, push.limits)  # identities are those of the whole texts in the whole list
    return Context(push.key, fitting, push.now, dropped | cut | _cut(turns))


def _cut(turns: Sequence[Turn]) -> dict[str, int]:
    """The pieces of tool text cut out of turns that are left."""
    pieces = sum(len(turn.cut) for turn in turns if turn.kind == "user")
    return {"tool_text": pieces} if pieces else {}


def _with_times(messages: tuple[Message, ...], turns: Sequence[Turn]) -> tuple[Message, ...]:
    """The messages with times that came as numbers in ISO 8601. Identities were made from the numbers as they came."""
    times = {as_text(turn.created_at): read_created_at(turn.created_at) for turn in turns}
    if all(came == kept for came, kept in times.items()):
        return messages
    return tuple(replace(m, created_at=times.get(m.created_at, m.created_at)) for m in messages)


def _cleaned(turn: Turn) -> Turn:
    """The turn without control characters, memd's own blocks and upload blocks. A cut upload block counts as a file.

    Only the turns of users and assistants: others are dropped whatever they say, however long they are.
    """
    if turn.kind not in ("user", "assistant"):
        return turn
    text = clean_text(turn.text).strip()
    if "<" not in text:
        return turn if text == turn.text else turn._replace(text=text)
    filters = _filters()
    without_memory = filters.memory.sub("", text)
    without_uploads = filters.uploads.sub("", without_memory)
    return turn._replace(
        text=without_uploads.strip(),
        has_files=turn.has_files or without_uploads != without_memory,
        hidden=turn.hidden or (without_memory != text and not without_memory.strip()),
    )


def _cut_out(turn: Turn) -> list[str]:
    """The blocks that `_cleaned` cuts out of a turn."""
    text, filters = clean_text(turn.text), _filters()
    pieces = [match[0] for match in filters.memory.finditer(text)]
    return pieces + [match[0] for match in filters.uploads.finditer(filters.memory.sub("", text))]


def _signals(turns: Sequence[Turn], patterns: Patterns) -> dict[int, frozenset[str]]:
    """The signals in the last user messages, by the index of the turn."""
    return {index: patterns.detect(turns[index].text) for index in _searched(turns)}


def _searched(turns: Sequence[Turn]) -> list[int]:
    """The turns in which signals are looked for."""
    spoken = [index for index, turn in enumerate(turns) if turn.kind == "user" and turn.text and not turn.hidden]
    return spoken[-SIGNAL_MESSAGES:]


def _keep(
    turns: Sequence[Turn], signals: dict[int, frozenset[str]], dropped: dict[str, int]
) -> tuple[list[Message], frozenset[str]]:
    """The messages to keep, and the signals of dropped turns that have no user message before them."""
    kept: list[Message] = []
    orphaned: frozenset[str] = frozenset()
    for index, (turn, reason) in enumerate(zip(turns, _reasons(turns), strict=True)):
        found = signals.get(index, frozenset())
        if reason is None:
            kept.append(_message(turn, found))
        else:
            dropped[reason] = dropped.get(reason, 0) + 1
            orphaned |= _pass_on(kept, found)
    return kept, orphaned


def _pass_on(kept: list[Message], signals: frozenset[str]) -> frozenset[str]:
    """Give signals to the last user message, which they are about. Returns them when there is none."""
    for index in range(len(kept) - 1, -1, -1) if signals else ():
        if kept[index].role == "user":
            kept[index] = replace(kept[index], signals=kept[index].signals | signals)
            return frozenset()
    return signals


def _reasons(turns: Sequence[Turn]) -> Iterator[str | None]:
    """Why each turn is dropped; None keeps it."""
    with_reply = False
    for turn in turns:
        reason = _reason(turn)
        if turn.kind == "user" and not turn.hidden:
            with_reply = reason is not None
        elif reason is None and with_reply:
            reason = "reply_of_dropped"
        yield reason


def _reason(turn: Turn) -> str | None:
    """Why a turn is dropped; None keeps it."""
    if turn.hidden:
        return "hidden"
    if turn.kind in ("system", "tool", "reasoning"):
        return turn.kind
    if turn.calls_tools:
        return "tool_call"
    if not turn.text:
        return "upload_only" if turn.has_files else "empty"
    if turn.kind == "user" and is_acknowledgement(turn.text):
        return "acknowledgement"
    return None


def is_acknowledgement(text: str) -> bool:
    """Whether a text is only "ok", "thanks", "好的", a greeting or the like."""
    return len(text) <= _ACKNOWLEDGEMENT_MAX and _filters().acknowledgement.fullmatch(text) is not None


def _message(turn: Turn, signals: frozenset[str]) -> Message:
    role: Role = "user" if turn.kind == "user" else "assistant"
    return Message(role, turn.text, as_text(turn.id), as_text(turn.created_at), signals)
