"""The verbs of the inbox: each builds the `Call` of one function; `lua/` has the functions.

The messages of a context travel as `{"role", "content", "id"?, "created_at"?}`. Their identities, tokens, signals and
marks travel in the header, so the functions never parse a message.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

import orjson

from memd.config import Settings
from memd.context import WIRE_VERSION, Context, Message, estimate_tokens, user_hash
from memd.errors import Rejected
from memd.inbox.claim import Claims, PaidAnswer, ServerClock, read_claim
from memd.inbox.connection import Call
from memd.inbox.decoding import message_value, signals_of, text
from memd.push.validation import wire_message

P = "{memd}"
"""The prefix and hash tag of every key except the raw lists."""

RAW = "memd:in"
BELLS = "memd"
"""RQ's queue."""

WAKE = f"{P}:wake"


def raw_lists(settings: Settings) -> tuple[str, ...]:
    """The lists that producers RPUSH to."""
    return (RAW, *(f"{RAW}:{app}" for app in settings.client.apps))


def app_of(raw_list: str) -> str:
    """The app that a raw list belongs to; empty for the list of all."""
    return raw_list.removeprefix(RAW).removeprefix(":")


# --- the wire ------------------------------------------------------------------------------------------------------


PushStatus = Literal["queued", "merged", "unconfirmed", "skipped", "disabled"]


class Merged(NamedTuple):
    """The result of a merge.

    `status`: queued, merged, unconfirmed (one of these, but too few replicas had it in time), skipped (with `reason`)
    or disabled.
    """

    status: PushStatus
    key: str
    gen: str
    seq: int
    due_ms: int
    now_ms: int
    reason: str


UNCONFIRMED: Final = "unconfirmed"
ACCEPTED: frozenset[PushStatus] = frozenset({"queued", "merged", UNCONFIRMED})
"""The statuses of a push that will be worked on."""

ReceiptParts = tuple[str, str, int]
"""(key hash, generation, sequence): the parts of a receipt id."""


# --- producers -----------------------------------------------------------------------------------------------------


REPLICAS_MS = 1_000
"""How long a push waits for replicas."""


def push(context: Context, min_replicas: int = 0) -> Call[Merged]:
    """Merge a context; safe to send twice.

    `min_replicas`: so many replicas have to have it, else what was accepted is `unconfirmed`. WAIT looks at what this
    very connection wrote last.
    """
    command = ("FCALL", "memd_push", 1, P, *_merge_arguments(context))
    if not min_replicas:
        return Call(command, _merged)
    return Call(command, lambda replies: _confirmed(replies, min_replicas), ("WAIT", min_replicas, REPLICAS_MS))


def _confirmed(replies: Sequence[Any], min_replicas: int) -> Merged:
    merged, replicas = _merged(replies[0]), int(replies[1])
    if replicas >= min_replicas or merged.status not in ACCEPTED:
        return merged
    return merged._replace(status=UNCONFIRMED)


def take(raw: bytes, source: str, context: Context, since_ms: int | None = None) -> Call[bool]:
    """Merge and remove the head of a raw list in one step. False: the list has another head by now.

    `since_ms`: when the list was last seen without this push; None where nobody had looked.
    """
    return _take(raw, source, "push", *_merge_arguments(context, since_ms))


def take_dead(raw: bytes, source: str, error: Rejected, since_ms: int | None = None) -> Call[bool]:
    """Move the head of a raw list to the dead, with the reason. `since_ms`: as for `take`."""
    since = () if since_ms is None else (since_ms,)
    return _take(raw, source, "dead", os.urandom(12).hex(), error.code, str(error), *since)


def take_skipped(raw: bytes, source: str, reason: str, context: Context | None = None) -> Call[bool]:
    """Remove the head of a raw list because filtering left no message; what it dropped and cut is counted."""
    counters = {} if context is None else _counters("dropped", context.dropped) | _counters("cut", context.cut)
    return _take(raw, source, "skip", reason, *flat(counters))


def _take(raw: bytes, source: str, *arguments: Any) -> Call[bool]:
    head = digest_sha1(raw)
    return Call(("FCALL", "memd_take_1", 2, P, source, head, *arguments), lambda reply: reply == b"taken")


def digest_sha1(raw: bytes) -> str:
    """SHA-1 as the server's `sha1hex` computes it: it tells two list heads apart, nothing more."""
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest()


