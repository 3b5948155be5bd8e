"""Telling words: those that the audit looks at, of all languages together: `telling/` has a file for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memd.config.yaml_text import read


@dataclass(frozen=True, slots=True)
class Telling:
    """`one_value` to `filler`: see contradictions; `passing`: of a state that is soon over."""

    one_value: re.Pattern[str]
    several: re.Pattern[str]
    only: re.Pattern[str]
    past: re.Pattern[str]
    negation: re.Pattern[str]
    clause_end: re.Pattern[str]
    filler: re.Pattern[str]
    passing: re.Pattern[str]
    numbers: frozenset[str]


@cache
def telling() -> Telling:
    """The patterns and number words."""
    languages = [read(file) for file in sorted(Path(__file__).with_suffix("").glob("*.yaml"))]

    def joined(name: str) -> re.Pattern[str]:
        found = (language[name] for language in languages)
        parts = (part for entry in found for part in (entry if isinstance(entry, list) else [entry]))
        return re.compile("|".join(parts), re.IGNORECASE)

    names = ("one_value", "several", "only", "past", "negation", "clause_end", "filler", "passing")
    numbers = frozenset(number for language in languages for number in language["numbers"])
    return Telling(**{name: joined(name) for name in names}, numbers=numbers)
