"""The dead: contexts and raw pushes that failed for good, kept to be viewed, retried or discarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import orjson
import redis

from memd.config import Settings
from memd.errors import Rejected
from memd.inbox.claim import read_claim
from memd.inbox.connection import Call, execute, execute_past, send
from memd.inbox.decoding import message_value, text
from memd.inbox.raw_door import parsed
from memd.inbox.verbs import P

PAGE = 500
"""Letters that one call reads or moves."""

MAX_LIMIT = 500
LOOKED_AT = 1_000
"""Letters of which a page looks at the code, and those that it passes over for others that are selected."""

_FIELDS = (".code", ".error", ".died", ".attempts", ".thread", ".user", ".agent", ".owner", ".bucket", ".origin")


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. `origin`: the raw list of a push that was never taken in; its letter has no ids."""

    id: str
    code: str
    error: str
    died_at: datetime
    attempts: int
    thread_id: str | None
    user_id: str | None
    agent_name: str | None
    origin: str | None
    owner: str
    bucket: str


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a letter: its messages, oldest first, or the raw push, with bytes that are not UTF-8 escaped."""

    letter: Letter
    messages: tuple[dict[str, Any], ...]
    raw: str | None


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Selects letters: by ids, or by code, user or both. The default selects all."""

    ids: tuple[str, ...] = ()
    code: str | None = None
    user_id: str | None = None

    def holds(self, letter: Letter) -> bool:
        """Whether the code and the user select this letter."""
        return self.selects(letter.code, letter.user_id)

    def selects(self, code: str, user_id: str | None) -> bool:
        """Whether a letter with this code, of this user, is selected."""
        return self.code in (None, code) and self.user_id in (None, user_id)


EVERY = LetterFilter()


@dataclass(frozen=True, slots=True)
class LetterPage:
    """One page of letters, the newest first; `next` is the cursor of the next one, empty on the last.

    `total`: of all letters, whatever is selected. `codes`: the letters by code, the most frequent first, among the
    newest `looked_at`.
    """

    letters: tuple[Letter, ...]
    next: str
    total: int
    codes: dict[str, int]
    looked_at: int


def letters(client: redis.Redis, selection: LetterFilter = EVERY) -> Iterator[Letter]:
    """The selected letters, read page by page, in no order. Raises InboxUnavailable."""
    for page in _pages(client, selection):
        yield from (letter for letter in _read(client, page) if letter is not None and selection.holds(letter))


def _read(client: redis.Redis, ids: Sequence[str]) -> list[Letter | None]:
    """The letters with these ids; None for one that is gone."""
    pipeline = client.pipeline(transaction=False)
    for letter_id in ids:
        pipeline.hmget(f"{P}:dead:{letter_id}", *_FIELDS)
    rows = zip(ids, execute_past(pipeline), strict=True)
    return [_letter(letter_id, row) if row and row[2] is not None else None for letter_id, row in rows]


