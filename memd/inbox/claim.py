"""Claims: one attempt at one key by one worker, checked before any work on it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from memd.config import Settings
from memd.context import Key, Message, identity_of_id, user_hash
from memd.errors import Rejected
from memd.identifiers import check_identifier
from memd.inbox.decoding import message_value, moment, signals_of, text
from memd.push.times import iso, said_at
from memd.push.trace_parent import is_trace
from memd.push.validation import check_name, check_project, parse_wire_message

_IDENTITY_WITHOUT_ID = re.compile("n[0-9a-f]{36}")


@dataclass(frozen=True, slots=True)
class PaidAnswer:
    """The packed answer of the model for a claim's messages, with the fingerprint of the request.

    It comes from a batch, or from an earlier attempt that could not be stored.
    """

    fingerprint: str
    raw: bytes


class ServerClock(NamedTuple):
    """The server's clock: it said `ms` when this host's monotonic clock was at `at`."""

    ms: int
    at: float

    def now(self) -> datetime:
        """What it says now."""
        return moment(self.ms + (time.monotonic() - self.at) * 1000)


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt at one key by one worker: its lease is extended while the worker lives."""

    id: str
    key: Key
    messages: tuple[Message, ...]
    attempts: int
    delays: int
    first: int
    last: int
    suspect: bool = False
    """Its lease expired before: it may have killed its worker, so it is processed alone."""

    user_names: tuple[str, ...] = ()
    """What its pushes said the user is called, the newest last. The user's own messages have no `name`."""

    urgent: bool = False
    """It was pushed with `now` or flushed."""

    traces: tuple[str, ...] = ()
    """The traces of its pushes (`traceparent`), the newest last; only the last ones of many."""

    answer: PaidAnswer | None = None
    """An answer that is already paid for."""

    formless: Mapping[str, int] = field(default_factory=dict)
    """How many replies were no update, by identity of the messages that were asked about; see `workers.replies`."""

    bad: str | None = None
    """The code with which the drain buries the whole claim without processing it."""

    refused: tuple[tuple[str, str], ...] = ()
    """Identity and code of each message that the drain buries; the other messages are processed."""

    clock: ServerClock | None = field(default=None, compare=False)
    """The server's clock, which all times come from that the claim brings into documents; None without a server."""

    @property
    def now(self) -> datetime:
        """The time by the server's clock, the same for all hosts."""
        return self.clock.now() if self.clock else datetime.now(UTC)

    @property
    def user_name(self) -> str:
        """What the user is called, by the newest push that said so; "" when none did."""
        return self.user_names[-1] if self.user_names else ""

    @property
    def came_back(self) -> bool:
        """Whether an earlier attempt ended without an ack, so that the document may already contain its messages."""
        return self.suspect or self.attempts > 0 or self.delays > 0


@dataclass(frozen=True, slots=True)
class Claims:
    """The result of a claim call: the claims taken, and when the next key is due."""

    now_ms: int
    next_due_ms: int | None
    suspects: int
    breaker: str
    """Of the model endpoint: closed, open, probing, or half-open (then what was taken is the probe)."""

    taken: tuple[Claim, ...]


