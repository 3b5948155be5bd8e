"""Status: the inbox, the workers and the server in figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import redis

from memd.config import Settings
from memd.inbox import server_check
from memd.inbox.figures import read_figures
from memd.inbox.verbs import raw_lists

USAGE = ("model_calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "unused_answers")


@dataclass(frozen=True, slots=True)
class Status:
    """The figures of `memd status`. Counts are of keys; `stored`, `skipped`, `dead_so_far` are of pushes."""

    pending: int
    due: int
    parked: int
    batched: int
    batches: int
    """`batched`: pending keys that wait for the answer of a batch; `batches`: batches in flight."""

    rationed: int
    rationed_until: datetime | None
    """`rationed`: pending keys that wait for a budget of tokens; `rationed_until`: when the last wait ends."""

    claimed: int
    dead: int
    raw: dict[str, int]
    raw_letters: dict[str, int]
    """Dead letters of raw pushes by list, of those lists that have any."""

    discarded: dict[str, int]
    """Letters of raw pushes that were discarded by cap or age, by list, so far."""

    unread: tuple[str, ...]
    """Raw lists that producers push to but no scheduler reads, because `client.apps` does not name their apps."""

    pushes: int
    stored: int
    skipped: int
    dead_so_far: int
    by_reason: dict[str, int]
    dropped: dict[str, int]
    refused: dict[str, int]
    redacted: dict[str, int]
    facts: dict[str, int]
    usage: dict[str, int]
    oldest_waiting_s: float | None
    paused: tuple[dict[str, Any], ...]
    """Model endpoints whose breaker is open: the code, how long it has been open, and seconds until the next try."""

    workers: tuple[dict[str, str], ...]
    waiting_parts: tuple[str, ...]
    """Parts of `memd up` that cannot start and are tried again, as "<part> on <host>"; its log says why."""

    server: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        return asdict(self)


def read_status(client: redis.Redis, settings: Settings) -> Status:
    """Read all figures. Raises InboxUnavailable."""
    server = server_check.examine(client)
    figures = read_figures(client, raw_lists(settings))
    stats = figures.stats
    return Status(
        pending=figures.pending,
        due=figures.due,
        parked=figures.parked,
        batched=figures.batched,
        batches=figures.batches,
        rationed=figures.rationed,
        rationed_until=figures.rationed_until,
        claimed=figures.claimed,
        dead=figures.dead,
        raw=figures.raw,
        raw_letters=figures.raw_letters,
        discarded=_named(stats, "discarded:"),
        unread=figures.unread,
        pushes=stats.get("pushes", 0),
        stored=stats.get("stored", 0),
        skipped=stats.get("skipped", 0),
        dead_so_far=stats.get("dead", 0),
        by_reason=_named(stats, "skipped:") | _named(stats, "dead:"),
        dropped=_named(stats, "dropped:"),
        refused=_named(stats, "refused:"),
        redacted=_named(stats, "redacted:"),
        facts={name: stats.get(f"facts_{name}", 0) for name in ("added", "confirmed", "retired")},
        usage={name: stats.get(name, 0) for name in USAGE},
        oldest_waiting_s=figures.oldest_waiting_s,
        paused=figures.breakers,
        workers=figures.workers,
        waiting_parts=figures.waiting_parts,
        server={"version": server.version, "durability": server.durability, "unfit": list(server.problems)},
    )


def _named(stats: dict[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): count for name, count in sorted(stats.items()) if name.startswith(prefix)}
