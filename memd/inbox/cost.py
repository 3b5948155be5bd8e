"""Cost: what the model's calls have used, by model, in tokens and money, today and since the inbox began.

Money is tokens times `extraction.prices`, US dollars per million; calls in batches cost half of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any

import redis

from memd.config import PriceSettings, Settings
from memd.inbox.connection import execute
from memd.inbox.figures import counters
from memd.inbox.verbs import P

KINDS = ("input", "output", "cache_read", "cache_write")
BATCH = "batch_"
BATCH_SHARE = 0.5
"""Of the price, for calls by the Message Batches API; its price list halves every kind of token."""

UNATTRIBUTED = "(unknown)"
"""Stands for the model of calls that were counted before the inbox counted them by model."""

MILLION = 1_000_000
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class ModelCost:
    """What one model has used. `batch_calls` are among `calls`, and their tokens among the others; `usd`: None if no
    price is known."""

    model: str
    calls: int
    batch_calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget: tokens per day, and how many of them are used today (None: it is for each user, not counted here)."""

    tokens_per_day: int
    used: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The figures of `memd status --cost`. `day` is UTC's, by the server's clock."""

    day: date
    today: tuple[ModelCost, ...]
    total: tuple[ModelCost, ...]
    budgets: dict[str, Budget]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        return asdict(self)


def read_cost(client: redis.Redis, settings: Settings) -> Cost:
    """Read all figures. Raises InboxUnavailable."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hgetall(f"{P}:stats")
    (seconds, _), stats = execute(pipeline)
    day = seconds // DAY_S
    pipeline.hgetall(f"{P}:usage:{day}")
    pipeline.hget(f"{P}:spent:{day}", ".total")
    usage, spent = execute(pipeline)
    counted = counters(stats)
    used = {name.removeprefix("used:"): count for name, count in counted.items() if name.startswith("used:")}
    prices = settings.extraction.prices
    today = _by_model(counters(usage), prices)
    total = _by_model(used, prices)
    return Cost(
        day=datetime.fromtimestamp(seconds, UTC).date(),
        today=today,
        total=total + _unattributed(counted, total),
        budgets=_budgets(settings, int(spent or 0)),
    )


def _by_model(used: Mapping[str, int], prices: Mapping[str, PriceSettings]) -> tuple[ModelCost, ...]:
    """From "<kind>:<model>" to one row a model; a model's name may hold colons, a kind does not."""
    models: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, count in used.items():
        kind, _, model = name.partition(":")
        models[model][kind] += count
    return tuple(_cost(model, counts, prices.get(model)) for model, counts in sorted(models.items()))


def _cost(model: str, counts: Counter[str], price: PriceSettings | None) -> ModelCost:
    usd = None
    if price is not None:
        paid = (getattr(price, kind) * (counts[kind] + BATCH_SHARE * counts[BATCH + kind]) for kind in KINDS)
        usd = round(sum(paid) / MILLION, 6)
    tokens = {f"{kind}_tokens": counts[kind] + counts[BATCH + kind] for kind in KINDS}
    calls, batch_calls = counts["calls"] + counts[f"{BATCH}calls"], counts[f"{BATCH}calls"]
    return ModelCost(model, calls, batch_calls, **tokens, usd=usd)


def _unattributed(stats: Mapping[str, int], rows: Iterable[ModelCost]) -> tuple[ModelCost, ...]:
    """What the totals have beyond the sum of the models: tokens of an earlier version of memd."""
    rows = tuple(rows)
    names = [f"{kind}_tokens" for kind in KINDS]
    rest = {name: stats.get(name, 0) - sum(getattr(row, name) for row in rows) for name in names}
    if not any(count > 0 for count in rest.values()):
        return ()
    calls = max(0, stats.get("model_calls", 0) - sum(row.calls for row in rows))
    return (ModelCost(UNATTRIBUTED, calls, 0, **rest, usd=None),)


def _budgets(settings: Settings, spent: int) -> dict[str, Budget]:
    wanted = settings.budget
    found = {}
    if wanted.total_tokens_per_day is not None:
        found["total"] = Budget(wanted.total_tokens_per_day, spent)
    if wanted.user_tokens_per_day is not None:
        found["user"] = Budget(wanted.user_tokens_per_day, None)
    return found
