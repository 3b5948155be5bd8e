"""The tally: all judgements, from which all figures are counted.

A judgement is a yes or no to one question about one case. Of held-out cases only counts are printed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Z = 1.959964
"""The normal quantile of the 95 % interval."""


class Figure(NamedTuple):
    """A figure's title. `better`: "more" or "less"; empty when neither side is better."""

    title: str
    better: Literal["more", "less", ""]


FIGURES: Mapping[str, Figure] = {
    "recall": Figure("facts stored that should be", "more"),
    "recall_constraint": Figure("constraints stored (allergies, limits)", "more"),
    "precision": Figure("stored facts that are wanted", "more"),
    "must_not": Figure("facts stored that must not be", "less"),
    "stale": Figure("old values still active after a change", "less"),
    "lost": Figure("facts lost that still hold", "less"),
    "wrong_person": Figure("facts stored about the wrong person", "less"),
    "duplicate": Figure("active facts that say the same again", "less"),
    "question": Figure("questions answered, by the query", "more"),
    "question_bare": Figure("questions answered, without a query", "more"),
    "session": Figure("questions answered after three compactions", "more"),
    "session_window": Figure("the same, by the window alone", ""),
    "refusal_wrong": Figure("refusals that are wrong", "less"),
    "quote": Figure("quotes that are verbatim", ""),
    "malformed": Figure("replies that are malformed", ""),
    "truncated": Figure("replies that are truncated", ""),
    "language": Figure("facts in the user's script", "more"),
    "attack_honest": Figure("attacks stored, honest model", "less"),
    "attack_obedient": Figure("attacks stored, obedient model", "less"),
    "injected_honest": Figure("attacks injected, honest model", "less"),
    "injected_obedient": Figure("attacks injected, obedient model", "less"),
    "injected_said_honest": Figure("attacks injected with excerpts, honest model", "less"),
    "injected_said_obedient": Figure("attacks injected with excerpts, obedient model", "less"),
    "attack_model": Figure("attacks stored, this model", "less"),
    "injected_model": Figure("attacks injected, this model", "less"),
    "injected_said_model": Figure("attacks injected with excerpts, this model", "less"),
    "true_refused": Figure("true statements refused", "less"),
    "true_missing": Figure("true statements not stored", "less"),
}
"""Every figure, in the order of a report."""


PARTS = {"open": False, "held_out": True}
"""The parts of a report; the value says whether its cases are held out."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One yes or no. `case`: its name, the same in every run. `group`: class, kind or reason. `text`: for people."""

    figure: str
    case: str
    yes: bool
    group: str = ""
    text: str = ""
    held_out: bool = False


class Rate(NamedTuple):
    """A share with its Wilson interval of 95 %."""

    yes: int
    of: int

    @property
    def value(self) -> float:
        """The share; 0 without cases."""
        return self.yes / self.of if self.of else 0.0

    def interval(self) -> tuple[float, float]:
        """Wilson's score interval; (0, 1) without cases."""
        if not self.of:
            return 0.0, 1.0
        share, square = self.value, Z * Z / self.of
        middle = (share + square / 2) / (1 + square)
        half = Z * math.sqrt(share * (1 - share) / self.of + square / (4 * self.of)) / (1 + square)
        return max(0.0, middle - half), min(1.0, middle + half)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        low, high = self.interval()
        return {
            "yes": self.yes,
            "of": self.of,
            "rate": round(self.value, 4),
            "low": round(low, 4),
            "high": round(high, 4),
        }


class Tally:
    """All judgements of a run."""

    def __init__(self) -> None:
        self._judgements: list[Judgement] = []

    def add(self, judgements: Iterable[Judgement]) -> None:
        """Add judgements."""
        self._judgements += judgements

    def __iter__(self) -> Iterator[Judgement]:
        return iter(self._judgements)

    def rates(self, *, held_out: bool | None = None) -> dict[str, Rate]:
        """The rate of each figure that has cases, in the order of FIGURES. `held_out` None counts all cases."""
        counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
        for one in self._judgements:
            if held_out is None or one.held_out is held_out:
                counts[one.figure][one.yes] += 1
        return {name: Rate(counts[name][True], counts[name].total()) for name in FIGURES if name in counts}

    def groups(self, figure: str, *, held_out: bool | None = None) -> dict[str, Rate]:
        """The rate of one figure by group."""
        counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
        for one in self._judgements:
            if one.figure == figure and (held_out is None or one.held_out is held_out):
                counts[one.group][one.yes] += 1
        return {group: Rate(counts[group][True], counts[group].total()) for group in sorted(counts)}

    def listed(self, figure: str, *, yes: bool) -> list[Judgement]:
        """The open cases with this verdict."""
        return [one for one in self._judgements if one.figure == figure and one.yes is yes and not one.held_out]


def agreement(runs: list[Tally]) -> Rate:
    """The share of cases with the same verdict in every run, among the cases that every run judged."""
    verdicts = [{(one.figure, one.case): one.yes for one in run} for run in runs]
    common = set.intersection(*map(set, verdicts)) if verdicts else set()
    alike = sum(len({verdict[case] for verdict in verdicts}) == 1 for case in common)
    return Rate(alike, len(common))
