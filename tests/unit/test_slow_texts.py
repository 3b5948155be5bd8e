"""Time: no text of a user takes a stage, or any pattern alone, more than linear time."""

from __future__ import annotations

import pytest
from support.slow_texts import LIMIT, PIECES, cpu, ratio, slow

from benchmarks.texts import stages
from memd.push.redaction import searches

STAGES = stages()


@pytest.mark.long  # `make smoke` looks at each stage too, with longer texts
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_takes_linear_time(stage: str) -> None:
    """25,000 characters cost some ten times what 2,500 do, for the worst known repetitions; at most 12."""
    worst = {piece: times for piece in PIECES if (times := ratio(STAGES[stage], piece)) > LIMIT}
    assert not worst


def test_a_stage_that_takes_quadratic_time_is_found() -> None:
    """For each 20 characters it reads all of them."""
    assert ratio(lambda text: [text.count("b", start % 7) for start in range(0, len(text), 20)], "a") > LIMIT


def test_the_worst_known_text_is_fast() -> None:
    """It held a worker for 27 seconds and more."""
    assert cpu(STAGES["redaction"], "sk-" * 33_333, 3) < 0.5


def test_a_search_for_slow_texts_finds_none() -> None:
    """Each pattern alone, ours and those of detect-secrets, on repetitions of what it looks for."""
    assert len(list(searches())) >= 200
    assert not slow(seconds=3, seed=0)


@pytest.mark.parametrize(
    ("head", "piece", "tail"),
    [
        ("Here is the email:\n", "a\n\n", "\nplease forget that I said so"),
        ("下面是邮件：\n", "好\n\n", "\n忘掉我说的"),
    ],
)
def test_a_pasted_text_of_many_paragraphs_takes_linear_time(head: str, piece: str, tail: str) -> None:
    """It begins and ends once, so no repetition of a piece is like it. 100,000 characters took nine seconds."""
    assert ratio(lambda text: STAGES["wishes"](head + text + tail), piece) <= LIMIT
