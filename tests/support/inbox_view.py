"""A server's inbox at one moment: every key, the invariants, and a clock that tests can move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import orjson
import redis
from msgspec.structs import replace

from memd.context import Message, estimate_tokens
from memd.inbox.verbs import P
from support import execute

DUMP = """
local read = { hash = 'HGETALL', string = 'GET', set = 'SMEMBERS' }
local rows = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif read[kind] then value = redis.call(read[kind], key) end
  if value then rows[#rows + 1] = { key, kind, value } end -- RQ keeps streams, too
end
return rows
"""

LINE = "line:"

# Moves every stored time into the past: the same as if the server's clock had advanced by ARGV[1] ms.
ADVANCE = """
local by = tonumber(ARGV[1])
local moments = { '.first', '.last', '.after', 'until', 'opened', 'probe_until', '.made' }
for _, key in ipairs(redis.call('KEYS', '{memd}:*')) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'zset' and not string.find(key, ':parked:line:', 1, true) then -- a line has no times
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -by, member) end
  elseif kind == 'hash' then
    for _, name in ipairs(moments) do
      if redis.call('HEXISTS', key, name) == 1 then redis.call('HINCRBY', key, name, -by) end
    end
  end
  if kind == 'list' and string.find(key, ':extracted:', 1, true) then
    for i, at in ipairs(redis.call('LRANGE', key, 0, -1)) do redis.call('LSET', key, i - 1, at - by) end
  end
  if key == '{memd}:hours' then
    for i, entry in ipairs(redis.call('LRANGE', key, 0, -1)) do
      local hour, counters = string.match(entry, '^(%d+)(.*)$')
      local moved = string.format('%.0f', hour - math.floor(by / 3600000))
      if hour ~= '0' then redis.call('LSET', key, i - 1, moved .. counters) end
    end
  end
  local ttl = redis.call('PTTL', key)
  if ttl > 0 then redis.call('PEXPIRE', key, ttl - by) end
