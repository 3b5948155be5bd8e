"""The results of a measurement: figures with a peer and a target, plots, and skips."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """The bound that a figure must reach. `of`: the value, or its ratio to the peer's."""

    bound: float
    at_least: bool = False
    of: str = "value"

    def met(self, value: float) -> bool:
        """Whether a value reaches it."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{sign} {self.bound:g}{' ×' if self.of == 'ratio' else ''}"


def at_least(bound: float, *, of: str = "value") -> Target:
    """A target for figures where more is better."""
    return Target(bound, True, of)


def at_most(bound: float, *, of: str = "value") -> Target:
    """A target for figures where less is better."""
    return Target(bound, False, of)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `value`: the median of the rounds; `spread`: their minimum and maximum.

    `peer_there`: the peer's minimum and maximum on the machine where an absolute target was set.
    """

    area: str
    what: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    target: Target | None = None
    spread: tuple[float, float] | None = None
    note: str = ""
    peer_there: tuple[float, float] | None = None

    @property
    def ratio(self) -> float | None:
        """The value in units of the peer's, which is measured in the same run, turn by turn."""
        return self.value / self.peer_value if self.peer_value else None

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without a target."""
        if self.target is None:
            return None
        judged = self.ratio if self.target.of == "ratio" else self.value
        return judged is not None and self.target.met(judged)

    @property
    def remark(self) -> str:
        """The note, and an absolute target as a ratio to the peer."""
        there = self.target_beside_peer
        if there is None or self.ratio is None or self.peer_there is None:
            return self.note
        span = " … ".join(f"{value:,g}" for value in sorted(set(self.peer_there)))
        met = "met" if there.met(self.ratio) else "missed"
        beside = f"as a ratio {met}: where the target was set the peer reached {span}, which makes it {there}"
        return "; ".join(filter(None, (beside, self.note)))

    @property
    def target_beside_peer(self) -> Target | None:
        """An absolute target in units of the peer, in its strictest reading: machines differ more than ratios."""
        if self.target is None or self.peer_there is None:
            return None
        ratios = [self.target.bound / value for value in self.peer_there]
        strictest = max(ratios) if self.target.at_least else min(ratios)
        return Target(round(strictest, 2), self.target.at_least, "ratio")

    def as_dict(self) -> dict[str, Any]:
        """The figure as plain values, for JSON."""
        target = str(self.target) if self.target else None
        return {**asdict(self), "target": target, "ratio": self.ratio, "met": self.met, "note": self.remark}


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over a logarithmic x axis; each point is (x, y)."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skip:
    """A measurement without a figure, with the reason. `failed`: it should have had a figure."""

    area: str
    what: str
    reason: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars side by side, a panel for each measure: `panels` are (title, a value for each label).

    `ours`: the label that stands out.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    panels: tuple[tuple[str, tuple[float, ...]], ...]
    ours: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Contestants beside each other, a row each, with the same measures as columns. `note`: how to read it."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]
    note: str = ""


Measurement = Figure | Plot | Bars | Table | Skip


@dataclass(slots=True)
class Results:
    """All that was measured, by kind, in its order."""

    figures: list[Figure] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    bars: list[Bars] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)

    def add(self, found: Measurement) -> None:
        """Add one measurement."""
        match found:
            case Figure():
                self.figures.append(found)
            case Plot():
                self.plots.append(found)
            case Bars():
                self.bars.append(found)
            case Table():
                self.tables.append(found)
            case Skip():
                self.skips.append(found)

    def extend(self, other: Results) -> None:
        """Add all of another."""
        self.figures += other.figures
        self.plots += other.plots
        self.bars += other.bars
        self.tables += other.tables
        self.skips += other.skips
