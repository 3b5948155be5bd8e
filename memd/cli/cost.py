"""The cost of the model as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memd.printable import printable

if TYPE_CHECKING:
    from memd.inbox.cost import Cost, ModelCost

WIDE = ("input", "output", "cache read", "cache write", "USD")
HEAD = f"{'model':<28}{'calls':>9}{'batched':>9}" + "".join(f"{name:>12}" for name in WIDE)


def cost_lines(cost: Cost) -> Iterator[str]:
    """Tokens and money by model, today and in total, and what is said about them."""
    for title, rows in ((f"today ({cost.day}, UTC)", cost.today), ("in total", cost.total)):
        yield title
        if not rows:
            yield "  no tokens"
            continue
        yield HEAD
        yield from (_row(row) for row in rows)
        if len(rows) > 1:
            known = [row.usd for row in rows if row.usd is not None]
            yield f"{'all':<28}{sum(row.calls for row in rows):>9,}{'':>57}{sum(known):>12.4f}"
    for name, budget in cost.budgets.items():
        used = "each" if budget.used is None else f"{budget.used:,} used"
        yield f"budget of tokens a day, {name}: {budget.tokens_per_day:,} ({used})"
    unknown = sorted({printable(row.model) for row in (*cost.today, *cost.total) if row.usd is None})
    if unknown:
        yield f"no price for {', '.join(unknown)}: tokens only, in no sum of money; prices stand in extraction.prices"


def _row(row: ModelCost) -> str:
    usd = "-" if row.usd is None else f"{row.usd:.4f}"
    return (
        f"{printable(row.model):<28}{row.calls:>9,}{row.batch_calls:>9,}{row.input_tokens:>12,}{row.output_tokens:>12,}"
        f"{row.cache_read_tokens:>12,}{row.cache_write_tokens:>12,}{usd:>12}"
    )
