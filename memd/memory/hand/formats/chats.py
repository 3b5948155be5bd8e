"""What the exports of chat services share: their conversations become threads, which are pushed and extracted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memd.errors import Rejected
from memd.memory.hand.formats.parcels import ChatThread, files_of
from memd.push.times import read_created_at

MAX_ID_CHARS = 128
"""Characters of the id of a conversation or message; both services use UUIDs."""


def chat_thread(service: str, conversation_id: object, messages: Iterable[dict[str, Any]]) -> ChatThread | None:
    """A conversation as a thread with messages that have text; None for one without any, or without an id."""
    name = _id(conversation_id)
    listed = tuple(messages)
    if not name or not any(message["role"] == "user" for message in listed):
        return None
    return ChatThread(f"{service}:{name}", listed)


def chat_message(role: str, content: str, message_id: object, created_at: object) -> Iterator[dict[str, Any]]:
    """The message as a push has it; nothing for one without text."""
    if not content.strip():
        return
    message: dict[str, Any] = {"role": role, "content": content}
    if name := _id(message_id):
        message["id"] = name
    if time := time_of(created_at):
        message["created_at"] = time
    yield message


def time_of(value: object) -> str | None:
    """A time as ISO 8601; None for what is none."""
    try:
        return read_created_at(value)
    except Rejected:  # the message counts, its time does not
        return None


def conversation_files(value: object) -> Iterator[Any]:
    """The conversations in the files of a folder or archive: conversations.json, or several with numbers."""
    for path, found in sorted(files_of(value).items()):
        if path.rpartition("/")[2].startswith("conversations") and isinstance(found, list):
            yield from found


def _id(value: object) -> str:
    is_plain = isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS and value.isascii() and value.isprintable()
    return str(value).strip() if is_plain else ""
