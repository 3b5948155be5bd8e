"""Former identities: those that versions with other rules of filtering gave to the messages of the same window.

An identity without an id is a hash of the filtered text and of the message before it, so where the rules have changed,
a window that was taken in before would look new. The rules of before are kept here, as they were; the ledger asks for
their identities only up to the place where this version began to add to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memd.context import Message, Role, identify
from memd.identifiers import clean_text
from memd.push.patterns import compiled, load, prepared
from memd.push.validation import RawPush, as_text

_ACKNOWLEDGEMENT_MAX = 60
_USER = frozenset({"user", "human", "humanmessagechunk"})
_ASSISTANT = frozenset({"assistant", "ai", "model", "aimessagechunk"})
_ROLES: dict[object, Role] = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
"""The roles of the fast path."""

_PLAIN = frozenset({"role", "content", "id", "created_at", "name"})
_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})
_CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "function_call"})


class _Rules(NamedTuple):
    uploads: re.Pattern[str]
    memory: re.Pattern[str]
    acknowledgement: re.Pattern[str]


@prepared
def _rules() -> _Rules:
    sources = load("former")
    return _Rules(*(compiled(sources[name]) for name in _Rules._fields))


def former_identities(push: RawPush, messages: Mapping[int, Message]) -> list[tuple[str, ...]]:
    """For each message of a push, by its place there, the identities that older versions may have recorded for it.

    A message that the older rules dropped has the identity of the one after it: a version that took that one in had
    seen the message before it.
    """
    if (
        not push.former_thread
        and len(messages) == len(push.messages)
        and all(map(_unchanged, push.messages, messages.values()))
    ):
        return [()] * len(messages)  # the fast path: nearly every push
    formerly = list(_kept_formerly(push.messages, messages))
    same = formerly == [(place, m.role, m.content) for place, m in messages.items()]
    if same and not push.former_thread:
        return [()] * len(messages)
    threads = [push.former_thread] if same else [push.key.thread_id, push.former_thread]
    kept = [_message(push.messages[place], role, text) for place, role, text in formerly]
    recorded = [identify(thread, kept) for thread in threads if thread]
    places = [place for place, _, _ in formerly]
    found: list[tuple[str, ...]] = []
    for place, message in messages.items():
        after = bisect_left(places, place)
        names = [identities[after].identity for identities in recorded if after < len(places)]
        found.append(tuple(name for name in names if name != message.identity))
    return found


def _message(message: Mapping[str, Any], role: Role, text: str) -> Message:
    return Message(role, text, as_text(message.get("id")), as_text(message.get("created_at")))


def _kept_formerly(
    messages: Sequence[Mapping[str, Any]], now: Mapping[int, Message]
) -> Iterator[tuple[int, Role, str]]:
    """The messages that the older rules kept: place, role and text. `now`: those that this version keeps."""
    with_reply = False
    for place, message in enumerate(messages):
        kept = now.get(place)
        role: Role | None
        if kept is not None and _unchanged(message, kept):
            role, text, hidden, only_memory = kept.role, kept.content, False, False
        else:
            role, hidden = _role(message), _hidden(message)
            text = "" if hidden or role is None else _text(message)
            only_memory = role == "user" and not hidden and not text and _is_memory(message)
        if role == "user" and not hidden:
            if not only_memory:  # such a turn was hidden
                with_reply = not text
        elif with_reply:
            text = ""
        if text and role is not None:
            yield place, role, text


def _unchanged(message: Mapping[str, Any], kept: Message) -> bool:
    """The fast path: whether a message that this version keeps as it came was kept so by every version."""
    text = kept.content
    if message.get("content") != text or "<" in text or not _PLAIN.issuperset(message):
        return False
    name = message.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    return role is not None and not (role == "user" and len(text) <= _ACKNOWLEDGEMENT_MAX and _acknowledges(text))


def _role(message: Mapping[str, Any]) -> Role | None:
    """Who speaks; None for tools and systems."""
    name = str(message.get("role") or message.get("type")).lower()
    if name in _ASSISTANT:
        return "assistant"
    types = [_type(block) for block in _blocks(message)]
    if name not in _USER or (types and all(kind.endswith("tool_result") for kind in types)):
        return None
    return "user"


def _hidden(message: Mapping[str, Any]) -> bool:
    extra = message.get("additional_kwargs")
    return bool((isinstance(extra, Mapping) and extra.get("hide_from_ui")) or message.get("hide_from_ui"))


def _text(message: Mapping[str, Any]) -> str:
    """The text that was kept of a message; empty if it was dropped."""
    extra = message.get("additional_kwargs")
    fields = [message, extra] if isinstance(extra, Mapping) else [message]
    if any(one.get("tool_calls") or one.get("function_call") for one in fields):
        return ""
    if not _CALL_BLOCKS.isdisjoint(map(_type, _blocks(message))):
        return ""
    text = _whole(message)
    if "<" in text:
        text = _rules().uploads.sub("", _rules().memory.sub("", text)).strip()
    short = _role(message) == "user" and len(text) <= _ACKNOWLEDGEMENT_MAX
    return "" if short and _acknowledges(text) else text


def _acknowledges(text: str) -> bool:
    return _rules().acknowledgement.fullmatch(text) is not None


def _is_memory(message: Mapping[str, Any]) -> bool:
    """Whether a turn was nothing but a block of memd."""
    text = _whole(message)
    return "<" in text and not _rules().memory.sub("", text).strip()


def _whole(message: Mapping[str, Any]) -> str:
    blocks = (block for block in _blocks(message) if _type(block) in _TEXT_BLOCKS)
    texts = (block.get("text") for block in blocks)
    return clean_text("\n".join(text if isinstance(text, str) else "" for text in texts)).strip()


def _type(block: Mapping[str, Any]) -> str:
    return str(block.get("type", "text"))


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    parts = content if isinstance(content, (list, tuple)) else [content] if isinstance(content, str) else []
    return [
        {"type": "text", "text": part} if isinstance(part, str) else part if isinstance(part, Mapping) else {}
        for part in parts
    ]
