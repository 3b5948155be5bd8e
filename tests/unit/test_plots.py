"""The plots of the console: columns whose heights and places say what their numbers say."""

from __future__ import annotations

import pytest

from memd.http.console.plots import COLOURS, HEIGHT, LEFT, OTHERS, RIGHT, TOP, WIDTH, stacked


def test_parts_are_piled_in_proportion() -> None:
    """Each part as high as its number, the largest series at the bottom, one column beside the other."""
    plot = stacked([("a", {"x": 30, "y": 10}), ("b", {"x": 20}), ("c", {})])
    assert plot is not None
    assert [name for name, _, _ in plot.series] == ["x", "y"]
    assert [total for _, _, total in plot.series] == [50, 10]
    by_part = {(block.column, block.series): block for block in plot.blocks}
    assert set(by_part) == {("a", "x"), ("a", "y"), ("b", "x")}
    low, high, other = by_part["a", "x"], by_part["a", "y"], by_part["b", "x"]
    assert low.height == pytest.approx(3 * high.height)
    assert high.y + high.height == pytest.approx(low.y)
    assert low.y + low.height == pytest.approx(plot.base) == other.y + other.height
    assert LEFT <= low.x < other.x < WIDTH - RIGHT
    assert all(block.y >= TOP for block in plot.blocks)
    assert (low.colour, high.colour, other.colour) == (1, 2, 1)


@pytest.mark.parametrize(
    ("most", "marks"),
    [
        (37, [0, 10, 20, 30, 40]),
        (0.00041, [0, 0.0001, 0.0002, 0.0003, 0.0004, 0.0005]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (4e9, [0, 1e9, 2e9, 3e9, 4e9]),
    ],
)
def test_an_axis_has_round_marks(most: float, marks: list[float]) -> None:
    """From nothing to the first round mark that is not below the highest column."""
    plot = stacked([("a", {"x": most})])
    assert plot is not None
    assert [tick.value for tick in plot.up] == pytest.approx(marks)
    assert [tick.place for tick in plot.up] == sorted((tick.place for tick in plot.up), reverse=True)
    assert plot.up[0].place == plot.base < HEIGHT


def test_many_series_and_many_columns_stay_readable() -> None:
    """The smallest series become one; not every column has its name, but the last one always does."""
    plot = stacked([(f"day {day}", {f"m{number}": number + 1.0 for number in range(9)}) for day in range(90)])
    assert plot is not None
    assert len(plot.series) == COLOURS
    assert plot.series[-1][:2] == (OTHERS, COLOURS)
    assert plot.series[-1][2] == pytest.approx(90 * (1 + 2 + 3 + 4))
    assert {block.colour for block in plot.blocks} == set(range(1, COLOURS + 1))
    assert 4 <= len(plot.across) <= 7
    assert plot.across[-1].value == "day 89"


@pytest.mark.parametrize("columns", [[], [("a", {})], [("a", {"x": 0})]])
def test_nothing_is_no_plot(columns: list[tuple[str, dict[str, float]]]) -> None:
    """Where nothing was counted there is nothing to draw."""
    assert stacked(columns) is None
