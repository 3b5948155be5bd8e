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
    """One line of the table. `spread`: the least and the most of the rounds whose median `value` is."""

    area: str
    what: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    target: Target | None = None
    spread: tuple[float, float] | None = None
    note: str = ""

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

    def as_dict(self) -> dict[str, Any]:
        """The figure as plain values, for JSON."""
        target = str(self.target) if self.target else None
        return {**asdict(self), "target": target, "ratio": self.ratio, "met": self.met}


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
    """Something that could not be measured here, by name and with the reason."""

    area: str
    what: str
    reason: str


Measurement = Figure | Plot | Skip