def letter_page(
    client: redis.Redis,
    selection: LetterFilter = EVERY,
    *,
    after: str = "",
    limit: int = 50,
) -> LetterPage:
    """A page of the selected letters, in bounded time however many there are.

    `after`: `next` of the page before; `limit`: 1 to 500. Where few are selected a page may be short, or empty, and
    still have a `next`. Raises Rejected, InboxUnavailable.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Rejected("E_LIMIT", f"limit is 1 to {MAX_LIMIT}", "limit", MAX_LIMIT)
    if after and not (after.isascii() and after.isdecimal() and len(after) <= 15):
        raise Rejected("E_CURSOR", "the cursor is none that a page returned", "after")
    start = int(after or 0)
    pipeline = client.pipeline(transaction=False)
    pipeline.zcard(f"{P}:dead")
    for first in (0, start) if start else (0,):
        pipeline.zrange(f"{P}:dead", -first - LOOKED_AT, -first - 1)
    total, *rows = execute(pipeline)
    newest, *later = [_marks(client, [text(letter_id) for letter_id in reversed(row)]) for row in rows]
    passed = 0
    chosen: list[str] = []
    for letter_id, code, user in later[0] if later else newest:
        if len(chosen) == limit:
            break
        passed += 1
        if code is not None and selection.selects(code, user):
            chosen.append(letter_id)
    codes = Counter(code for _, code, _ in newest if code is not None)
    return LetterPage(
        letters=tuple(letter for letter in _read(client, chosen) if letter is not None),
        next=str(start + passed) if start + passed < total else "",
        total=total,
        codes=dict(codes.most_common()),
        looked_at=len(newest),
    )


def _marks(client: redis.Redis, ids: Sequence[str]) -> list[tuple[str, str | None, str | None]]:
    """Id, code and user of each of these letters; without a code it is gone."""
    pipeline = client.pipeline(transaction=False)
    for letter_id in ids:
        pipeline.hmget(f"{P}:dead:{letter_id}", ".code", ".user")
    rows = [row or (None, None) for row in (execute_past(pipeline) if ids else ())]
    return [(letter_id, _text(code), _text(user)) for letter_id, (code, user) in zip(ids, rows, strict=True)]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def content(client: redis.Redis, letter_id: str) -> Content | None:
    """One letter with its content; None when there is no such letter."""
    pipeline = client.pipeline(transaction=False)
    pipeline.hgetall(f"{P}:dead:{letter_id}")
    fields: dict[bytes, bytes] = execute(pipeline)[0]
    if b".died" not in fields:
        return None
    stored = sorted(message_value(value) for name, value in fields.items() if name.startswith(b"m:"))
    letter = _letter(letter_id, [fields.get(name.encode()) for name in _FIELDS])
    raw = fields.get(b".raw")
    return Content(
        letter,
        tuple(_message(message.body) for message in stored),
        raw.decode(errors="backslashreplace") if raw is not None else None,
    )


def retry(client: redis.Redis, settings: Settings, letters: Iterable[Letter]) -> int:
    """Make letters pending again, each message in its old place; returns how many letters were moved.

    A letter stays if a worker would refuse all of its messages again, or the raw door the push.
    """
    return _move(client, (letter for letter in letters if not _is_refused(client, settings, letter)), _retry_page)


def drop(client: redis.Redis, letters: Iterable[Letter]) -> int:
    """Discard letters for good; returns how many were still there."""
    return _move(client, letters, _drop_page)


def _retry_page(letters: Sequence[str]) -> Call[int]:
    """Make letters pending again, in their old places; returns how many there were."""
    return Call(("FCALL", "memd_retry_1", 1, P, *letters), int)


def _drop_page(letters: Sequence[str]) -> Call[int]:
    """Discard letters; returns how many there were."""
    return Call(("FCALL", "memd_drop_1", 1, P, *letters), int)


def _is_refused(client: redis.Redis, settings: Settings, letter: Letter) -> bool:
    """Whether a letter whose content broke the format still breaks it; settings may have changed since."""
    if not letter.code.startswith("E_"):
        return False
    pipeline = client.pipeline(transaction=False)
    pipeline.hgetall(f"{P}:dead:{letter.id}")
    fields: dict[bytes, bytes] = execute(pipeline)[0]
    if letter.origin is not None:
        return b".raw" in fields and _is_refused_raw(fields[b".raw"], letter.origin, settings)
    flat = [part for pair in fields.items() for part in pair]
    return bool(flat) and read_claim(settings, [letter.id, flat]).bad is not None


def _is_refused_raw(raw: bytes, origin: str, settings: Settings) -> bool:
    try:
        parsed(raw, origin, settings)
    except Rejected:
        return True
    return False


def _move(client: redis.Redis, letters: Iterable[Letter], verb: Any) -> int:
    moved = 0
    ids = iter([letter.id for letter in letters])
    while page := list(islice(ids, PAGE)):
        call: Call[int] = verb(page)
        moved += send(client, call)
    return moved


def _pages(client: redis.Redis, selection: LetterFilter) -> Iterator[list[str]]:
    if selection.ids:
        yield list(selection.ids)
        return
    cursor = 0
    while True:
        pipeline = client.pipeline(transaction=False)
        pipeline.zscan(f"{P}:dead", cursor, count=PAGE)
        after, rows = execute(pipeline)[0]
        if rows:
            yield [text(letter_id) for letter_id, _ in rows]
        cursor = int(after)
        if cursor == 0:
            return


def _letter(letter_id: str, row: list[bytes | None]) -> Letter:
    code, error, died, attempts, thread, user, agent, owner, bucket, origin = (_text(value) for value in row)
    return Letter(
        id=letter_id,
        code=code or "",
        error=error or "",
        died_at=datetime.fromtimestamp(int(died or 0) / 1000, UTC),
        attempts=int(attempts or 0),
        thread_id=thread,
        user_id=user,
        agent_name=agent,
        origin=origin,
        owner=owner or "",
        bucket=bucket or "",
    )


def _message(body: bytes) -> dict[str, Any]:
    try:
        message: dict[str, Any] = orjson.loads(body)
    except orjson.JSONDecodeError:  # malformed by a trusted client; shown as it came
        return {"role": "?", "content": body.decode(errors="backslashreplace")}
    return message