end
"""


def advance(client: redis.Redis, by_ms: int) -> None:
    """Let time pass for the inbox without waiting for it."""
    execute(client, "EVAL", ADVANCE, 0, by_ms)


def look(client: redis.Redis) -> View:
    """All keys at one moment."""
    rows = execute(client, "EVAL", DUMP, 0)
    return View({_text(key).removeprefix(f"{P}:"): _value(_text(kind), value) for key, kind, value in rows})


@dataclass(frozen=True)
class View:
    """Keys by their names without the prefix: hashes and zsets as dicts, sets as sets, lists as lists."""

    keys: dict[str, Any]

    def hash(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.keys.get(name, {})
        return found

    def zset(self, name: str) -> dict[str, float]:
        found: dict[str, float] = self.keys.get(name, {})
        return found

    def family(self, kind: str) -> dict[str, Any]:
        """The keys `<kind>:<name>` by name."""
        named = ((name.partition(":"), value) for name, value in self.keys.items())
        return {rest: value for (first, _, rest), value in named if first == kind and rest}

    @cached_property
    def pending(self) -> dict[str, dict[str, str]]:
        return self.family("ctx")

    @cached_property
    def claims(self) -> dict[str, dict[str, str]]:
        return self.family("claim")

    @cached_property
    def parked(self) -> dict[str, dict[str, float]]:
        return {bucket: row for bucket, row in self.family("parked").items() if not bucket.startswith(LINE)}

    @cached_property
    def lines(self) -> dict[str, dict[str, float]]:
        """The line of each bucket: its pending keys by the order of their newest message."""
        named = ((name.removeprefix(LINE), row) for name, row in self.family("parked").items() if name.startswith(LINE))
        return dict(named)

    def due(self, key_hash: str) -> float:
        """The due time of a pending key in any state."""
        row = self.parked.get(self.pending[key_hash][".bucket"], {})
        return row[key_hash] if key_hash in row else self.zset("due")[key_hash]

    @property
    def names(self) -> set[str]:
        """The kinds of keys in use."""
        return {name.split(":", 1)[0] for name in self.keys}


def messages(fields: dict[str, str]) -> tuple[Message, ...]:
    """The messages of a context, a claim or a dead letter, in order of arrival."""
    rows = sorted((order, name[2:], value) for order, (name, value) in zip(_orders(fields), _rows(fields), strict=True))
    return tuple(_message(identity, value) for _, identity, value in rows)


def check(view: View, now_ms: int) -> None:
    """Check the invariants, which hold at any moment."""
    _check_places(view)
    _check_lines(view)
    _check_parked_keys_wait_for_something(view, now_ms)
    _check_one_writer(view)
    _check_sizes(view)
    _check_users(view)
    _check_dead(view)
    assert len(view.keys.get("wake", ())) <= 1


def _check_places(view: View) -> None:
    """Every pending key is in exactly one of due, parked, rationed and batched, and names it."""
    due = view.zset("due")
    parked = {(bucket, key) for bucket, row in view.parked.items() for key in row}
    assert parked == {(f[".bucket"], key) for key, f in view.pending.items() if f.get(".parked") == "1"}
    for row in ("rationed", "batched"):
        assert view.zset(row).keys() == {key for key, fields in view.pending.items() if fields.get(".parked") == row}
    assert due.keys() == {key for key, fields in view.pending.items() if ".parked" not in fields}


def _check_lines(view: View) -> None:
    """A pending key stands in the line of its bucket, at the order of its newest message; nothing else does.

    Only a user's one key may be missing.
    """
    places = {(f[".bucket"], key): float(max(_orders(f))) for key, f in view.pending.items()}
    lines = {(bucket, key): place for bucket, line in view.lines.items() for key, place in line.items()}
    keys_of = view.family("user")
    alone = {(f[".bucket"], key) for key, f in view.pending.items() if keys_of[f[".owner"]] == {key}}
    assert lines.items() <= places.items()
    assert places.keys() - lines.keys() <= alone


def _orders(fields: dict[str, str]) -> list[int]:
    return [int(value.split(" ", 1)[0]) for _, value in _rows(fields)]


def _check_parked_keys_wait_for_something(view: View, now_ms: int) -> None:
    """Parked keys wait for a claim, or for a claimable key that will bring the next one back."""
    ready = {view.pending[key][".bucket"] for key, due in view.zset("due").items() if due <= now_ms}
    assert view.parked.keys() <= view.hash("busy").keys() | ready


def _check_one_writer(view: View) -> None:
    """A busy bucket has one claim and a claim one busy bucket; each has a lease, and its key names the worker."""
    assert view.hash("busy") == {fields[".bucket"]: claim for claim, fields in view.claims.items()}
    assert len(view.hash("busy")) == len(view.claims)
    assert view.zset("claimed").keys() == view.claims.keys()
    held = {fields[".key"]: claim for claim, fields in view.claims.items()}
    told = {key: outcome[".claim"] for key, outcome in view.family("outcome").items() if ".claim" in outcome}
    assert held == told


def _check_sizes(view: View) -> None:
    """A pending key has messages, and its size is their size; the size for flush_tokens is a part of it."""
    for fields in view.pending.values():
        waiting = messages(fields)
        assert waiting
        assert int(fields[".size"]) == sum(estimate_tokens(message.content) for message in waiting)
        assert 0 <= int(fields[".tokens"]) <= int(fields[".size"])


def _check_users(view: View) -> None:
    """All keys of a user can be found by the user."""
    there = [(fields[".owner"], key) for key, fields in view.pending.items()]
    there += [(fields[".owner"], fields[".key"]) for fields in view.claims.values()]
    outcomes = view.family("outcome")
    there += [(fields[".owner"], key) for key, fields in outcomes.items() if ".owner" in fields]
    never_claimed = {key for key, fields in outcomes.items() if ".owner" not in fields}
    assert never_claimed <= view.pending.keys()
    found = [(owner, key) for owner, keys in view.family("user").items() for key in keys]
    assert set(there) == set(found)


def _check_dead(view: View) -> None:
    """Dead letters are listed, and the identities in them are remembered."""
    letters = view.family("dead")
    assert letters.keys() == view.zset("dead").keys()
    remembered = {(key, identity) for key, died in view.family("died").items() for identity in died}
    kept = {(fields[".key"], name[2:]) for fields in letters.values() for name, _ in _rows(fields)}
    assert remembered == kept


def _rows(fields: dict[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in fields.items() if name.startswith("m:"))


def _message(identity: str, value: str) -> Message:
    _order, _seq, _tokens_and_time, signals, body = value.split(" ", 4)
    turn = orjson.loads(body)
    names, _, mark = signals.partition("#")
    named = frozenset() if names == "-" else frozenset(names.split(","))
    message = Message(turn["role"], turn["content"], turn.get("id"), turn.get("created_at"), named, identity)
    return replace(message, project=unquote(mark))


def _value(kind: str, value: Any) -> Any:
    if kind == "string":
        return _text(value)
    texts = [_text(part) for part in value]
    if kind == "list":
        return texts
    if kind == "set":
        return set(texts)
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return {name: float(score) for name, score in pairs} if kind == "zset" else dict(pairs)


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")
