"""Telling words: what contradicts, ends or outlives what, in all languages together: `telling/` has a file for each."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

from memd.memory.text import fold
from memd.push.patterns import load, prepared
from memd.push.prefilter import NOTHING, required_literals


@dataclass(frozen=True, slots=True)
class Telling:
    """`one_value` to `filler`: see contradicting; `passing`: of a state that is soon over; `dated` to `light`: see
    superseding; `subject`, `joins`: see remaining; `reasons`: at the end of a
    sentence."""

    one_value: re.Pattern[str]
    several: re.Pattern[str]
    only: re.Pattern[str]
    past: re.Pattern[str]
    negation: re.Pattern[str]
    clause_end: re.Pattern[str]
    filler: re.Pattern[str]
    passing: re.Pattern[str]
    dated: re.Pattern[str]
    changed: re.Pattern[str]
    besides: re.Pattern[str]
    over: re.Pattern[str]
    light: re.Pattern[str]
    subject: re.Pattern[str]
    joins: re.Pattern[str]
    reasons: re.Pattern[str]
    numbers: frozenset[str]
    literals: tuple[tuple[str, ...], ...]
    """For each group of `one_value`, by its number: folded texts of which each match of it holds one."""


@prepared
def telling() -> Telling:
    """The patterns and number words."""
    lists = load(Path(__file__).with_suffix(""))
    names = [field.name for field in fields(Telling) if field.name not in {"numbers", "literals"}]
    literals = [required_literals(pattern) or NOTHING for pattern in lists["one_value"]]
    lists = {**lists, "one_value": [f"({pattern})" for pattern in lists["one_value"]]}  # its group tells the kind
    patterns = {name: re.compile("|".join(lists[name]), re.IGNORECASE) for name in names}
    folded = ((), *(tuple({*map(fold, held)}) for held in literals))
    return Telling(**patterns, numbers=frozenset(lists["numbers"]), literals=folded)
