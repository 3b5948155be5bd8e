"""Bars as SVG, by hand: a row for each contestant, a panel for each measure, ours in colour."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from benchmarks.figures import Bars

LEFT, PANEL, GAP = 190, 200, 75
"""Widths of the names, of the longest bar of a panel, and of the room after it, where its value is written."""

TOP, ROW, BAR = 76, 34, 20
OURS, OTHERS = "#1f6feb", "#afb8c1"
BOLD = ' font-weight="bold"'


def svg(bars: Bars) -> str:
    """The bars as one SVG document."""
    width = LEFT + len(bars.panels) * (PANEL + GAP)
    height = TOP + ROW * len(bars.labels) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="16" y="28" font-size="16" font-weight="bold">{escape(bars.title)}</text>',
    ]
    for place, label in enumerate(bars.labels):
        weight = BOLD if label == bars.ours else ""
        parts.append(f'<text x="{LEFT - 10}" y="{_y(place) + 15}" text-anchor="end"{weight}>{escape(label)}</text>')
    for column in range(len(bars.panels)):
        parts += _panel(bars, column)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _y(place: int) -> int:
    return TOP + ROW * place


def _panel(bars: Bars, column: int) -> Iterator[str]:
    """One measure: bars from nought, the longest as wide as the panel."""
    x = LEFT + column * (PANEL + GAP)
    title, values = bars.panels[column]
    yield f'<text x="{x}" y="58" font-weight="bold">{escape(title)}</text>'
    most = max(values) or 1.0
    for place, (label, value) in enumerate(zip(bars.labels, values, strict=True)):
        long = round(max(1.0, PANEL * value / most), 1)
        colour, weight = (OURS, BOLD) if label == bars.ours else (OTHERS, "")
        yield f'<rect x="{x}" y="{_y(place)}" width="{long}" height="{BAR}" fill="{colour}"/>'
        yield f'<text x="{x + long + 6}" y="{_y(place) + 15}"{weight}>{_number(value)}</text>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
