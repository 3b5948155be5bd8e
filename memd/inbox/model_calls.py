"""The calls of each model by the counters of the inbox, with tokens and failures; bounded for labels of metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from memd.inbox.cost import BATCH, KINDS

MOST_MODELS = 20
MOST_CODES = 20
OTHERS = "(others)"
"""The name for all models, or codes of one model, beyond the most used ones."""


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Of one model: calls made, those that failed too; requests answered in batches; tokens by kind; failures by code.

    Calls and failures are counted since build 28 of the inbox, tokens and batches since before.
    """

    calls: int = 0
    batch_calls: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)


def read_model_calls(stats: Mapping[str, int]) -> dict[str, ModelCalls]:
    """The calls by model: at most MOST_MODELS of them with their names, and at most MOST_CODES codes of each."""
    counted = _by_model(stats)
    named = {model for model, _ in sorted(counted.items(), key=_most_used)[:MOST_MODELS]}
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for model, counts in counted.items():
        together[model if model in named else OTHERS].update(counts)
    return {model: _calls(counts) for model, counts in sorted(together.items())}


def _by_model(stats: Mapping[str, int]) -> dict[str, Counter[str]]:
    """The counters `used:<kind>:<model>`, `called:<model>`, `failed:<code>:<model>`; only a model may have colons."""
    models: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, count in stats.items():
        counter, _, rest = name.partition(":")
        if counter == "called":
            models[rest]["called"] += count
        elif counter in ("used", "failed"):
            what, _, model = rest.partition(":")
            models[model][f"{counter}:{what}"] += count
    return models


def _most_used(row: tuple[str, Counter[str]]) -> tuple[int, str]:
    model, counts = row
    return -(counts["called"] + counts["used:calls"] + counts[f"used:{BATCH}calls"]), model


def _calls(counts: Counter[str]) -> ModelCalls:
    tokens = {kind: counts[f"used:{kind}"] + counts[f"used:{BATCH}{kind}"] for kind in KINDS}
    failures = Counter({name.removeprefix("failed:"): n for name, n in counts.items() if name.startswith("failed:")})
    known = dict(failures.most_common(MOST_CODES))
    if rest := failures.total() - sum(known.values()):
        known[OTHERS] = rest
    return ModelCalls(counts["called"], counts[f"used:{BATCH}calls"], tokens, known)
