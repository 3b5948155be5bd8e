"""Paragraphs: where a text is split in two, whatever its language and form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.extraction.paragraphs import MIN_CHARS, middle

LINES = [f"I own boat number {n} and keep it in harbour {n}." for n in range(8)]
CODE = "```python\n" + "\n\n".join(f"value_{n} = {n}" for n in range(12)) + "\n```"


def halves(text: str) -> tuple[str, str] | None:
    """Both sides of the split, without the blanks around them."""
    place = middle(text, 0, len(text))
    return None if place is None else (text[:place].strip(), text[place:].strip())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two.\n\nThree. Four.", ("One. Two.", "Three. Four.")),
        ("\n\n".join(LINES[:4]), ("\n\n".join(LINES[:2]), "\n\n".join(LINES[2:4]))),
        (" ".join(LINES), (" ".join(LINES[:4]), " ".join(LINES[4:]))),
        ("\n".join(f"- {line}" for line in LINES[:2]), (f"- {LINES[0]}", f"- {LINES[1]}")),
        ("我住在上海。我有两只猫。我吃素。我是护士。", ("我住在上海。我有两只猫。", "我吃素。我是护士。")),
        ("我住在上海!我有两只猫！我吃素吗？", ("我住在上海!", "我有两只猫！我吃素吗？")),
        ("A line\nwraps twice. The next\none, too.", ("A line\nwraps twice.", "The next\none, too.")),
        ("I met Dr. Smith today. He is kind.", ("I met Dr. Smith today.", "He is kind.")),
        (f"Code:\n{CODE}\nI like Python. I live in Porto.", (f"Code:\n{CODE}", "I like Python. I live in Porto.")),
        ("word " * 80, (("word " * 40).strip(), ("word " * 40).strip())),
        ("字" * MIN_CHARS, ("字" * (MIN_CHARS // 2), "字" * (MIN_CHARS // 2))),
    ],
)  # fmt: skip
def test_a_text_is_split_between_its_sentences(text: str, expected: tuple[str, str]) -> None:
    """At a blank line or between items near the middle, else after a sentence; code stays whole as long as it can."""
    assert halves(text) == expected


def test_code_alone_is_split_between_its_lines() -> None:
    """A message that is one fenced block has no better place."""
    found = halves(CODE)
    assert found is not None
    assert all(line in CODE.splitlines() for side in found for line in side.splitlines())


@pytest.mark.parametrize("text", ["", " ", "An endless story", "I own a boat.", "\n\nOne.\n\n", "字" * (MIN_CHARS - 1)])
def test_one_sentence_stays_whole(text: str) -> None:
    """Nothing is gained by asking about half a sentence."""
    assert middle(text, 0, len(text)) is None


@given(text=st.text(alphabet="ab .。\n`-字", max_size=900))
def test_halving_ends_and_loses_nothing(text: str) -> None:
    """Whatever the text: both sides say something, and together they are the text, down to single sentences."""
    todo, whole = [(0, len(text))], ""
    while todo:
        start, end = todo.pop()
        place = middle(text, start, end)
        if place is None:
            whole += text[start:end]
            continue
        assert text[start:place].strip()
        assert text[place:end].strip()
        todo += [(place, end), (start, place)]
    assert whole == text
