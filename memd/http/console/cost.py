"""Cost: what the model's calls have used, by model and day, for each stored fact, and of the budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memd.http.console.page import Shown, Visit
from memd.http.console.plots import stacked
from memd.inbox.cost import Cost, DayCost, ModelCost

PATH = "/console/cost"
PERIODS = (7, 30, 90)
"""Lengths of time to choose from, in days; the middle one without a choice."""

UNITS = ("usd", "tokens")


@dataclass(frozen=True, slots=True)
class UsedSum:
    """The use of several models or days together.

    `usd`: of the models with a price, None if none has one; `is_whole`: whether all that were used have one.
    """

    calls: int
    batch_calls: int
    tokens: int
    cached_tokens: int
    usd: float | None
    is_whole: bool

    @property
    def batch_share(self) -> float | None:
        """Share of the calls that went in batches; None without calls."""
        return self.batch_calls / self.calls if self.calls else None

    @property
    def cached_share(self) -> float | None:
        """Share of the tokens that came from the endpoint's cache; None without tokens."""
        return self.cached_tokens / self.tokens if self.tokens else None

    def per_fact(self, facts: int) -> float | None:
        """US dollars for each of so many facts; None without facts, or where a price is missing."""
        return self.usd / facts if facts and self.usd is not None and self.is_whole else None


def cost(visit: Visit) -> Shown:
    """The page."""
    days = next((days for days in PERIODS if str(days) == visit.value("days")), PERIODS[1])
    figures = visit.service.memd.cost(days=days)
    models = merged(row for day in figures.days for row in day.models)
    unit = _unit(visit.value("unit"), models)
    unpriced = sorted({row.model for row in (*models, *figures.total) if row.usd is None})
    facts = sum(day.facts for day in figures.days)
    period = sum_of(models)
    data = {
        "days": days,
        "periods": PERIODS,
        "unit": unit,
        "figures": figures,
        "today": sum_of(figures.today),
        "period": period,
        "total": sum_of(figures.total),
        "facts": facts,
        "per_fact": period.per_fact(facts),
        "models": models,
        "rows": [(day, sum_of(day.models)) for day in reversed(figures.days)],
        "plot": plot_of(figures, unit),
        "unpriced": unpriced,
        "tokens_of": tokens_of,
        "dollars": dollars,
        "axis": axis,
        "short": short,
    }
    return Shown("cost.html", data)


def _unit(asked: str, models: Sequence[ModelCost]) -> str:
    if asked in UNITS:
        return asked
    return "usd" if not models or any(row.usd is not None for row in models) else "tokens"


def plot_of(figures: Cost, unit: str) -> Any:
    """The plot of the days by model; None where nothing was used."""

    def parts(day: DayCost) -> Mapping[str, float]:
        return {row.model: (row.usd or 0) if unit == "usd" else tokens_of(row) for row in day.models}

    return stacked([(f"{day.day:%m-%d}", parts(day)) for day in figures.days])


def tokens_of(row: ModelCost) -> int:
    """The tokens of all kinds."""
    return row.input_tokens + row.output_tokens + row.cache_read_tokens + row.cache_write_tokens


def merged(rows: Iterable[ModelCost]) -> list[ModelCost]:
    """One row for each model, the dearest first and then those that used most tokens."""
    counts: dict[str, Counter[str]] = {}
    money: dict[str, float | None] = {}
    for row in rows:
        whole = asdict(row)
        del whole["model"], whole["usd"]
        counts.setdefault(row.model, Counter()).update(whole)
        money[row.model] = None if row.usd is None else (money.get(row.model) or 0) + row.usd
    found = [ModelCost(model, **{**_NOTHING, **whole}, usd=money[model]) for model, whole in counts.items()]
    return sorted(found, key=lambda row: (-(row.usd or 0), -tokens_of(row)))


_NOTHING = dict.fromkeys(
    ("calls", "batch_calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), 0
)


def sum_of(rows: Iterable[ModelCost]) -> UsedSum:
    """What these models used together."""
    rows = list(rows)
    known = [row.usd for row in rows if row.usd is not None]
    return UsedSum(
        calls=sum(row.calls for row in rows),
        batch_calls=sum(row.batch_calls for row in rows),
        tokens=sum(map(tokens_of, rows)),
        cached_tokens=sum(row.cache_read_tokens for row in rows),
        usd=sum(known) if known or not rows else None,
        is_whole=len(known) == len(rows),
    )


def dollars(usd: float | None) -> str:
    """An amount of US dollars with as many digits as tell something; a dash for none."""
    if usd is None:
        return "–"
    return f"${usd:,.0f}" if usd >= 1_000 else f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def axis(usd: float) -> str:
    """An amount of US dollars at an axis, without zeros that tell nothing: $0.03, $1,500."""
    return f"${usd:,.6f}".rstrip("0").rstrip(".")


def short(value: float) -> str:
    """A number of tokens in short: 950, 12k, 3.4M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}"
