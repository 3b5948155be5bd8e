"""ChatGPT's data export: `conversations.json`, a list of conversations that are trees of messages.

What ChatGPT has remembered stands in the conversations: the list that the model was given (`model_editable_context`,
the newest holds), and what it noted since (messages to its tool `bio`). These become facts. The branch that ends at
`current_node` is the conversation; its text is pushed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from memd.context import DEFAULT_AGENT
from memd.memory.document import Fact
from memd.memory.hand.formats.chats import chat_message, chat_thread, conversation_files, time_of
from memd.memory.hand.formats.parcels import ChatThread, ImportContents, Parcel, entries, first_entry, text_at

_ENTRY = re.compile(r"\s*\d+\.\s*(?:\[(\d{4}-\d{2}-\d{2})[^\]]*\]\.?\s*)?(\S.*)")
"""A line of the list: `3. [2025-05-01]. Lives in Lisbon.`"""

_UNWANTED = re.compile(r"(?i)(?:please )?(?:forget|remove|delete)\b|忘记|删除")
"""A note that takes something back."""

_CITATION = re.compile("\ue200[^\ue200\ue201]*\ue201")


class _Noted(NamedTuple):
    """What was remembered at a time (seconds since 1970)."""

    at: float
    facts: list[Fact]


def recognises(value: Any) -> bool:
    """Whether it is a list of trees, one tree, or a folder with such a list."""
    first = next((item for item in conversation_files(value) if isinstance(item, dict)), None)
    first = first or (value if isinstance(value, dict) else first_entry(value))
    return isinstance(first.get("mapping"), dict)


def read(value: Any, _user_id: str) -> ImportContents:
    """One parcel, and a thread for each conversation."""
    listed = list(conversation_files(value)) or ([value] if isinstance(value, dict) else value)
    refused: Counter[str] = Counter()
    threads: list[ChatThread] = []
    noted: list[_Noted] = []
    lists: list[_Noted] = []
    for conversation in entries(listed, "conversations"):
        branch = _branch(conversation)
        thread = chat_thread("chatgpt", text_at(conversation, "conversation_id", "id"), _messages(branch))
        if thread is None:
            refused["no_conversation"] += 1
        else:
            threads.append(thread)
        for message in branch:
            _note(message, conversation, noted, lists, refused)
    newest = max(lists, key=lambda found: found.at, default=_Noted(float("-inf"), []))
    later = sorted((found for found in noted if found.at > newest.at), key=lambda found: found.at)
    since = [fact for found in later for fact in found.facts]
    parcel = Parcel("chatgpt", None, DEFAULT_AGENT, (*newest.facts, *since), refused=refused)
    notes: tuple[str, ...] = ()
    if refused["custom_instructions"]:
        notes = ("custom instructions are not imported: `memd profile set USER content` sets them by hand",)
    return ImportContents("chatgpt", (parcel,), tuple(threads), notes)


def _branch(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages from the root to the current node, or to the last one in the file; each node once."""
    nodes: dict[str, Any] = conversation["mapping"] if isinstance(conversation.get("mapping"), dict) else {}
    name: Any = conversation.get("current_node")
    if not isinstance(name, str) or name not in nodes:
        name = next(reversed(nodes), None)
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    while isinstance(name, str) and name not in seen and isinstance(node := nodes.get(name), dict):
        seen.add(name)
        if isinstance(node.get("message"), dict):
            found.append(node["message"])
        name = node.get("parent")
    return found[::-1]


def _messages(branch: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in branch:
        role, kind = _role(message), _kind(message)
        hidden = _dict(message, "metadata").get("is_visually_hidden_from_conversation") is True
        to_all = message.get("recipient", "all") in ("all", None, "")
        if role in ("user", "assistant") and kind in ("text", "multimodal_text") and to_all and not hidden:
            yield from chat_message(role, _text(message), message.get("id"), message.get("create_time"))


def _note(
    message: dict[str, Any],
    conversation: dict[str, Any],
    noted: list[_Noted],
    lists: list[_Noted],
    refused: Counter[str],
) -> None:
    """Collect what a message says of ChatGPT's own memory."""
    content, kind = _dict(message, "content"), _kind(message)
    if kind == "user_editable_context":
        refused["custom_instructions"] += bool(text_at(content, "user_profile", "user_instructions"))
    elif kind == "model_editable_context" and (text := text_at(content, "model_set_context")):
        lists.append(_Noted(_number(conversation.get("update_time")), list(_listed(text))))
    elif message.get("recipient") == "bio" and _role(message) == "assistant":
        at = message.get("create_time")
        lines = [line.strip() for line in (_text(message) or text_at(content, "text")).splitlines() if line.strip()]
        wanted = [line for line in lines if not _UNWANTED.match(line)]
        refused["taken_back"] += len(lines) - len(wanted)
        noted.append(_Noted(_number(at), [{"content": line, "createdAt": time_of(at)} for line in wanted]))


def _listed(text: str) -> Iterator[Fact]:
    """The facts of the list that the model was given; a line without a number goes on with the one before."""
    found: list[Fact] = []
    for line in filter(str.strip, text.splitlines()):
        if match := _ENTRY.fullmatch(line):
            found.append({"content": match[2].strip(), "createdAt": match[1]})
        elif found:
            found[-1]["content"] += f" {line.strip()}"
    yield from found


def _text(message: dict[str, Any]) -> str:
    parts = _dict(message, "content").get("parts")
    texts = [part if isinstance(part, str) else _spoken(part) for part in parts] if isinstance(parts, list) else []
    return _CITATION.sub("", "\n\n".join(filter(None, texts)))


def _spoken(part: object) -> str:
    """What a part says that is no plain text: the transcript of a recording."""
    return text_at(part, "text") if isinstance(part, dict) and part.get("content_type") == "audio_transcription" else ""


def _role(message: dict[str, Any]) -> str:
    return text_at(_dict(message, "author"), "role")


def _kind(message: dict[str, Any]) -> str:
    return text_at(_dict(message, "content"), "content_type")


def _dict(item: dict[str, Any], name: str) -> dict[str, Any]:
    value = item.get(name)
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
