"""Filtering: keeps the user's messages and the final replies of a push, and drops the rest.

In this order: every message becomes a turn, blocks that are not the user's words are cut out and counted by kind, and
turns are dropped and counted by reason. The reply to a dropped user turn is also dropped, except for a question that
the user then answered in a few words. What is left gets its identities, and then is made to fit the limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from memd.context import Context, Message, Role, identify
from memd.identifiers import clean_text
from memd.push import answers, blocks
from memd.push.compaction import is_compaction
from memd.push.former import former_identities
from memd.push.limits import fit
from memd.push.shapes import UNKNOWN, RawTurn
from memd.push.times import read_created_at
from memd.push.tool_text import without_tool_text
from memd.push.validation import RawPush, as_text


class Examined(NamedTuple):
    """What filtering does with a turn: the blocks that it cuts out, and why it drops the turn (None: it keeps it)."""

    turn: RawTurn
    cut: list[str]
    dropped: str | None


def examine(push: RawPush) -> list[Examined]:
    """The decision of filtering on each turn of a push, for display."""
    turns = without_tool_text(list(map(_cleaned, push.turns)))
    reasons = _reasons(turns)
    return [
        Examined(turn, [piece for _, piece in turn.cut], reason) for turn, reason in zip(turns, reasons, strict=True)
    ]


def to_context(push: RawPush) -> Context:
    """The context of a push: filtered, with identities and the signals that its producer named, within the limits.

    It may have no messages left.
    """
    turns = without_tool_text(list(map(_cleaned, push.turns)))
    reasons = _reasons(turns)
    kept = [_message(turn) for turn, reason in zip(turns, reasons, strict=True) if reason is None]
    if push.project_id or push.source[0]:
        kind, source_id = push.source
        marked = {"project": push.project_id, "source_kind": kind, "source_id": source_id}
        kept = [replace(message, **marked) for message in kept]
    _signal(kept, push.signals)
    messages = _with_formers(identify(push.key.thread_id, kept), push, reasons)
    fitting, cut = fit(_with_times(messages, turns), push.limits)  # identities are of the whole texts in the whole list
    dropped = _dropped(reasons) | cut
    return Context(push.key, fitting, push.now, dropped, _cut(turns), push.user_name, push.trace)


def _with_formers(messages: tuple[Message, ...], push: RawPush, reasons: Sequence[str | None]) -> tuple[Message, ...]:
    """The messages with the identities that older versions gave them, where those differ."""
    places = [index for index, reason in enumerate(reasons) if reason is None]
    formers = former_identities(push, dict(zip(places, messages, strict=True)))
    if not any(formers):
        return messages
    return tuple(replace(m, former=former) if former else m for m, former in zip(messages, formers, strict=True))


def _with_times(messages: tuple[Message, ...], turns: Sequence[RawTurn]) -> tuple[Message, ...]:
    """The messages with times that came as numbers in ISO 8601. Identities were made from the numbers as they came."""
    times = {as_text(time): read_created_at(time) for turn in turns if (time := turn.created_at) is not None}
    if all(came == kept for came, kept in times.items()):
        return messages
    return tuple(replace(m, created_at=times.get(m.created_at, m.created_at)) for m in messages)


def _cleaned(turn: RawTurn) -> RawTurn:
    """The turn without control characters and blocks. A cut list of uploads counts as a file.

    Only the turns of users and assistants: others are dropped whatever they say, however long they are.
    """
    if turn.kind not in ("user", "assistant"):
        return turn
    text = clean_text(turn.text).strip()
    if "<" not in text:
        return turn if text == turn.text else turn._replace(text=text)
    without, pieces = blocks.cut(text)
    if not pieces:
        return turn if text == turn.text else turn._replace(text=text)
    kinds = {kind for kind, _ in pieces}
    text = without.strip()
    return turn._replace(
        text=text,
        has_files=turn.has_files or "uploads" in kinds,
        hidden=turn.hidden or (kinds == {"memory"} and not text),
        cut=(*turn.cut, *pieces),
    )


def _signal(kept: list[Message], signals: frozenset[str]) -> None:
    """Give signals to the last user message, which they are about; without one to the last message."""
    if kept and signals:
        users = [index for index, message in enumerate(kept) if message.role == "user"]
        place = users[-1] if users else len(kept) - 1
        kept[place] = replace(kept[place], signals=signals)


def _dropped(reasons: Sequence[str | None]) -> dict[str, int]:
    return {reason: count for reason, count in Counter(reasons).items() if reason is not None}


def _cut(turns: Sequence[RawTurn]) -> dict[str, int]:
    """The blocks cut out of turns of user and assistant. Turns of the system and of tools are dropped whole."""
    cut = [kind for turn in turns if turn.cut and turn.kind in ("user", "assistant") for kind, _ in turn.cut]
    return dict(Counter(cut)) if cut else {}


def _reasons(turns: Sequence[RawTurn]) -> list[str | None]:
    """Why each turn is dropped; None keeps it."""
    reasons: list[str | None] = []
    with_reply = False
    before: answers.Before | None = None  # None: nobody knows what the assistant said directly before
    for turn in turns:
        reason = _reason(turn, before)
        if turn.kind == "user" and not turn.hidden:
            with_reply = reason is not None
            before = before if reason in ("acknowledgement", "empty") else answers.Before()
        elif reason is None:
            before = before or answers.Before()
            before.add(turn.text)
            reason = "reply_of_dropped" if with_reply else None
        reasons.append(reason)
    _keep_questions(turns, reasons)
    return reasons


def _reason(turn: RawTurn, before: answers.Before | None) -> str | None:
    """Why a turn is dropped; None keeps it."""
    if turn.hidden:
        return "hidden"
    if turn.kind in ("system", "tool", "reasoning"):
        return turn.kind
    if turn.calls_tools:
        return "tool_call"
    if not turn.text:
        return "upload_only" if turn.has_files else UNKNOWN if turn.has_unknown else "empty"
    if turn.kind == "user" and is_compaction(turn.text):
        return "compaction"
    if turn.kind == "user" and answers.says_nothing(turn.text, before):
        return "acknowledgement"
    return None


def _keep_questions(turns: Sequence[RawTurn], reasons: list[str | None]) -> None:
    """Keep the reply to a dropped turn if it asks what the next short turn of the user answers."""
    answered = False
    for index in range(len(turns) - 1, -1, -1):
        turn, reason = turns[index], reasons[index]
        if turn.kind == "user" and not turn.hidden:
            answered = reason is None and len(turn.text) <= answers.MAX_CHARS
        elif reason in (None, "reply_of_dropped"):
            if answered and reason and answers.asks(turn.text):
                reasons[index] = None
            answered = False


def _message(turn: RawTurn) -> Message:
    role: Role = "user" if turn.kind == "user" else "assistant"
    created_at = None if turn.created_at is None else as_text(turn.created_at)
    return Message(role, turn.text, as_text(turn.id), created_at, name=turn.name or None)
