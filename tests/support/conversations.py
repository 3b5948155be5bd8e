"""Conversations of a few users, pushed in overlapping windows: with ids, with times, or with neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.context import Context, Key, Message, identify
from memd.extraction.update import Evidence, NewFact, Update

KEYS = [Key("t1", "ana"), Key("t2", "ana"), Key("t3", "ana"), Key("t1", "ana", "coach"), Key("t1", "bob")]
BUCKETS = list(dict.fromkeys(key.bucket for key in KEYS))

TIMED = "t2"
"""The thread whose messages without id have times. If it mixed both kinds, a message could match two others."""

BIG = 4
"""The number of the message that is longer than all others together."""

NONSENSE = [b"\xff", b"[]", b'{"thread_id":"t1","user_id":"ana","messages":[]}']
"""A push that every door refuses."""


@dataclass(frozen=True)
class Window:
    """A push: some messages of a conversation from number `start` on. Only messages with ids have versions."""

    key: Key
    start: int
    length: int
    ids: bool
    version: int
    signal: str
    now: bool
    project: str = ""

    @property
    def context(self) -> Context:
        """The window in the form of the trusted door."""
        turns = [self._turn(number) for number in range(self.start, self.start + self.length)]
        last = turns[-1]
        turns[-1] = replace(last, signals=frozenset(self._signals))
        return Context(self.key, identify(self.key.thread_id, turns), self.now)

    @property
    def raw(self) -> bytes:
        """The window in the form of the raw door."""
        fields = {"thread_id": self.key.thread_id, "user_id": self.key.user_id, "agent_name": self.key.agent_name}
        turns = [
            {"role": turn.role, "content": turn.content, "id": turn.id, "created_at": turn.created_at}
            for turn in self.context.messages
        ]
        project = {"project_id": self.project} if self.project else {}
        return orjson.dumps({**fields, **project, "messages": turns, "signals": self._signals, "now": self.now})

    @property
    def _signals(self) -> list[str]:
        return [self.signal] if self.signal else []

    def _turn(self, number: int) -> Message:
        version = self.version if self.ids else 0
        timed = self.key.thread_id == TIMED and not self.ids
        return Message(
            "assistant" if number % 3 == 1 else "user",
            f"{'/'.join(self.key)} number {number} version {version}" + " big" * 60 * (number == BIG),
            id=str(number) if self.ids else None,
            created_at=f"2026-01-01T00:00:0{number}Z" if timed else None,
            project=self.project,
        )


WINDOWS = st.builds(
    Window,
    key=st.sampled_from(KEYS),
    start=st.integers(0, 5),
    length=st.integers(1, 4),
    ids=st.booleans(),
    version=st.integers(0, 1),
    signal=st.sampled_from(["", "correction", "reinforcement"]),
    now=st.booleans(),
    project=st.sampled_from(["", "", "apollo", "a project#1/é"]),
)


def one_fact_each(messages: Sequence[Message]) -> Update:
    """The update of an extractor that stores every user message unchanged."""
    facts = [
        NewFact(message.content, "context", 0.9, "user", "durable", "descriptive", (Evidence(at, message.content),))
        for at, message in enumerate(messages)
        if message.role == "user"
    ]
    return Update(new_facts=tuple(facts))
