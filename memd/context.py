"""What travels: messages, contexts, keys and buckets, and the hashes that name them.

All hashes are SHA-256 over length-prefixed UTF-8 fields, so that no two different lists of fields share one input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Literal, NamedTuple

from msgspec import Struct, field

Role = Literal["user", "assistant"]

WIRE_VERSION = 1
"""Version of both doors' formats (docs/wire.md)."""

SIGNALS: tuple[str, ...] = ("correction", "reinforcement", "preference", "identity", "goal", "decision")
"""The signals that a message can carry, found in its text or named by the producer."""

DEFAULT_AGENT = ""
"""The agent name of the user's own memory, when a push names none."""

_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


def digest(*fields: str, size: int = 16) -> str:
    """Hex SHA-256 over the length-prefixed fields, cut to `size` bytes."""
    text = "".join([f"{len(value)}:{value}" for value in fields])
    if text.isascii():  # as many bytes as characters
        data = text.encode()
    else:
        data = b"".join([b"%d:%b" % (len(value), value) for value in map(str.encode, fields)])
    return sha256(data).hexdigest()[: 2 * size]


class Bucket(NamedTuple):
    """One memory document: never two writers at once."""

    user_id: str
    agent_name: str = DEFAULT_AGENT

    @property
    def hash(self) -> str:
        return digest("bucket", self.user_id, self.agent_name)


class Key(NamedTuple):
    """What coalesces: contexts of one key merge until the key is claimed."""

    thread_id: str
    user_id: str
    agent_name: str = DEFAULT_AGENT

    @property
    def hash(self) -> str:
        return digest("key", self.thread_id, self.user_id, self.agent_name)

    @property
    def bucket(self) -> Bucket:
        return Bucket(self.user_id, self.agent_name)


def user_hash(user_id: str) -> str:
    """What stands for a user in Redis names and log lines."""
    return digest("user", user_id)


class Message(Struct, frozen=True, gc=False):
    """One conversation turn after filtering.

    `identity` is set by `identify`; `signals` are those found in this message or named by the producer with it.
    """

    role: Role
    content: str
    id: str | None = None
    created_at: str | None = None
    signals: frozenset[str] = frozenset()
    identity: str = ""


class Context(Struct, frozen=True):
    """What one push carries, filtered and identified: ready for the merge."""

    key: Key
    messages: tuple[Message, ...]
    now: bool = False
    dropped: dict[str, int] = field(default_factory=dict)
    """Turns that filtering dropped, counted by reason."""


def identify(thread_id: str, messages: Iterable[Message]) -> tuple[Message, ...]:
    """Give each message its identity: 37 characters, the same for the same message of the same thread.

    With an id: `i` + SHA-256(thread_id, id) cut to 18 bytes. Without one: `n` + SHA-256(thread_id, role, content)
    cut to 12 bytes + SHA-256(the message before it, created_at) cut to 6 bytes; a message without a predecessor and
    without created_at ends in 12 zeros, and matches a known message with the same first 25 characters
    (`is_single`, `loose`).
    """
    result: list[Message] = []
    before = ""
    for message in messages:
        content_hash = digest(thread_id, message.role, message.content, size=12)
        if message.id is not None:
            identity = "i" + digest(thread_id, message.id, size=18)
        elif not before and message.created_at is None:
            identity = "n" + content_hash + "0" * 12
        else:
            identity = "n" + content_hash + digest(before, message.created_at or "", size=6)
        before = content_hash
        result.append(Message(message.role, message.content, message.id, message.created_at, message.signals, identity))
    return tuple(result)


def is_single(identity: str) -> bool:
    """Whether this is the identity of a message that came without id, predecessor and created_at."""
    return identity[0] == "n" and identity.endswith("0" * 12)


def loose(identity: str) -> str:
    """The part of an identity that says thread, role and content only."""
    return identity[:25]


def estimate_tokens(text: str) -> int:
    """Tokens of a text, estimated: 1.5 per CJK character, 0.3 per other one, rounded up.

    The established system's heuristic; it needs no tokenizer and errs on the high side for English.
    """
    cjk = 0 if text.isascii() else len(_CJK.findall(text))
    return -(-(15 * cjk + 3 * (len(text) - cjk)) // 10)
