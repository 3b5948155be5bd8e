"""What the model's calls for the claims in hand have used: counted with each claim's one move, whatever it is."""

from __future__ import annotations

from collections import Counter

from memd.extraction.protocol import Usage

CALLS = "model_calls"


class Spending:
    """Tokens by claim, until its move takes them along. An answer that was of no use has cost as much as any other."""

    def __init__(self) -> None:
        self._claims: dict[str, Counter[str]] = {}

    def add(self, claim_id: str, model: str, usage: Usage, *, batch: bool = False) -> None:
        """A call for the claim was answered, maybe in a batch."""
        self._claims.setdefault(claim_id, Counter()).update(stats(model, usage, batch=batch))

    def take(self, claim_id: str) -> dict[str, int]:
        """The counters of a claim that ends, as its move carries them."""
        return {name: count for name, count in self._claims.pop(claim_id, Counter()).items() if count}


def stats(model: str, usage: Usage, *, batch: bool) -> dict[str, int]:
    """Totals, and `used:<kind>:<model>`, which the inbox also counts by day and against the budgets."""
    way = "batch_" if batch else ""
    kinds = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }
    totals = {CALLS: 1, **{f"{kind}_tokens": count for kind, count in kinds.items()}}
    if not any(kinds.values()):  # the offline extractor, or an endpoint that does not count
        return totals
    return totals | {f"used:{way}{kind}:{model}": count for kind, count in {"calls": 1, **kinds}.items()}
