"""Telling words: what contradicts, ends or outlives what, in all languages together: `telling/` has a file for each."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

from memd.push.patterns import load, prepared


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


@prepared
def telling() -> Telling:
    """The patterns and number words."""
    lists = load(Path(__file__).with_suffix(""))
    names = [field.name for field in fields(Telling) if field.name != "numbers"]
    lists = {**lists, "one_value": [f"({pattern})" for pattern in lists["one_value"]]}  # its group tells the kind
    patterns = {name: re.compile("|".join(lists[name]), re.IGNORECASE) for name in names}
    return Telling(**patterns, numbers=frozenset(lists["numbers"]))
