"""Histograms among the counters of the inbox: how long keys waited, calls of the model and commits took.

An observation is two counters that travel with a move of the inbox which is made anyway, so workers that live for a
minute lose none, and no process serves figures of its own. `lua/waits.lua` counts the waits in the same way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

Duration = Literal["wait", "extraction", "commit"]

DURATIONS: dict[Duration, str] = {
    "wait": "From the first push in a claim until a worker claimed it for the first time",
    "extraction": "Calls of the model, those that failed too",
    "commit": "Commits of a document until it is durable, with their waits for locks",
}

BOUNDS_MS = (
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 45_000, 60_000, 120_000, 300_000, 900_000,
    3_600_000,
)  # fmt: skip
"""The upper bounds of all histograms; a new one begins at zero on a server that has counted without it."""

MORE = "more"


@dataclass(frozen=True, slots=True)
class Histogram:
    """One histogram, as Prometheus counts: `counts` has a row for each bound, with all that took at most so long.

    `total`: all observations. `seconds`: their sum.
    """

    counts: tuple[tuple[float, int], ...]
    total: int
    seconds: float


def observed(duration: Duration, seconds: float) -> dict[str, int]:
    """The counters of one observation."""
    ms = max(0, round(seconds * 1000))
    place = bisect_left(BOUNDS_MS, ms)
    bound = BOUNDS_MS[place] if place < len(BOUNDS_MS) else MORE
    return {f"took:{duration}:{bound}": 1, f"took:{duration}:ms": ms}


def read_histograms(stats: Mapping[str, int]) -> dict[Duration, Histogram]:
    """All histograms of the inbox's counters."""
    return {duration: _read(f"took:{duration}:", stats) for duration in DURATIONS}


def _read(prefix: str, stats: Mapping[str, int]) -> Histogram:
    rows = tuple(_rows(prefix, stats))
    total = (rows[-1][1] if rows else 0) + stats.get(prefix + MORE, 0)
    return Histogram(rows, total, stats.get(f"{prefix}ms", 0) / 1000)


def _rows(prefix: str, stats: Mapping[str, int]) -> Iterator[tuple[float, int]]:
    sums = accumulate(stats.get(f"{prefix}{bound}", 0) for bound in BOUNDS_MS)
    return ((bound / 1000, count) for bound, count in zip(BOUNDS_MS, sums, strict=True))
