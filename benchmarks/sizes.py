"""The sizes of a run: `tiny` shows that all runs, `brief` is `make bench-short`, `short` and `full` are the others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """The sizes of one run. Counts are of operations, times of seconds."""

    name: str
    rounds: int
    """Turns of each contestant; the median counts."""

    pushes: int
    """Pushes of one turn, with 0.5 KB messages."""

    pending: tuple[int, ...]
    """Pending keys at which growth is measured."""

    due_s: float
    """Seconds for which keys fall due in the debounce measurements."""

    idle_s: float
    idle_shots: int
    contexts: int
    """Contexts of one drain."""

    slow_calls: int
    """Model calls at a latency of 2 s."""

    extractions: int
    """Conversations of each contender that can have 256 in flight."""

    rq_workers: tuple[int, ...]
    """Workers of RQ's pools with a model; each takes some 30 MB."""

    starts: int
    concurrencies: tuple[int, ...]
    """Contexts after which the memory of a worker is measured."""

    facts: tuple[int, ...]
    """Facts of a memory at which the growth of its cost is measured."""

    users: tuple[int, ...]
    """Users on disk at which it is measured."""


TINY = Size("tiny", 1, 20, (50, 100), 0.5, 0.5, 1, 16, 8, 8, (2,), 1, (1, 4), (5, 10, 20), (10, 20))
FACTS = (10, 100, 500)

SHORT = Size(
    "short", 3, 400, (1_000, 10_000, 100_000), 3, 5, 6, 800, 1_536, 512, (4, 32), 4, (1, 32, 256), FACTS,
    (1_000, 10_000),
)  # fmt: skip
FULL = Size(
    "full", 7, 3_000, (1_000, 10_000, 100_000, 1_000_000), 20, 30, 30, 6_000, 2_048, 1_024, (4, 32), 15, (1, 32, 256),
    FACTS, (1_000, 10_000, 100_000),
)  # fmt: skip

BRIEF = Size("brief", 3, 120, (1_000,), 1, 1, 1, 100, 32, 16, (2,), 3, (1,), (10,), (200,))

SIZES = {size.name: size for size in (TINY, BRIEF, SHORT, FULL)}
