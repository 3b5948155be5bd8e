"""Blind cases of quotes and removals, written by somebody who had read no code: misses beside false alarms, in counts.

The held-out halves are for counting only. Many removals are paraphrases without a shared word, which no comparison of
words finds: their thresholds are what was measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.recall_support import document, fact

from memd.context import Message, identify
from memd.memory.document import SECTIONS, summary
from memd.memory.evidence import UserMessages
from memd.memory.purge import purge

DATA = Path(__file__).parents[1] / "data"


def rows(name: str) -> Iterator[dict[str, Any]]:
    with (DATA / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def proves(row: dict[str, Any]) -> bool:
    sent = identify("thread-1", [Message("user", row["message"])])
    return UserMessages("thread-1", sent, {message.identity for message in sent}).hold(row["quote"])


@pytest.mark.parametrize(("half", "good_refused", "bad_accepted"), [("open", 0, 0), ("heldout", 1, 0)])
def test_quotes_are_judged_in_both_directions(half: str, good_refused: int, bad_accepted: int) -> None:
    """Good quotes differ in case, width, space and quotation marks; bad ones are changed or too short."""
    cases = [(row["ok"], proves(row)) for row in rows(f"quotes_blind/{half}.jsonl")]
    assert len(cases) >= 120
    assert sum(ok and not found for ok, found in cases) <= good_refused
    assert sum(found and not ok for ok, found in cases) <= bad_accepted


@pytest.mark.parametrize(("half", "refused", "accepted"), [("open", 1, 0), ("held_out", 3, 0)])
def test_loose_quotes_are_judged_in_both_directions(half: str, refused: int, accepted: int) -> None:
    """Harmless copies are found, but for those without their accents; changed, stitched and invented ones are not."""
    cases = [(row["match"], proves(row)) for row in rows("blind/quotes_loose.jsonl") if row["half"] == half]
    assert len(cases) >= 45
    assert sum(match and not found for match, found in cases) <= refused
    assert sum(found and not match for match, found in cases) <= accepted


def squeezed(text: str) -> str:
    return "".join(text.split())


def left_of(row: dict[str, Any]) -> str:
    """The summary after the removal of a fact."""
    facts = [fact(f"fact_{number}", text) for number, text in enumerate(row["facts"])]
    removed = facts.pop(row["remove"])
    name = next(iter(SECTIONS))
    purged = purge(document(*facts, **{name: row["summary"]}), [removed], "2026-11-22T00:00:00Z")
    return squeezed(summary(purged, name))


@pytest.mark.parametrize(("half", "least_gone", "most_lost"), [("open", 0.62, 1), ("heldout", 0.60, 0)])
def test_removals_are_judged_in_both_directions(half: str, least_gone: float, most_lost: int) -> None:
    """Sentences of a summary that say what was removed go, mostly paraphrased; sentences about something else stay."""
    gone, lost = [], []
    for row in rows(f"removal_blind/{half}.jsonl"):
        left = left_of(row)
        gone += [squeezed(text) not in left for text in row["must_go"]]
        lost += [squeezed(text) not in left for text in row["must_stay"]]
    assert len(gone) >= 100
    assert len(lost) >= 160
    assert sum(gone) / len(gone) >= least_gone, f"{sum(gone)} of {len(gone)} are gone"
    assert sum(lost) <= most_lost, f"{sum(lost)} of {len(lost)} are lost"
