"""A system prompt of parts: each within its budget, whole paragraphs cut from the top, headings kept."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.context import estimate_tokens
from memd.session.parts import Part, assemble, fitted

LOG = "# Log\n\n## Monday\n\nRain all day.\n\nWalked the dog.\n\n## Tuesday\nSun at last.\n\nPlanted beans."


@pytest.mark.parametrize(
    ("tokens", "gone"),
    [
        (100, []),
        (24, ["Rain all day."]),
        (20, ["Rain all day.", "Walked the dog."]),
        (15, ["Rain all day.", "Walked the dog.", "Sun at last."]),
        (0, ["Rain all day.", "Walked the dog.", "Sun at last.", "Planted beans."]),
    ],
)
def test_a_part_over_its_budget_loses_whole_paragraphs_from_the_top(tokens: int, gone: list[str]) -> None:
    """The newest stay, and so do all headings, in their order."""
    text = assemble([Part("LOG", LOG, tokens)])

    for paragraph in ("Rain all day.", "Walked the dog.", "Sun at last.", "Planted beans."):
        assert (paragraph in text) == (paragraph not in gone)
    headings = [text.index(heading) for heading in ("# Log", "## Monday", "## Tuesday")]
    assert all(first < second for first, second in pairwise(headings))
    assert tokens == 0 or estimate_tokens(text) <= tokens


def test_a_text_within_its_budget_is_left_as_it_is() -> None:
    """Byte for byte, but for white space around it."""
    assert assemble([Part("LOG", f"\n{LOG}\n", 100)]) == LOG


def test_chinese_counts_for_what_it_costs() -> None:
    """A Chinese character is five others: 20 of them are 30 tokens."""
    assert assemble([Part("NOTES", "用户只吃素食。\n\n用户住在杭州，喜欢喝绿茶。", 25)]) == "用户住在杭州，喜欢喝绿茶。"


def test_a_part_that_is_kept_whole_is_never_cut_and_the_last_ones_give_way() -> None:
    """Over the total, the last part loses its paragraphs first, then the one before it."""
    soul = Part("SOUL", "I am calm.\n\nI never guess.", 1, keep_whole=True)
    parts = [soul, Part("A", "a" * 100 + "\n\n" + "b" * 100), Part("B", "c" * 100 + "\n\n" + "d" * 100)]

    assert assemble(parts, 400).endswith("d" * 100)
    assert assemble(parts, 110) == "\n\n".join(["I am calm.\n\nI never guess.", "a" * 100, "b" * 100, "d" * 100])
    assert assemble(parts, 50) == "I am calm.\n\nI never guess.\n\n" + "b" * 100
    assert assemble(parts, 5) == "I am calm.\n\nI never guess."


def test_a_fence_of_code_is_one_paragraph() -> None:
    """It is kept or lost whole, and a comment in it is no heading."""
    code = "```sh\n# a comment\n\necho 1\n```"
    assert fitted(f"{code}\n\nAfter it.", 10) == "After it."
    assert code in fitted(f"Before it, and it is long enough to go.\n\n{code}", 12)


def test_a_function_is_asked_again_when_its_time_is_over() -> None:
    """Its text is kept for `ttl_s`; without one it is asked each time."""
    asked: list[int] = []

    def text() -> str:
        asked.append(1)
        return f"asked {len(asked)} times"

    kept, fresh = Part("AWARENESS", text, ttl_s=300), Part("NOW", text)
    assert assemble([kept], now=1_000) == "asked 1 times"
    assert assemble([kept], now=1_299) == "asked 1 times"
    assert assemble([kept], now=1_300) == "asked 2 times"
    assert assemble([fresh], now=1_300) == "asked 3 times"
    assert assemble([fresh], now=1_300) == "asked 4 times"


def test_a_part_without_text_leaves_no_gap() -> None:
    """Nor does one that has lost all its paragraphs."""
    assert assemble([Part("A", "a"), Part("B", " \n"), Part("C", "cc", 0), Part("D", "d")]) == "a\n\nd"


LINES = st.sampled_from(["# H", "## Two", "word " * 9, "字" * 20, "", "```", "x"])


@given(st.lists(LINES, max_size=30), st.integers(0, 60))
def test_what_is_left_is_headings_and_the_newest_paragraphs(lines: list[str], tokens: int) -> None:
    """Nothing is changed or reordered; without a heading the budget holds."""
    text = "\n".join(lines).strip()
    left = fitted(text, tokens)

    rest = iter(text.splitlines())
    assert all(line in rest for line in left.splitlines())
    if "#" not in text:
        assert estimate_tokens(left) <= tokens
