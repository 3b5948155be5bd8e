"""Messages, contexts, keys and buckets, and the hashes that name them.

All hashes are SHA-256 over length-prefixed UTF-8 fields, so two different lists of fields never share an input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Literal, NamedTuple

from msgspec import Struct, field

from memd.identifiers import unusual

Role = Literal["user", "assistant"]

WIRE_VERSION = 4
"""Version of the formats of `RPUSH` and `FCALL memd_push` (docs/wire.md). Version 2 names speakers, version 3 projects
and sources, version 4 traces."""

SOURCE_KINDS: tuple[str, ...] = ("user", "ai", "knowledge_base", "project_resource")
"""What the words of a push can come from."""

FUNCTIONS_VERSION = 1
"""In the names of the inbox's functions, and the argument of its bells: workers of all versions share them."""

SIGNALS: tuple[str, ...] = ("correction", "reinforcement", "preference", "identity", "goal", "decision")
"""The signals that a message can carry, found in its text or named by the producer."""

DEFAULT_AGENT = ""
"""The agent name of the user's own memory, for a push that names no agent."""

_IDENTITY = re.compile("[in][0-9a-f]{36}")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")


def digest(*fields: str, size: int = 16) -> str:
    """Hex SHA-256 over the length-prefixed fields, cut to `size` bytes."""
    text = ""
    for value in fields:
        text += f"{len(value)}:{value}"
    if text.isascii():  # one byte for each character
        data = text.encode()
    else:
        data = b"".join([b"%d:%b" % (len(value), value) for value in map(str.encode, fields)])
    return sha256(data).hexdigest()[: 2 * size]


class Bucket(NamedTuple):
    """The owner of one memory document, which never has two writers at once.

    A user, or one agent's memory of them; or a project (`of_project`), which has no user and whose id stands alone.
    """

    user_id: str
    agent_name: str = DEFAULT_AGENT
    project_id: str = ""

    @property
    def hash(self) -> str:
        if self.project_id:
            return digest("project", self.project_id)
        return digest("bucket", self.user_id, self.agent_name)

    @property
    def owner(self) -> str:
        """The hash of the user or of the project, under whose lock commits and forgetting exclude each other."""
        return self.hash if self.project_id else user_hash(self.user_id)


def of_project(project_id: str) -> Bucket:
    """The owner of a project's document."""
    return Bucket("", DEFAULT_AGENT, project_id)


class Key(NamedTuple):
    """The unit that coalesces: contexts with the same key merge until the key is claimed."""

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
    """The hash that names a user in Redis. It is not secret: outside the inbox `Store.pseudonym` takes its place."""
    return digest("user", user_id)


class Message(Struct, frozen=True, gc=False):
    """One conversation turn after filtering.

    `project`: the project that its first push named ("": none), which is never changed while it is pending.
    `source_kind` (one of SOURCE_KINDS), `source_id`: what its words come from, where the producer says so.
    `name`: who speaks, where the producer says so; in a claim only speakers other than the user. `at`: when the inbox
    took it in, and `said_at`: when it was said (docs/wire.md), ISO 8601; `order`: its place in the inbox's order. All
    three are empty until a claim has it.
    `identity`: set by `identify`. `signals`: found in its text, or named by the producer. `former`: the identities that
    versions with other rules of filtering, or without the namespaces of raw lists, gave it; ledgers may hold them.
    """

    role: Role
    content: str
    id: str | None = None
    created_at: str | None = None
    signals: frozenset[str] = frozenset()
    identity: str = ""
    former: tuple[str, ...] = ()
    name: str | None = None
    project: str = ""
    source_kind: str = ""
    source_id: str = ""
    at: str = ""
    said_at: str = ""
    order: int = 0


class Context(Struct, frozen=True):
    """The content of one push, filtered and identified: ready to merge."""

    key: Key
    messages: tuple[Message, ...]
    now: bool = False
    dropped: dict[str, int] = field(default_factory=dict)
    """The turns that filtering dropped, and the messages that it cut, counted by reason."""

    cut: dict[str, int] = field(default_factory=dict)
    """The blocks that filtering cut out of turns of user and assistant, counted by kind."""

    user_name: str | None = None
    """What the user is called: the user's own messages may carry this name."""

    trace: str = ""
    """The trace that the push belongs to, a `traceparent`. It raises no version: servers that do not know it leave it
    out."""

    @property
    def wire(self) -> int:
        """The lowest version of the wire format that can carry it."""
        lowest = 1 if self.user_name is None else 2
        for message in self.messages:
            if message.project or message.source_kind:
                return 3
            if message.name is not None:
                lowest = 2
        return lowest


def identify(thread_id: str, messages: Iterable[Message]) -> tuple[Message, ...]:
    """Set the identity of each message: 37 characters, equal for equal messages of one thread.

    With an id: `i` + SHA-256(thread_id, id) cut to 18 bytes. Without one: `n` + SHA-256(thread_id, role, content)
    cut to 12 bytes + SHA-256(the message before it, created_at) cut to 6 bytes; a message without a predecessor and
    without created_at ends in 12 zeros, and matches a known message with the same first 25 characters
    (`is_single`, `loose`).
    """
    result: list[Message] = []
    before: Message | None = None
    before_hash = ""  # of the content; hashed only where an identity needs it
    for message in messages:
        content_hash = ""
        if message.id is not None:
            identity = identity_of_id(thread_id, message.id)
        else:
            content_hash = _content_hash(thread_id, message)
            if before is None and message.created_at is None:
                identity = "n" + content_hash + "0" * 12
            else:
                anchor = before_hash or (_content_hash(thread_id, before) if before else "")
                identity = "n" + content_hash + digest(anchor, message.created_at or "", size=6)
        before, before_hash = message, content_hash
        result.append(
            Message(
                message.role,
                message.content,
                message.id,
                message.created_at,
                message.signals,
                identity,
                name=message.name,
                project=message.project,
                source_kind=message.source_kind,
                source_id=message.source_id,
            )
        )
    return tuple(result)


def _content_hash(thread_id: str, message: Message) -> str:
    return digest(thread_id, message.role, message.content, size=12)


def identity_of_id(thread_id: str, message_id: str) -> str:
    """The identity of a message that has an id."""
    return "i" + digest(thread_id, message_id, size=18)


def is_identity(name: str) -> bool:
    """Whether a text has the form of an identity."""
    return _IDENTITY.fullmatch(name) is not None


def is_single(identity: str) -> bool:
    """Whether the message had no id, no predecessor and no created_at."""
    return identity[0] == "n" and identity.endswith("0" * 12)


def loose(identity: str) -> str:
    """The part of an identity that is the hash of thread, role and content."""
    return identity[:25]


def estimate_tokens(text: str) -> int:
    """The estimated tokens of a text: 1.5 per CJK character, 0.3 per other character, rounded up.

    This is DeerFlow's heuristic. It needs no tokenizer and estimates too high for English.
    """
    return -(-tenths_of_tokens(text) // 10)


def tenths_of_tokens(text: str) -> int:
    """Ten times the estimate, not rounded: of the parts of a text it adds up."""
    rare = "" if text.isascii() else unusual(text)
    return 3 * len(text) + 12 * (len(rare) - len(_CJK.sub("", rare)))
