"""Plots: numbers as the shapes of an SVG, which the templates draw. No text of a user is in them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, BOTTOM, TOP = 76, 26, 30, 12
COLOURS = 6
"""Colours that the style sheet has; of more series the smallest become one."""

OTHERS = ""
"""The name of the series that the smallest become."""

GAP = 0.25
"""Share of a column's width that stays empty."""

MOST_WIDE = 56
"""Width of a column at most: one day alone is no wall."""


@dataclass(frozen=True, slots=True)
class PlotBlock:
    """One coloured part of a column. `colour`: 1 to COLOURS; `column`: of which column; `value`: what it shows."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    column: str
    series: str
    value: float


@dataclass(frozen=True, slots=True)
class PlotTick:
    """A mark on an axis: its place and what it stands for."""

    place: float
    value: float | str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of stacked columns. `series`: the names, the largest first, each with its colour and its sum."""

    blocks: tuple[PlotBlock, ...]
    across: tuple[PlotTick, ...]
    up: tuple[PlotTick, ...]
    series: tuple[tuple[str, int, float], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    base: int = HEIGHT - BOTTOM


def stacked(columns: Sequence[tuple[str, Mapping[str, float]]]) -> Plot | None:
    """Columns one beside the other, each a pile of what its series count; None when all of them are 0."""
    sums: defaultdict[str, float] = defaultdict(float)
    for name, value in (part for _, parts in columns for part in parts.items()):
        sums[name] += value
    names = sorted((name for name, total in sums.items() if total > 0), key=lambda name: -sums[name])
    if not names:
        return None
    shown = names if len(names) <= COLOURS else [*names[: COLOURS - 1], OTHERS]
    piles = [(label, _pile(parts, shown)) for label, parts in columns]
    ceiling, step = _scale(max(sum(pile.values()) for _, pile in piles))
    room = (WIDTH - LEFT - RIGHT) / len(piles)
    blocks = tuple(
        block
        for place, (label, pile) in enumerate(piles)
        for block in _column(label, pile, shown, place, room, ceiling)
    )
    every = math.ceil(len(piles) / 6)
    across = tuple(
        PlotTick(LEFT + (place + 0.5) * room, label)
        for place, (label, _) in enumerate(piles)
        if (len(piles) - 1 - place) % every == 0
    )
    up = tuple(PlotTick(_height_of(step * mark, ceiling), step * mark) for mark in range(round(ceiling / step) + 1))
    totals = _pile(sums, shown)
    return Plot(blocks, across, up, tuple((name, place + 1, totals[name]) for place, name in enumerate(shown)))


def _pile(parts: Mapping[str, float], shown: Sequence[str]) -> dict[str, float]:
    """The parts by the names that are shown; those of other names together."""
    pile: defaultdict[str, float] = defaultdict(float)
    for name, value in parts.items():
        pile[name if name in shown else OTHERS] += value
    return pile


def _column(
    label: str, pile: Mapping[str, float], shown: Sequence[str], place: int, room: float, ceiling: float
) -> Iterator[PlotBlock]:
    width = min(MOST_WIDE, room * (1 - GAP))
    x = LEFT + (place + 0.5) * room - width / 2
    below = 0.0
    for number, name in enumerate(shown):
        value = pile.get(name, 0)
        if value > 0:
            y = _height_of(below + value, ceiling)
            yield PlotBlock(x, y, width, _height_of(below, ceiling) - y, number + 1, label, name, value)
            below += value


def _height_of(value: float, ceiling: float) -> float:
    """Where a value is, from the top of the plot."""
    return TOP + (HEIGHT - BOTTOM - TOP) * (1 - value / ceiling)


def _scale(most: float) -> tuple[float, float]:
    """The end of an axis for values up to `most`, and the step of its marks: 1, 2 or 5 of a power of ten.

    For 37 the marks are 0, 10, 20, 30 and 40.
    """
    rough = most / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    return math.ceil(most / step * 0.999) * step, step
