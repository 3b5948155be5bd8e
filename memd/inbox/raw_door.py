"""The raw door: moves raw pushes from their lists into the inbox, each of them by one atomic step.

The scheduler calls it all the time, forgetting once for each user. Raw and trusted pushes end in the same merge.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import redis
from msgspec.structs import replace

from memd.config import Settings
from memd.errors import MemdError, Rejected
from memd.events import Event, logger
from memd.inbox import verbs
from memd.inbox.connection import Call, Flight, execute, send
from memd.inbox.decoding import text
from memd.inbox.verbs import RAW, P, app_of, raw_lists
from memd.push.filtering import to_context
from memd.push.validation import RawPush, in_namespace, parse_push

PART, PART_BYTES = 25, 2_097_152
"""Pushes that are read and sent in one pipeline, and the bytes after which no further push is read: three pipelines are
under way at once, and producers put up to `client.max_read_bytes` into a push.
"""

ROUND_S = 0.1
"""Each list gets this long per round, so a flood on one cannot starve the others, however large its pushes are."""


class _End(NamedTuple):
    """Why a round stops early. `more`: whether the list may still hold pushes to take in."""

    more: bool


class RawDoor:
    """Takes in every raw list in turn. A push that cannot be accepted goes to the dead with a code; none is dropped."""

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._settings = settings
        self._client = client
        self._lists = raw_lists(settings)
        self._seen: dict[str, int] = {}
        """When each list was last seen to its end (ms of the server's clock): what is behind it came later."""

        self._log = logger(part="raw_door")

    def take_in(self, rounds: int = 1) -> bool:
        """Take in waiting pushes for at most `rounds` rounds; returns whether more may be left. Raises MemdError."""
        waiting = self._lists
        for _ in range(rounds):
            waiting = tuple(source for source in waiting if self._take_round(source))
            if not waiting:
                return False
        return True

    def take_in_present(self, timeout_s: float) -> bool:
        """Take in every push that the lists hold now; False when `timeout_s` seconds were too few. Raises MemdError."""
        until = time.monotonic() + timeout_s
        backlog = Backlog(self._client, self._lists)
        while not backlog.taken_in():
            if time.monotonic() >= until:
                return False
            self.take_in()
        return True

    def _take_round(self, source: str) -> bool:
        """Take in from the head of one list; True when there may be more. Stops where another scheduler was faster.

        The parts are pipelined: each part is parsed while the server takes in the part before it and returns the part
        after it. A push that is no longer the head when its call arrives is left where it is.
        """
        looked = send(self._client, verbs.now_ms())
        part = send(self._client, _heads(source, 0))
        saw_end = not _is_full(part)
        behind = [] if saw_end else send(self._client, _heads(source, len(part)))
        under_way: tuple[list[bytes], Flight[Any]] | None = None
        until = time.monotonic() + ROUND_S  # counted from here, so one part is taken in however slow the server is
        try:
            while part and time.monotonic() < until:
                calls: list[Call[Any]] = [self._call(raw, source) for raw in part]
                if under_way is not None:
                    landed = self._land(source, *under_way)
                    if isinstance(landed, _End):
                        return landed.more
                    behind = landed
                under_way = part, Flight(self._client, [*calls, _heads(source, len(behind))])
                part = behind
            if under_way is not None and isinstance(landed := self._land(source, *under_way), _End):
                return landed.more
        finally:  # a call without a reply was executed or not; the next round sees which
            if under_way is not None:
                under_way[1].call_off()
        if saw_end and not part:
            self._seen[source] = looked
        return bool(part)

    def _land(self, source: str, heads: list[bytes], sent: Flight[Any]) -> list[bytes] | _End:
        """Wait until the server has taken in a whole part; returns the pushes behind the next part."""
        *answers, behind = sent.land()
        for raw, answer in zip(heads, answers, strict=True):
            if isinstance(answer, Rejected):
                # The functions refused what the validator let pass. The pushes behind it saw another head and stayed.
                send(self._client, verbs.take_dead(raw, source, answer, self._seen.get(source)))
                return _End(more=True)
            if isinstance(answer, MemdError):
                raise answer
            if not answer:
                return _End(more=False)
        if isinstance(behind, MemdError):
            raise behind
        return cast("list[bytes]", behind)

    def _call(self, raw: bytes, source: str) -> Call[bool]:
        if not self._settings.enabled:
            return verbs.take_skipped(raw, source, "disabled")
        try:
            context = to_context(parsed(raw, source, self._settings))
        except Rejected as error:  # kept unchanged in the dead, with the code
            self._log.warning(Event.RAW_PUSH_DEAD, code=error.code, bytes=len(raw))
            return verbs.take_dead(raw, source, error, self._seen.get(source))
        if not context.messages:
            self._log.info(Event.RAW_PUSH_SKIPPED, reason="nothing_left", dropped=context.dropped, cut=context.cut)
            return verbs.take_skipped(raw, source, "nothing_left", context)
        return verbs.take(raw, source, context, self._seen.get(source))


def _heads(source: str, start: int) -> Call[list[bytes]]:
    return verbs.raw_heads(source, start, PART, PART_BYTES)


def _is_full(part: list[bytes]) -> bool:
    """Whether there may be pushes behind a part."""
    return len(part) == PART or sum(map(len, part)) >= PART_BYTES


def parsed(raw: bytes, source: str, settings: Settings) -> RawPush:
    """The push, its thread in the namespace of the list's app. Raises Rejected.

    Versions before the namespaces stored these messages under the thread's plain name, so the push carries it too.
    """
    push = parse_push(raw, settings.client)
    app = app_of(source)
    return replace(in_namespace(push, app), former_thread=push.key.thread_id) if app else push


class Backlog:
    """The pushes that the raw lists held at one moment, so that a caller can wait until they are taken in."""

    def __init__(self, client: redis.Redis, lists: Sequence[str]) -> None:
        self._client = client
        self._lists = lists
        pipeline = client.pipeline(transaction=True)
        for name in lists:
            pipeline.hget(f"{P}:taken", name)
            pipeline.llen(name)
        replies = execute(pipeline)
        self._lengths = [int(length) for length in replies[1::2]]
        self._goals = [int(taken or 0) + length for taken, length in zip(replies[::2], self._lengths, strict=True)]

    def __len__(self) -> int:
        return sum(self._lengths)

    def taken_in(self) -> bool:
        """Whether all of these pushes have been taken in since. Raises InboxUnavailable."""
        counts = taken(self._client, self._lists)
        return all(count >= goal for count, goal in zip(counts, self._goals, strict=True))


def taken(client: redis.Redis, lists: Sequence[str]) -> list[int]:
    """For each raw list, how many pushes have been taken in from it so far. Raises InboxUnavailable."""
    pipeline = client.pipeline(transaction=False)
    for name in lists:
        pipeline.hget(f"{P}:taken", name)
    return [int(count or 0) for count in execute(pipeline)]


def raw_names(client: redis.Redis, cursor: int, page: int) -> tuple[int, set[str]]:
    """The names of raw lists among one page of all keys, and the next cursor (0: that was the last page)."""
    pipeline = client.pipeline(transaction=False)
    pipeline.scan(cursor, match=f"{RAW}:*", count=page)
    after, names = execute(pipeline)[0]
    return int(after), set(map(text, names))


def note_unread(client: redis.Redis, names: Sequence[str]) -> None:
    """Replace the record of raw lists that no scheduler reads."""
    pipeline = client.pipeline(transaction=True)
    pipeline.delete(f"{P}:unread")
    if names:
        pipeline.sadd(f"{P}:unread", *names)
    execute(pipeline)