def read_claim(settings: Settings, row: list[Any], clock: ServerClock | None = None) -> Claim:
    """Build a claim from a row of `memd_claim`. Bad content is reported in `bad` and `refused`, never raised."""
    claim_id, flat = row
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    key, bad = _key(fields)
    user_names, wrong = _user_names(fields)
    messages: list[Message] = []
    refused: list[tuple[str, str]] = []
    for name, value in fields.items():
        if not name.startswith(b"m:"):
            continue
        try:
            messages.append(_message(settings, key.thread_id, name, value))
        except Rejected as error:  # this message goes to the dead with its bytes unchanged
            refused.append((text(name[2:]), error.code))
        except (ValueError, OverflowError):  # the inbox's own part of the value: no function of ours wrote it so
            refused.append((name[2:].decode(errors="replace"), "E_MESSAGE_TYPE"))
    messages.sort(key=lambda message: message.order)
    if refused and not messages:
        bad = bad or refused[0][1]
    return Claim(
        id=text(claim_id),
        key=key,
        messages=tuple(map(unnamed({key.user_id, *user_names}), messages)),
        attempts=int(fields.get(b".attempts", 0)),
        delays=int(fields.get(b".delays", 0)),
        first=int(fields[b".from"]),
        last=int(fields[b".to"]),
        suspect=b".suspect" in fields,
        user_names=user_names,
        urgent=b".urgent" in fields,
        traces=tuple(filter(is_trace, text(fields.get(b".traces", b"")).split())),
        answer=PaidAnswer(text(fields[b".print"]), fields[b".answer"]) if b".answer" in fields else None,
        formless=orjson.loads(fields.get(b".formless", b"{}")),
        bad=bad or wrong,
        refused=tuple(refused),
        clock=clock,
    )


def _key(fields: dict[bytes, bytes]) -> tuple[Key, str | None]:
    """The key of a claim, checked against the hashes in the header: a trusted client can be wrong."""
    try:
        key = Key(
            check_identifier("thread_id", text(fields[b".thread"])),
            check_identifier("user_id", text(fields[b".user"])),
            check_identifier("agent_name", text(fields[b".agent"])) if fields[b".agent"] else "",
        )
    except (Rejected, UnicodeDecodeError, KeyError) as error:  # buried by the drain with this code
        return Key("", "", ""), error.code if isinstance(error, Rejected) else "E_HEADER_IDS"
    computed = (key.hash, key.bucket.hash, user_hash(key.user_id))
    received = tuple(text(fields[name]) for name in (b".key", b".bucket", b".owner"))
    return key, None if computed == received else "E_HEADER_HASH"


def _user_names(fields: dict[bytes, bytes]) -> tuple[tuple[str, ...], str | None]:
    """The names of a claim's user, or the code for what a trusted client sent instead."""
    try:
        names = text(fields.get(b".user_names", b"")).split("\n")
        return tuple(name for name in names if check_name("user_name", name)), None
    except (Rejected, UnicodeDecodeError) as error:  # buried by the drain with this code
        return (), error.code if isinstance(error, Rejected) else "E_USER_NAME"


def _message(settings: Settings, thread_id: str, name: bytes, value: bytes) -> Message:
    """The message of one field of a claim. Raises Rejected."""
    stored = message_value(value)
    message = parse_wire_message(stored.body, settings.client)
    names, mark = signals_of(stored)
    identity = text(name[2:])
    _check_identity(identity, thread_id, message.id)
    arrival = datetime.now(UTC) if stored.at_ms is None else moment(stored.at_ms)
    message = replace(message, signals=names, identity=identity, project=check_project(mark))
    return taken_in(message, arrival, stored.order)


def taken_in(message: Message, arrival: datetime, order: int) -> Message:
    """A message as a claim has it: with its arrival, when it was said, and its place in the inbox's order."""
    said = said_at(message.created_at, arrival)
    return replace(message, at=iso(arrival), said_at=iso(said), order=order)


def unnamed(names: Container[str]) -> Callable[[Message], Message]:
    """Removes the name from the user's own messages: without one, or with one of these names, a turn is the user's."""

    def without(message: Message) -> Message:
        own = message.role == "user" and message.name is not None and message.name in names
        return replace(message, name=None) if own else message

    return without


def _check_identity(identity: str, thread_id: str, message_id: str | None) -> None:
    """Check an identity that a trusted client computed. Raises Rejected.

    An identity from a message id is computed again. The others depend on the previous message, which may be stored
    already, so only their form is checked. The hash has each identity at most once.
    """
    if message_id is not None:
        honest = identity == identity_of_id(thread_id, message_id)
    else:
        honest = _IDENTITY_WITHOUT_ID.fullmatch(identity) is not None
    if not honest:
        raise Rejected("E_IDENTITY", "the identity is not the message's: docs/wire.md says how it is made")
