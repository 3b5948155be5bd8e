"""Cost: tokens and money that the calls of each model used, today and since the inbox began.

Money is tokens times `extraction.prices` (US dollars per million). Calls in batches cost half.
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
"""Share of the price that the Message Batches API charges: its price list halves every kind of token."""

UNATTRIBUTED = "(unknown)"
"""The model shown for calls that were counted before the inbox counted by model."""

MILLION = 1_000_000
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class ModelCost:
    """The use of one model. `calls` and tokens include the batched ones; `usd` is None if no price is known."""

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
    """One budget. `used`: tokens used today; None for the budget per user, which is not counted here."""

    tokens_per_day: int
    used: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The figures of `memd status --cost`. `day`: in UTC, by the server's clock."""

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
    """Group "<kind>:<model>" counters by model. A model's name may contain colons, a kind does not."""
    models: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, count in used.items():
        kind, _, model = name.partition(":")
        models[model][kind] += count
    return tuple(_cost(model, counts, prices.get(model)) for model, counts in sorted(models.items()))


def _cost(model: str, counts: Counter[str], price: PriceSettings | None) -> ModelCost:
    usd = None if price is None else usd_of(counts, price)
    tokens = {f"{kind}_tokens": counts[kind] + counts[BATCH + kind] for kind in KINDS}
    calls, batch_calls = counts["calls"] + counts[f"{BATCH}calls"], counts[f"{BATCH}calls"]
    return ModelCost(model, calls, batch_calls, **tokens, usd=usd)


def usd_of(counts: Mapping[str, int], price: PriceSettings) -> float:
    """The price of the tokens of each of KINDS, and of those in batches (`batch_input` ...)."""
    paid: float = sum(
        getattr(price, kind) * (counts.get(kind, 0) + BATCH_SHARE * counts.get(BATCH + kind, 0)) for kind in KINDS
    )
    return round(paid / MILLION, 6)


def _unattributed(stats: Mapping[str, int], rows: Iterable[ModelCost]) -> tuple[ModelCost, ...]:
    """The part of the totals that no model accounts for: tokens of an earlier version of memd."""
    rows = tuple(rows)
    names = [f"{kind}_tokens" for kind in KINDS]
    rest = {name: stats.get(name, 0) - sum(getattr(row, name) for row in rows) for name in names}
    if not any(count > 0 for count in rest.values()):
        return ()
    calls = max(0, stats.get("model_calls", 0) - sum(row.calls for row in rows))
    return (ModelCost(UNATTRIBUTED, calls, 0, **rest, usd=None),)


def _budgets(settings: Settings, spent: int) -> dict[str, Budget]:
    limits = settings.budget
    budgets = {}
    if limits.total_tokens_per_day is not None:
        budgets["total"] = Budget(limits.total_tokens_per_day, spent)
    if limits.user_tokens_per_day is not None:
        budgets["user"] = Budget(limits.user_tokens_per_day, None)
    return budgets
