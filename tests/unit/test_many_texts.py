"""Many texts as one: the same texts are found as by a look at each."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from memd.memory.many_texts import ManyTexts
from memd.memory.text import CJK, folded_lines, normal_key

TEXTS = st.lists(st.text("ab c", max_size=8), max_size=6)


@given(TEXTS, st.text("abc", min_size=1, max_size=3))
def test_the_texts_that_hold_a_word(texts: list[str], word: str) -> None:
    """Each once and in order, also where a text is empty."""
    assert list(ManyTexts(texts).holding(word)) == [place for place, text in enumerate(texts) if word in text]


@given(TEXTS, st.sets(st.text("abc", min_size=1, max_size=3), max_size=4), st.integers(1, 5))
def test_the_texts_that_hold_most_of_some_words(texts: list[str], words: set[str], least: int) -> None:
    """So many of them or more, in whatever place they stand."""
    enough = [place for place, text in enumerate(texts) if sum(word in text for word in words) >= least]
    assert sorted(ManyTexts(texts).holding_most(words, least)) == enough


@given(st.lists(st.text(max_size=12) | st.text("aB’'\n １.5é\u0301用户", max_size=12), max_size=5))
def test_a_folded_line_holds_the_words_of_the_key(texts: list[str]) -> None:
    """Searches in folded lines find what the normalised text has, line by line."""
    lines = folded_lines(texts)
    assert len(lines) == len(texts)
    for text, line in zip(texts, lines, strict=True):
        words = re.findall(f"[{CJK}]|[^\\s{CJK}]+", normal_key(text))
        assert all(word in line for word in words)
        assert "\n" not in line
