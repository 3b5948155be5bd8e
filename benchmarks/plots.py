"""Plots as SVG, by hand: lines over a logarithmic x axis, y from nought."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from benchmarks.figures import Plot

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 190, 50, 60
COLOURS = ("#1f6feb", "#d1242f", "#2da44e", "#8250df", "#bf8700", "#57606a")


def svg(plot: Plot) -> str:
    """The plot as one SVG document."""
    points = [point for line in plot.lines.values() for point in line]
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    top = _round_up(max(y for _, y in points))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="28" font-size="15" font-weight="bold">{escape(plot.title)}</text>',
        *_y_axis(plot.y_label, top),
        *_x_axis(plot.x_label, sorted({x for x, _ in points}), low, high),
    ]
    for place, (name, line) in enumerate(plot.lines.items()):
        parts += _line(name, line, place, low, high, top)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(value: float, low: float, high: float) -> float:
    span = math.log(high / low) if high > low else 1.0
    return round(LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low) / span, 1)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top, 1)


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 times a power of ten."""
    power = 10 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * power for step in (1, 2, 2.5, 5, 10) if value <= step * power)


def _y_axis(label: str, top: float) -> Iterator[str]:
    for step in range(5):
        value = top * step / 4
        y = _y(value, top)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#d0d7de"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{value:,g}</text>'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield f'<text x="20" y="{middle}" text-anchor="middle" transform="rotate(-90 20 {middle})">{escape(label)}</text>'


def _x_axis(label: str, values: list[float], low: float, high: float) -> Iterator[str]:
    for value in values:
        x = _x(value, low, high)
        yield f'<line x1="{x}" x2="{x}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 5}" stroke="black"/>'
        yield f'<text x="{x}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{value:,g}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle}" y="{HEIGHT - 15}" text-anchor="middle">{escape(label)}</text>'


def _line(name: str, line: list[tuple[float, float]], place: int, low: float, high: float, top: float) -> Iterator[str]:
    colour = COLOURS[place % len(COLOURS)]
    spots = [(_x(x, low, high), _y(y, top)) for x, y in line]
    path = " ".join(f"{x},{y}" for x, y in spots)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in spots:
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
    y = TOP + 18 * place + 8
    x = WIDTH - RIGHT + 10
    yield f'<line x1="{x}" x2="{x + 20}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
    yield f'<text x="{x + 26}" y="{y + 4}">{escape(name)}</text>'
