"""Sessions of a user: their list, the window of one, its summary, and its transcript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from memd.context import Key
from memd.http.console.page import Shown, Visit, address
from memd.http.problems import not_found
from memd.memory.store.json_store import open_store
from memd.push.content import sort_of
from memd.session.chat import ChatTurn, Other, Text, ToolResult, ToolUse, json_text
from memd.session.looking import SessionLook, TurnMark, look, transcript
from memd.session.opening import key_of
from memd.session.window import plan

LIST, PATH = "/console/sessions", "/console/session"
ROWS = 50
"""Sessions, or turns of a transcript, on one page."""

MOST_TURNS = 100
"""Turns of a window that are shown, the newest."""

MARKS: dict[TurnMark, list[str]] = {"": [], "hidden": ["gives no excerpt"], "over": ["has changed since"]}
"""The badges of a turn of the transcript."""

BADGES = ("shortened for the model", "pushed by the next save")
"""The badges of a turn of the window. A save writes before it pushes: the newest turns may be pushed already."""


class ShownBlock(NamedTuple):
    """A block of a turn. `name`: of the tool, or the type of another block; `failed`: a result that is an error."""

    kind: Literal["text", "call", "result", "other"]
    text: str
    name: str = ""
    failed: bool = False


class ShownTurn(NamedTuple):
    """A turn as a page shows it. `badges`: English words, keys of the translations."""

    role: str
    at: str
    name: str
    blocks: list[ShownBlock]
    badges: list[str]


def sessions(visit: Visit) -> Shown:
    """The page of a user's sessions."""
    found = visit.service.memd.sessions(visit.user, agent_name=visit.agent)
    start = visit.start()
    more = address(LIST, user=visit.user, agent=visit.agent, after=start + ROWS) if start + ROWS < len(found) else ""
    agents = open_store(visit.service.settings).agents(visit.user)
    return Shown(
        "sessions.html",
        {
            "user": visit.user,
            "agent": visit.agent,
            "agents": agents,
            "rows": found[start : start + ROWS],
            "more_href": more,
            "keep_days": visit.service.settings.session.keep_days,
        },
    )


def session(visit: Visit) -> Shown:
    """The page of one session. `show=transcript`: the transcript in place of the window."""
    settings, key = visit.service.settings, _key(visit)
    found = look(settings, key)
    if found is None:
        raise not_found()
    data = {"user": visit.user, "agent": visit.agent, "thread": key.thread_id, "saved": found.saved_at}
    return Shown("session.html", data | _window(visit, found) | _transcript(visit, found))


def compact(visit: Visit) -> str:
    """Put a summary in the place of everything but the newest turn; what leaves the window is pushed."""
    key = _existing(visit)
    memd = visit.service.memd
    memd.session(key.thread_id, user_id=key.user_id, agent_name=key.agent_name).compact()
    visit.say("The window is compacted; what left it is pushed")
    return address(PATH, user=key.user_id, agent=key.agent_name, thread=key.thread_id)


def remove_session(visit: Visit) -> str:
    """Remove a session with its lines and checkpoints; the memory stays as it is."""
    key = _existing(visit)
    visit.service.memd.remove_session(key.thread_id, user_id=key.user_id, agent_name=key.agent_name)
    visit.say("The session is removed")
    return address(LIST, user=key.user_id, agent=key.agent_name)


def shown_turn(turn: ChatTurn, badges: list[str], tools: Mapping[str, str]) -> ShownTurn:
    """A turn as a page shows it. `tools`: their names, by the ids of their calls."""
    return ShownTurn(turn.role, turn.created_at or "", turn.name or "", _blocks(turn, tools), badges)


def tools_of(turns: Iterable[ChatTurn]) -> dict[str, str]:
    """The names of the tools that these turns call, by the ids of the calls."""
    return {use.id: use.name for turn in turns for use in turn.calls}


def _blocks(turn: ChatTurn, tools: Mapping[str, str]) -> list[ShownBlock]:
    found: list[ShownBlock] = []
    for block in turn.blocks:
        match block:
            case Text(text):
                found.append(ShownBlock("text", text))
            case ToolUse(name=name, input=given):
                found.append(ShownBlock("call", json_text(given), name))
            case ToolResult():
                files = "".join(f"\n[{_type(part)}]" for part in block.output if isinstance(part, Other))
                name = tools.get(block.tool_use_id, "")
                found.append(ShownBlock("result", block.text + files, name, block.is_error))
            case Other():
                text = "" if sort_of(block.raw) == "file" else json_text(block.raw)
                found.append(ShownBlock("other", text, _type(block)))
    return found


def _type(block: Other) -> str:
    return str(block.raw.get("type", "block"))


def _window(visit: Visit, found: SessionLook) -> dict[str, Any]:
    settings, window, held = visit.service.settings.session, found.window, found.held
    owed = {turn.id for turn in held.waiting}
    badges = [
        [
            *(BADGES[:1] if seen is not turn else ()),
            *(BADGES[1:] if turn.id in owed else ()),
        ]
        for turn, seen in zip(window.turns, window.shrunk, strict=True)
    ]
    tools = tools_of(window.turns)
    rows = [shown_turn(turn, words, tools) for turn, words in zip(window.turns, badges, strict=True)]
    summary = [row for row, turn in zip(rows, window.turns, strict=True) if turn.kind == "summary"]
    said = [row for row, turn in zip(rows, window.turns, strict=True) if turn.kind != "summary"]
    limits = {
        "recent": settings.compact_tokens,
        "auto": int(settings.auto_share * settings.model_tokens),
        "transcript": settings.transcript_tokens,
    }
    return {
        "summary": next((row for row in summary if row.role == "user"), None),
        "is_outline": bool(held.owed),
        "turns": said[-MOST_TURNS:],
        "turn_count": len(said),
        "tokens": window.tokens,
        "limit": limits[settings.strategy],
        "strategy": settings.strategy,
        "due": plan(held.turns, settings).changes,
        "waiting": len(held.waiting),
        "business_state": held.business_state,
        "checkpoints": found.checkpoints[::-1],
        "can_change": visit.may("admin"),
    }


def _transcript(visit: Visit, session: SessionLook) -> dict[str, Any]:
    """The transcript, the newest page first; empty unless it is asked for."""
    chosen = visit.value("show") == "transcript"
    found = transcript(visit.service.settings, session) if chosen else []
    end = max(0, len(found) - visit.start())
    rows = found[max(0, end - ROWS) : end]
    tools = tools_of(row.turn for row in found)
    named = {"user": visit.user, "agent": visit.agent, "thread": session.key.thread_id, "show": "transcript"}
    return {
        "show": "transcript" if chosen else "window",
        "transcript": [shown_turn(row.turn, MARKS[row.mark], tools) for row in rows],
        "transcript_count": len(found),
        "earlier_href": address(PATH, **named, after=len(found) - end + ROWS) if end > ROWS else "",
        "later_href": address(PATH, **named, after=max(0, len(found) - end - ROWS)) if end < len(found) else "",
    }


def _key(visit: Visit) -> Key:
    return key_of(visit.value("thread"), visit.user, visit.agent)


def _existing(visit: Visit) -> Key:
    """The key of a session that is stored, for who may read it. Raises Problem."""
    visit.require("said")
    key = _key(visit)
    if open_store(visit.service.settings).sessions.load(key).state is None:
        raise not_found()
    return key
