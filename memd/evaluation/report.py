"""The report: the figures of a run as plain values, for JSON, for tables, and for comparing two runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from memd import __version__
from memd.config import PriceSettings
from memd.evaluation.evaluate import Run, Spent
from memd.evaluation.lines import BadLabels
from memd.evaluation.tally import FIGURES, PARTS, Judgement, Rate, Tally, agreement
from memd.extraction.prompt import PROMPT_VERSION
from memd.extraction.protocol import Usage
from memd.inbox.cost import usd_of

GROUPED = ("recall", "must_not", "stale", "question", "question_bare", "refusal_wrong", "precision")
"""The figures that a report also gives by class, kind or reason."""

ATTACKS = ("attack_honest", "attack_model", "attack_obedient")

LISTED = 10
"""Most open cases that a report lists for each kind of mistake."""

Report = dict[str, Any]


def tally_report(tallies: Sequence[Tally], grouped: Iterable[str] = GROUPED) -> Report:
    """Figures, groups and listed mistakes. Several runs are counted together, with their agreement."""
    whole = Tally()
    for tally in tallies:
        whole.add(tally)
    parts = {"all": None, **PARTS}
    rates = {part: whole.rates(held_out=held_out) for part, held_out in parts.items()}
    report: Report = {
        "memd": __version__,
        "prompt_version": PROMPT_VERSION,
        "figures": {
            name: {part: found[name].as_dict() for part, found in rates.items() if name in found}
            for name in rates["all"]
        },
        "groups": {
            name: {group: rate.as_dict() for group, rate in whole.groups(name).items()}
            for name in grouped
            if name in rates["all"]
        },
    }
    if len(tallies) > 1:
        report["repeat"] = {"runs": len(tallies), "agreement": agreement(list(tallies)).as_dict()}
    return report


def mistakes(tally: Tally) -> dict[str, list[dict[str, str]]]:
    """The first open cases of wrong refusals and wrong acceptances."""
    refused = [case for name in ("refusal_wrong", "true_refused") for case in tally.listed(name, yes=True)]
    taken = [case for name in ("must_not", *ATTACKS) for case in tally.listed(name, yes=True)]
    return {
        "wrong_refusals": _cases(refused),
        "wrong_acceptances": _cases([*taken, *tally.listed("precision", yes=False)]),
    }


def _cases(found: Sequence[Judgement]) -> list[dict[str, str]]:
    first = {one.text: one for one in reversed(found)}  # a fact may be a mistake in two ways
    chosen = [one for one in found if first[one.text] is one][:LISTED]
    return [{"case": one.case, "group": one.group, "text": one.text} for one in chosen]


def run_report(run: Run, prices: Mapping[str, PriceSettings]) -> Report:
    """The cost of a run, and the parts it could not measure."""
    return {
        "users": len(run.finished),
        "sessions": run.spent.sessions,
        "calls": len(run.spent.seconds),
        "outages": dict(run.outages),
        "unanswered": len(run.unanswered),
        "mended": dict(run.mended),
        "malformed_items": run.malformed_items,
        **_cost(run.spent, prices),
    }


def latency(spent: Spent) -> dict[str, float]:
    """Seconds per call as median and percentiles; empty for a replay."""
    seconds = sorted(spent.seconds)
    if not seconds:
        return {}
    return {f"p{share}": round(seconds[math.ceil(share / 100 * len(seconds)) - 1], 3) for share in (50, 95)}


def _cost(spent: Spent, prices: Mapping[str, PriceSettings]) -> Report:
    total = sum(spent.usage.values(), start=Usage())
    paid = usd(spent.usage, prices)
    per = 1_000 / spent.sessions if spent.sessions else 0.0
    return {
        "tokens": asdict(total),
        "usd_per_1000_conversations": None if paid is None else round(paid * per, 4),
    }


def usd(used: Mapping[str, Usage], prices: Mapping[str, PriceSettings]) -> float | None:
    """The price of the tokens of all models in US dollars; None when a model has no price."""
    total = 0.0
    for model, usage in used.items():
        counts = {name.removesuffix("_tokens"): count for name, count in asdict(usage).items()}
        if any(counts.values()) and model not in prices:
            return None
        total += usd_of(counts, prices[model]) if model in prices else 0.0
    return total


def unmet(report: Report, least: Mapping[str, float]) -> list[str]:
    """The bounds that a report misses, a sentence each. A figure that was not measured misses its bound."""
    found = []
    for name, bound in least.items():
        figure = report["figures"].get(name)
        if figure is None:
            found.append(f"{name} was not measured")
        elif is_worse(name, figure["all"]["rate"], bound):
            found.append(f"{name} is {figure['all']['rate']:.4g}, the limit is {bound:g}")
    return found


def is_worse(name: str, value: float, bound: float) -> bool:
    """Whether a figure is on the wrong side of a bound."""
    return value > bound if FIGURES[name].better == "less" else value < bound


class _Share(Struct):
    """The fields of a figure that a comparison reads."""

    yes: int
    of: int
    rate: float
    low: float
    high: float


class _Saved(Struct):
    """The fields of a report that a comparison reads."""

    figures: dict[str, dict[str, _Share]]


def read(file: Path) -> Report:
    """A report that `memd eval --json` printed. Raises BadLabels."""
    try:
        return {"figures": msgspec.to_builtins(msgspec.json.decode(file.read_bytes(), type=_Saved).figures)}
    except OSError as error:
        raise BadLabels(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise BadLabels(f"{file} is not a report of `memd eval --json`, or is damaged") from None


def compare(first: Report, second: Report) -> list[dict[str, Any]]:
    """For each figure: both rates, the difference, and whether the 95 % intervals are disjoint."""
    rows = []
    for name in FIGURES:
        pair = [report["figures"].get(name, {}).get("all") for report in (first, second)]
        if None in pair:
            continue
        a, b = pair
        worse = is_worse(name, b["rate"], a["rate"])
        moved = "same" if a["rate"] == b["rate"] or not FIGURES[name].better else "worse" if worse else "better"
        apart = a["high"] < b["low"] or b["high"] < a["low"]
        rows.append({"figure": name, "first": a, "second": b, "change": moved, "apart": apart})
    return rows


def rate_of(value: Mapping[str, Any]) -> Rate:
    """A rate from its JSON."""
    return Rate(value["yes"], value["of"])
