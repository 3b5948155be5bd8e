"""Status: the inbox, the workers and the server in figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import redis

from memd.config import Settings
from memd.inbox import server_check
from memd.inbox.connection import execute, primary
from memd.inbox.figures import InboxFigures, read_figures
from memd.inbox.histograms import Duration, Histogram, read_histograms
from memd.inbox.model_calls import ModelCalls, read_model_calls
from memd.inbox.verbs import P, raw_lists

USAGE = ("model_calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "unused_answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(InboxFigures):
    """The figures of `memd status`. `pushes`, `stored`, `skipped` and `dead_so_far` count pushes."""

    discarded: dict[str, int]
    """Dead letters of raw pushes that cap or age has discarded so far, by list."""

    pushes: int
    stored: int
    skipped: int
    dead_so_far: int
    by_reason: dict[str, int]
    dropped: dict[str, int]
    cut: dict[str, int]
    refused: dict[str, int]
    redacted: dict[str, int]
    not_kept: dict[str, int]
    """Messages of stored pushes that their users asked not to keep, with the replies to them, by reason."""

    mended: dict[str, int]
    """Repairs of the form of the model's replies, by kind."""

    facts: dict[str, int]
    events_lost: int
    """Events for apps that could not be written."""

    durations: dict[Duration, Histogram]
    models: dict[str, ModelCalls]
    usage: dict[str, int]
    server: dict[str, Any]
    wire: int
    """The version of the wire format that the inbox takes (docs/wire.md)."""

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        return asdict(self)


def read_status(client: redis.Redis, settings: Settings) -> Status:
    """Read all figures. Raises InboxUnavailable."""
    server = server_check.examine(client)
    figures = read_figures(client, raw_lists(settings))
    pipeline = client.pipeline(transaction=False)
    pipeline.hget(f"{P}:config", "wire")
    stats = figures.stats
    return Status(
        **{field.name: getattr(figures, field.name) for field in fields(InboxFigures)},
        discarded=_named(stats, "discarded:"),
        pushes=stats.get("pushes", 0),
        stored=stats.get("stored", 0),
        skipped=stats.get("skipped", 0),
        dead_so_far=stats.get("dead", 0),
        by_reason=_named(stats, "skipped:") | _named(stats, "dead:"),
        dropped=_named(stats, "dropped:"),
        cut=_named(stats, "cut:"),
        refused=_named(stats, "refused:"),
        redacted=_named(stats, "redacted:"),
        not_kept=_named(stats, "not_kept:"),
        mended=_named(stats, "mended:"),
        facts={name: stats.get(f"facts_{name}", 0) for name in ("added", "confirmed", "retired")},
        events_lost=stats.get("events_lost", 0),
        durations=read_histograms(stats),
        models=read_model_calls(stats),
        usage={name: stats.get(name, 0) for name in USAGE},
        server={
            "version": server.version,
            "durability": server.durability,
            "unfit": list(server.problems),
            "primary": primary(client),
            "replicas": [asdict(replica) for replica in server.replicas],
        },
        wire=int(execute(pipeline)[0] or 1),
    )


def _named(stats: dict[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): count for name, count in sorted(stats.items()) if name.startswith(prefix)}
