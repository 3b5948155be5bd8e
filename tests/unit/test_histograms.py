"""Histograms and calls by model, which are counters of the inbox: both sides count alike, and labels are bounded."""

from __future__ import annotations

import re
from collections import Counter

from memd.inbox.histograms import BOUNDS_MS, DURATIONS, observed, read_histograms
from memd.inbox.library import libraries
from memd.inbox.model_calls import MOST_CODES, MOST_MODELS, OTHERS, read_model_calls


def test_the_functions_have_the_same_bounds() -> None:
    """The server counts waits, workers the other durations."""
    [written] = {
        found for code in libraries().values() for found in re.findall(r"local BOUNDS = \{ ([\d, ]+) \}", code)
    }
    assert tuple(map(int, written.split(","))) == BOUNDS_MS


def test_what_is_observed_is_read() -> None:
    """Each bound has all that took at most so long; what is longer is in the total alone; a clock set back is zero."""
    stats = Counter[str]()
    for seconds in (-1, 0.005, 0.006, 3_600, 5_000):
        stats.update(observed("commit", seconds))
    found = read_histograms(stats)
    counts = dict(found["commit"].counts)
    assert [counts[bound] for bound in (0.005, 0.01, 900, 3_600)] == [2, 3, 3, 4]
    assert (found["commit"].total, found["commit"].seconds) == (5, 8_600.011)
    assert {found[duration].total for duration in DURATIONS if duration != "commit"} == {0}


def test_models_and_codes_are_bounded() -> None:
    """The most used keep their names, the others are one row: no endpoint can make as many labels as it likes."""
    stats = {f"called:m{number}": 100 - number for number in range(MOST_MODELS + 5)}
    stats |= {f"failed:code_{number}:m0": 50 - number for number in range(MOST_CODES + 5)}
    found = read_model_calls(stats)
    assert len(found) == MOST_MODELS + 1
    assert found[OTHERS].calls == sum(100 - number for number in range(MOST_MODELS, MOST_MODELS + 5))
    assert len(found["m0"].failures) == MOST_CODES + 1
    assert sum(found["m0"].failures.values()) == sum(50 - number for number in range(MOST_CODES + 5))


def test_a_model_may_have_colons() -> None:
    """Names of counters have the model last; tokens of batches are among the others."""
    name = "vendor.model:0"
    found = read_model_calls({f"used:input:{name}": 3, f"used:batch_input:{name}": 4, f"failed:timeout:{name}": 1})
    assert (found[name].tokens["input"], found[name].failures) == (7, {"timeout": 1})