def _merge_arguments(context: Context, since_ms: int | None = None) -> tuple[bytes, ...]:
    unique = {message.identity: message for message in context.messages}
    header: dict[str, Any] = {
        "v": context.wire,
        "key": context.key.hash,
        "bucket": context.key.bucket.hash,
        "owner": user_hash(context.key.user_id),
        "ids": list(context.key),
        "gen": os.urandom(4).hex(),
        "m": [[m.identity, estimate_tokens(m.content), _signals(m)] for m in unique.values()],
    }
    if context.user_name is not None:
        header["user_name"] = context.user_name
    if context.now:
        header["now"] = True
    if context.trace:
        header["trace"] = context.trace
    if since_ms is not None:
        header["at"] = since_ms
    if context.dropped:
        header["dropped"] = flat(_counters("dropped", context.dropped))
    if context.cut:
        header["cut"] = flat(_counters("cut", context.cut))
    return (orjson.dumps(header), *map(wire_message, unique.values()))


def _signals(message: Message) -> str:
    """The signals of a message as the inbox keeps them, with the mark of its project behind."""
    names = ",".join(sorted(message.signals)) if message.signals else "-"
    return f"{names}#{quote(message.project, safe='')}" if message.project else names


def _counters(field: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Counts as counters of the inbox."""
    return {f"{field}:{name}": count for name, count in counts.items()}


def _merged(reply: list[Any]) -> Merged:
    status, key, gen, seq, due, now, reason = reply
    return Merged(status.decode(), key.decode(), gen.decode(), seq, due, now, reason.decode())


# --- drain ---------------------------------------------------------------------------------------------------------


def claim(settings: Settings, room: int, holding: int, worker: str, endpoint: str) -> Call[Claims]:
    """Claim up to `room` due keys whose bucket is free; none while the endpoint's breaker is open, one as its probe."""

    def parse(reply: list[Any]) -> Claims:
        now, ahead, suspects, breaker, *taken = reply
        clock = ServerClock(int(now), time.monotonic())
        claims = tuple(read_claim(settings, row, clock) for row in taken)
        return Claims(int(now), _moment(ahead), int(suspects), text(breaker), claims)

    nonce = os.urandom(12).hex()
    command = ("FCALL", "memd_claim_1", 1, P, room, holding, nonce, worker, endpoint, WIRE_VERSION)
    return Call(command, parse)


def lease_s() -> Call[float]:
    """Seconds of a lease, as the inbox gives them: the settings of its scheduler, which a worker's own may differ from.

    0 where the inbox is not set up, or was edited by hand to something that is no number.
    """
    return Call(("HGET", f"{P}:config", "lease_ms"), lambda reply: int(reply) / 1000 if (reply or b"").isdigit() else 0)


def extend(claims: Iterable[str]) -> Call[list[bool]]:
    """Renew leases; False for each claim that we no longer hold."""
    return Call(("FCALL", "memd_extend_1", 1, P, *claims), lambda reply: [held == 1 for held in reply])


def ack(claim_id: str, record: dict[str, Any], stats: Mapping[str, int]) -> Call[bool]:
    """Delete a claim and record its outcome. Sent last, once the document is durable: an earlier ack could lose it."""
    return Call(("FCALL", "memd_ack_1", 1, P, claim_id, orjson.dumps(record), *flat(stats)), bool)


def flat(stats: Mapping[str, int]) -> list[str | int]:
    """Counters by name as the arguments of a function."""
    return [part for name, count in stats.items() for part in (name, count)]


def keep_answer(claim_id: str, answer: PaidAnswer) -> Call[bool]:
    """Keep an answer with its claim, so that the next claim of the same messages needs no new request.

    Raises InboxFull near the server's memory limit.
    """
    return Call(("FCALL", "memd_keep_1", 1, P, claim_id, answer.fingerprint, answer.raw), bool)


def note_formless(claim_id: str, counts: Mapping[str, int]) -> Call[bool]:
    """Keep with a claim how many replies were no update, by identity; an answer that it came with is dropped."""
    return Call(("FCALL", "memd_formless_1", 1, P, claim_id, orjson.dumps(counts)), bool)


def jitter() -> str:
    """A share from 0 to 1 by which the functions shorten a pause, so that waiting workers do not retry together."""
    return f"{random.random():.6f}"  # noqa: S311  (jitter, not a secret)


def release(
    claim_id: str,
    how: str,
    backoff_s: float = 0,
    code: str = "E_WORKER_DIED",
    error: str = "",
    stats: Mapping[str, int] | None = None,
) -> Call[str]:
    """Release a claim. `how`: failed (costs an attempt), formless (the same, and is never the last one), paused (costs
    none), expired (by the scheduler).

    `stats`: the use of its calls, as counters.
    Returns released, dead (no attempt is left; `code` and `error` give the reason) or lost (the claim is not ours).
    """
    _, died, record = death_record(code)
    sentence = error or died
    command = ("FCALL", "memd_release_1", 1, P, claim_id, how, int(backoff_s * 1000), code, sentence, record)
    return Call((*command, *flat(stats or {})), text)


def death_record(code: str = "E_WORKER_DIED") -> tuple[str, str, bytes]:
    """Code, sentence and record of a claim that is buried because its workers died."""
    return code, f"{code}: its worker died each time", orjson.dumps({"state": "dead", "reason": code})


def bury(claim_id: str, code: str, error: str, stats: Mapping[str, int] | None = None) -> Call[bool]:
    """Move a claim to the dead at once. `stats`: the use of its calls."""
    record = orjson.dumps({"state": "dead", "reason": code})
    return Call(("FCALL", "memd_bury_1", 1, P, claim_id, code, error, record, *flat(stats or {})), bool)


def bury_part(claim_id: str, code: str, error: str, identities: Sequence[str]) -> Call[int]:
    """Move some messages of a claim to the dead; the rest stays claimed. Returns how many were moved."""
    record = orjson.dumps({"state": "dead", "reason": code})
    return Call(("FCALL", "memd_part_1", 1, P, claim_id, code, error, record, *identities), int)


# --- flush and receipts --------------------------------------------------------------------------------------------


def flush_page(
    source: str, cursor: str, key_filter: Sequence[str | None], extra: Sequence[str] = ()
) -> Call[tuple[str, list[ReceiptParts]]]:
    """Make one page of keys due now; returns the next cursor ("0": done) and the notes of the keys.

    `source`: keys, user, due, rationed, batched or claimed.
    """

    def parse(reply: list[Any]) -> tuple[str, list[ReceiptParts]]:
        return text(reply[0]), [(text(key), text(gen), int(seq)) for key, gen, seq in reply[1:]]

    selection = orjson.dumps(list(key_filter))
    return Call(("FCALL", "memd_flush_1", 1, P, source, cursor, selection, *extra), parse)


def holds(owner: str, key: str) -> Call[bool]:
    """Whether the inbox knows a key (hash) of this user (hash): pending, claimed, dead, or with a stored outcome."""
    return Call(("SMISMEMBER", f"{P}:user:{owner}", key), lambda reply: bool(reply[0]))


# --- recall --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that was accepted but not extracted yet. `order` grows with the time of the push."""

    bucket: str
    thread_id: str
    identity: str
    order: int
    body: bytes
    project: str
    """The project that it is marked for, or ""."""


def waiting(owner: str, cursor: str, buckets: Sequence[str]) -> Call[tuple[str, list[Waiting]]]:
    """Read pending and claimed messages of a user's buckets: one page of keys, with the next cursor ("0": done).

    A page has about 256 KB of messages at most.
    """

    def parse(reply: list[Any]) -> tuple[str, list[Waiting]]:
        return text(reply[0]), [_waiting(row) for row in reply[1:]]

    return Call(("FCALL", "memd_pending_1", 1, P, owner, cursor, *buckets), parse)


def _waiting(row: list[bytes]) -> Waiting:
    bucket, thread, identity, value = row
    stored = message_value(value)
    _, project = signals_of(stored)
    return Waiting(text(bucket), text(thread), text(identity), stored.order, stored.body, project)


# --- scheduler -----------------------------------------------------------------------------------------------------


def raw_heads(source: str, start: int, count: int, size: int) -> Call[list[bytes]]:
    """Read the oldest pushes of a raw list, from index `start`, without removing them.

    `count` pushes at most, and none after those that together have `size` bytes.
    """
    return Call(("FCALL", "memd_heads_1", 1, source, start, count, size), list)


def now_ms() -> Call[int]:
    """Read the server's clock."""
    return Call(("TIME",), lambda reply: int(reply[0]) * 1000 + int(reply[1]) // 1000)


@dataclass(frozen=True, slots=True)
class Tick:
    """What the scheduler needs each round: keys waiting for a worker, the next due times, and expired claims."""

    now_ms: int
    waiting: int
    next_due_ms: int | None
    next_lease_ms: int | None
    expired: tuple[str, ...]


def beat(number: int) -> Call[int]:
    """Say that a scheduler is alive, even when the server is at its memory limit. `number`: another one each time."""
    return Call(("FCALL", "memd_beat_1", 1, P, number), int)


def tick(grace_ms: int, endpoint: str, limit: int = 100) -> Call[Tick]:
    """Read a `Tick`. Only keys due for `grace_ms` count as waiting: a running drain is faster than a bell."""

    def parse(reply: list[Any]) -> Tick:
        now, waiting, due, lease, *expired = reply
        return Tick(int(now), int(waiting), _moment(due), _moment(lease), tuple(map(text, expired)))

    return Call(("FCALL", "memd_tick_1", 1, P, grace_ms, limit, endpoint), parse)


def _moment(value: int) -> int | None:
    return None if value == -1 else int(value)


def sweep(limit: int = 500) -> Call[int]:
    """Delete expired outcomes; returns how many."""
    return Call(("FCALL", "memd_sweep_1", 1, P, limit), int)


def rebase() -> Call[int]:
    """Correct times that lie too far ahead because the server's clock was set back; returns how many."""
    return Call(("FCALL", "memd_rebase_1", 1, P), int)
