"""Cost: tokens and money that the calls of each model used, today, on each of the last days, and since the inbox began.

Money is tokens times `extraction.prices` (US dollars per million). Calls in batches cost half.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from itertools import dropwhile
from typing import Any

import redis

from memd.config import PriceSettings, Settings
from memd.errors import Rejected
from memd.inbox.connection import execute
from memd.inbox.figures import counters
from memd.inbox.verbs import P

KINDS = ("input", "output", "cache_read", "cache_write")
BATCH = "batch_"
BATCH_SHARE = 0.5
"""Share of the price that the Message Batches API charges: its price list halves every kind of token."""

UNATTRIBUTED = "(unknown)"
"""The model shown for calls that were counted before the inbox counted by model."""

MOST_DAYS = 90
"""Days that the inbox keeps, today included (`lua/budget.lua`)."""

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
class DayCost:
    """The use of one UTC day by model, without models that were not used. `facts`: added on it.

    `usd`: of the models with a price, None if none has one; `usd_per_fact`: None without facts, or where a model that
    was used has no price.
    """

    day: date
    models: tuple[ModelCost, ...]
    facts: int
    usd: float | None
    usd_per_fact: float | None


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget. `used`: tokens used today; None for the budget per user, which is not counted here."""

    tokens_per_day: int
    used: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The figures of `memd status --cost`. `day`: in UTC, by the server's clock.

    `days`: those asked for, oldest first, each day from the first one with any figure to today.
    """

    day: date
    today: tuple[ModelCost, ...]
    total: tuple[ModelCost, ...]
    budgets: dict[str, Budget]
    days: tuple[DayCost, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        return asdict(self)


def read_cost(client: redis.Redis, settings: Settings, days: int = 0) -> Cost:
    """Read all figures, and those of the last `days` days, today included. Raises Rejected, InboxUnavailable."""
    if not 0 <= days <= MOST_DAYS:
        raise Rejected("E_LIMIT", f"days must be from 0 to {MOST_DAYS}", "days", MOST_DAYS)
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
        days=_days(client, range(day - days + 1, day + 1), prices),
    )


def _days(client: redis.Redis, days: range, prices: Mapping[str, PriceSettings]) -> tuple[DayCost, ...]:
    """The use of these days since 1970, without those before the first one with any."""
    if not days:
        return ()
    pipeline = client.pipeline(transaction=False)
    for day in days:
        pipeline.hgetall(f"{P}:usage:{day}")
        pipeline.get(f"{P}:facts:{day}")
    replies = execute(pipeline)
    rows = zip(days, replies[::2], replies[1::2], strict=True)
    used = dropwhile(lambda row: not row[1] and row[2] is None, rows)
    return tuple(_day(day, _by_model(counters(usage), prices), int(facts or 0)) for day, usage, facts in used)


def _day(day: int, models: tuple[ModelCost, ...], facts: int) -> DayCost:
    known = [row.usd for row in models if row.usd is not None]
    usd = round(sum(known), 6) if known else None
    per_fact = round(usd / facts, 6) if usd is not None and facts and len(known) == len(models) else None
    return DayCost(datetime.fromtimestamp(day * DAY_S, UTC).date(), models, facts, usd, per_fact)


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
