"""Conversations of an import as pushes that the inbox takes whole: in order, each within the limits of one push."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from memd.config import ClientSettings
from memd.context import Bucket, estimate_tokens
from memd.memory.hand.formats import ChatThread
from memd.push.limits import CHAR_BYTES, FIELDS_BYTES, shorten
from memd.push.validation import check_push

PushChat = Callable[[Bucket, str, list[dict[str, Any]]], None]
"""Pushes messages: whose memory, the thread, the messages."""


class ChatPush(NamedTuple):
    """Messages of one thread."""

    thread_id: str
    messages: list[dict[str, Any]]

    @property
    def tokens(self) -> int:
        """The estimated tokens of the messages: about what their extraction reads."""
        return sum(estimate_tokens(message["content"]) for message in self.messages)


def chat_pushes(threads: Sequence[ChatThread], bucket: Bucket, limits: ClientSettings) -> list[ChatPush]:
    """The pushes of all threads, checked as every push is. Raises Rejected before anything is pushed."""
    pushes = [ChatPush(thread.thread_id, part) for thread in threads for part in _parts(thread, limits)]
    for push in pushes:
        fields = {"thread_id": push.thread_id, "user_id": bucket.user_id, "messages": push.messages}
        check_push(fields | ({"agent_name": bucket.agent_name} if bucket.agent_name else {}), limits)
    return pushes


def _parts(thread: ChatThread, limits: ClientSettings) -> Iterator[list[dict[str, Any]]]:
    """The messages in parts of which filtering leaves nothing out for its size; a message too long loses its middle."""
    part: list[dict[str, Any]] = []
    room = limits.max_push_bytes
    for message in thread.messages:
        short = {**message, "content": shorten(message["content"], limits.max_message_chars)}
        size = len(short["content"]) * CHAR_BYTES + FIELDS_BYTES
        if part and (size > room or len(part) >= limits.max_messages):
            yield part
            part, room = [], limits.max_push_bytes
        part.append(short)
        room -= size
    if part:
        yield part
