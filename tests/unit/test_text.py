"""Text: the fast ways of normalising say the same as the plain ones, for every text."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from memd.memory import text as texts
from memd.memory.text import CJK, normal_key, normal_keys
from memd.push.width import nfkc
from memd.recall import words

SIGNS = "，。！？：；（）～％…　、ＡＢ①²é\u0301\u0338=<あ上海가x.1'\n \t-"
"""Full-width signs, marks that join what stands before them, and what is plain."""


@given(st.text(SIGNS) | st.text(max_size=60))
@example("=\u0338，\n\u0301é²")
def test_the_fast_width_is_unicodes(text: str) -> None:
    """Signs are replaced first, and only lines that need it are made normal: the result is NFKC."""
    assert nfkc(text) == unicodedata.normalize("NFKC", text)


@given(st.text(SIGNS) | st.text(max_size=60))
def test_gaps_go_on_either_side(text: str) -> None:
    """A space before or behind a Chinese character is found by the space."""
    either = re.compile(f"(?<=[{CJK}]) | (?=[{CJK}])")
    assert texts._GAP.sub("", text) == either.sub("", text)


@given(st.lists(st.text(SIGNS.replace("\n", ""), max_size=20)))
def test_keys_of_many_are_those_of_each(contents: list[str]) -> None:
    """Batches change no key."""
    assert normal_keys(contents) == list(map(normal_key, contents))


@given(st.text("tomás liken'+#\"().,!?上海的 \t　", max_size=40))
def test_roots_are_those_of_all_tokens(text: str) -> None:
    """Splitting at spaces first, where most words are ASCII, finds the same roots."""
    plain = texts.fold(text)
    found = [
        root
        for token in words._TOKEN.findall(plain)
        for root in (words._characters(token) if words._is_unspaced(token) else words._WORDS[token])
    ]
    assert words.roots(text) == (found or words._grammar(plain))
