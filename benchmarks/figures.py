"""What a measurement comes to: figures with a peer and a target, and plots."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure is to reach: `of` says whether its value or its ratio to the peer is meant."""

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
    """The more the better."""
    return Target(bound, True, of)


def at_most(bound: float, *, of: str = "value") -> Target:
    """The less the better."""
    return Target(bound, False, of)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `spread`: the least and the most of the rounds whose median `value` is.

    `peer_there`: what the peer came to where an absolute target was made, least and most.
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
        """The value in units of the peer's, which was measured in the same run, turn by turn."""
        return self.value / self.peer_value if self.peer_value else None

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        judged = self.ratio if self.target.of == "ratio" else self.value
        return judged is not None and self.target.met(judged)

    @property
    def remark(self) -> str:
        """The note, with what an absolute target comes to beside the peer."""
        there = self.target_beside_peer
        if there is None or self.ratio is None or self.peer_there is None:
            return self.note
        span = " … ".join(f"{value:,g}" for value in sorted(set(self.peer_there)))
        met = "met" if there.met(self.ratio) else "missed"
        beside = f"as a ratio {met}: where the target was made the peer came to {span}, which makes it {there}"
        return "; ".join(filter(None, (beside, self.note)))

    @property
    def target_beside_peer(self) -> Target | None:
        """An absolute target in units of the peer, at its strictest: machines differ more than ratios do."""
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
    """Something without a figure, by name and with the reason. `failed`: it should have had one."""

    area: str
    what: str
    reason: str
    failed: bool = False


Measurement = Figure | Plot | Skip
