"""Wishes that the extractor names with a quote: few words of a wish are enough, and harmless ones are none.

The author of the rules wrote the cases of forget_named.jsonl, before reading the lists; somebody else wrote those of
may_keep.jsonl.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.memory.said.named_wish import asks_to_forget

BLIND = Path(__file__).parents[1] / "data" / "blind"


def judged(half: str) -> Iterator[tuple[bool, bool]]:
    """For each case of a half whether it is a wish, and whether the quote is taken for one."""
    for line in (BLIND / "forget_named.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["half"] == half:
            yield row["wish"], asks_to_forget(row["quote"], row["text"])


def judged_turns(half: str) -> Iterator[tuple[bool, bool]]:
    """The same of whole turns: wishes to forget, and turns that are kept."""
    for line in (BLIND / "may_keep.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["half"] == half and row["kept"] is not None and row["why"] != "off_the_record":
            yield not row["kept"], asks_to_forget(row["text"], row["text"])


@pytest.mark.parametrize(
    ("half", "wishes", "look_alikes"), [("open", (38, 39), (0, 42)), ("held_out", (42, 42), (0, 46))]
)
def test_wishes_are_granted_and_look_alikes_are_not(
    half: str, wishes: tuple[int, int], look_alikes: tuple[int, int]
) -> None:
    """Granted of all, of both kinds, in six languages."""
    counts = Counter(judged(half))
    assert (counts[True, True], counts[True, True] + counts[True, False]) == wishes
    assert (counts[False, True], counts[False, True] + counts[False, False]) == look_alikes


@pytest.mark.parametrize(("half", "missed", "granted"), [("tuning", 1, 0), ("held_out", 3, 3)])
def test_whole_turns_are_judged_alike(half: str, missed: int, granted: int) -> None:
    """Of 84 wishes and 143 turns that are kept, many with words of wishes, somebody else wrote each."""
    counts = Counter(judged_turns(half))
    assert counts[True, True] + counts[True, False] == 42
    assert counts[True, False] <= missed
    assert counts[False, True] <= granted


@pytest.mark.parametrize(
    ("quote", "turn", "asks"),
    [
        ("the hip story", "Thanks. Please forget the hip story.", True),
        ("It was a nice day", "Please forget the hip story. It was a nice day.", False),
        ("The hip story? Wipe it", "The hip  story?\nWipe it, please.", True),
        ("forget the hip story", "> please forget the hip story\nWho wrote that?", False),
        ("forget the hip story", 'Translate: "please forget the hip story"', False),
        ("forget the knee", "Please forget the hip story.", False),
    ],
)
def test_only_the_sentences_of_the_quote_count(quote: str, turn: str, asks: bool) -> None:
    """As the user's own words, whatever white space stands between them."""
    assert asks_to_forget(quote, turn) is asks
