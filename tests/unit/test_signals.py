"""Signals: found where people mean them, silent where they only use the words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.context import SIGNALS, Message, identify
from memd.errors import ConfigError
from memd.push.signals import load_patterns, with_signals

DATA = Path(__file__).parents[1] / "data" / "signals"
BLIND = DATA.parent / "blind" / "signals.jsonl"
PATTERNS = load_patterns()


def scores(part: str, signal: str) -> tuple[float, float]:
    """Precision and recall of a signal on a part of the labelled set."""
    rows = [json.loads(line) for line in (DATA / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [(signal in PATTERNS.detect(row["text"]), signal in row["signals"]) for row in rows]
    hits = sum(got and wanted for got, wanted in found)
    return hits / max(1, sum(got for got, _ in found)), hits / max(1, sum(wanted for _, wanted in found))


@pytest.mark.parametrize("part", ["development", "heldout"])
def test_corrections_are_found_and_nothing_else_is_taken_for_one(part: str) -> None:
    """Precision ≥ 0.95 and recall ≥ 0.8, also on the part that was not looked at while the patterns were written."""
    precision, recall = scores(part, "correction")
    assert precision >= 0.95
    assert recall >= 0.8


@pytest.mark.parametrize(
    ("half", "signal", "hits", "false", "missed"),
    [
        ("open", "correction", 29, 2, 0),
        ("held_out", "correction", 24, 3, 14),
        ("open", "reinforcement", 20, 0, 1),
        ("held_out", "reinforcement", 10, 3, 11),
    ],
)
def test_signals_after_the_turn_before(half: str, signal: str, hits: int, false: int, missed: int) -> None:
    """On cases written before the rules, most of them without a marker: false alarms beside misses."""
    lines = BLIND.read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["half"] == half]
    found = [(signal in PATTERNS.detect(row["text"], row["before"]), row[signal]) for row in rows]
    assert sum(got and wanted for got, wanted in found) >= hits
    assert sum(got and not wanted for got, wanted in found) <= false
    assert sum(wanted and not got for got, wanted in found) <= missed


@pytest.mark.parametrize(
    ("before", "text", "signals"),
    [
        (None, "No, I meant the second one", set()),
        (None, "perfect, exactly what I needed", set()),
        ("Is this for work?", "Actually it's for my nephew", set()),
        ("这是给您自己用的吗？", "不是，给我妈的", set()),
        ("The meeting is on Tuesday.", "Actually it's on Friday", {"correction"}),
        ("It was signed in 1492.", "1494.", {"correction"}),
        ("How was the film?", "Perfect! Exactly what we needed", set()),
        ("I wrote it in short sentences.", "Is it perfect now?", set()),
        ("I wrote it in short sentences.", "my boss says your answer is perfect", set()),
        ("I wrote it in short sentences.", "perfect, keep writing like that", {"reinforcement"}),
        ("Here is the letter. Shall I send it?", "no, you got my name wrong", {"correction"}),
    ],
)
def test_what_the_assistant_said_before_decides(before: str | None, text: str, signals: set[str]) -> None:
    """Without a turn before nothing is corrected; after a question "no" answers, and praise is of something else."""
    assert PATTERNS.detect(text, before) & {"correction", "reinforcement"} == signals


def test_signals_are_found_over_the_whole_claim() -> None:
    """With the turn before, in the last six messages of the user, beside what the producer named."""
    wrong = "No, that's wrong, I meant the second one."
    turns = [Message("assistant", "It is the first one."), Message("user", wrong, signals=frozenset({"goal"}))]
    thread = identify("t", [*turns, *(Message("user", f"message number {n}") for n in range(6))])
    assert with_signals(thread[:2], thread[:2], PATTERNS)[1].signals == {"goal", "correction"}
    assert with_signals(thread[1:2], thread[:2], PATTERNS)[0].signals == {"goal", "correction"}
    assert with_signals(thread[1:2], thread[1:2], PATTERNS)[0].signals == {"goal"}
    assert with_signals(thread, thread, PATTERNS)[1].signals == {"goal"}


def test_the_labelled_set_is_large_and_its_parts_are_apart() -> None:
    """At least 300 utterances, both languages in each part, no text in both."""
    parts = {
        part: [json.loads(line) for line in (DATA / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()]
        for part in ("development", "heldout")
    }
    texts = [row["text"] for rows in parts.values() for row in rows]
    assert len(texts) == len(set(texts)) >= 300
    for rows in parts.values():
        assert {row["lang"] for row in rows} == {"en", "zh"}
        assert {signal for row in rows for signal in row["signals"]} <= set(SIGNALS)


@pytest.mark.parametrize(
    "text",
    [
        "对不起",
        "对不起，我来晚了",
        "sort the redo log",
        "不对称加密",
        "不对称加密怎么实现",
        "no problem",
        "没错",
        "ok",
        "谢谢",
    ],
)
def test_words_that_only_look_like_a_signal_are_none(text: str) -> None:
    """ "对不起" is not agreement; "sort the redo log" and "不对称加密" are no corrections."""
    assert PATTERNS.detect(text) == frozenset()


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("no, I meant the second one", "correction"),
        ("No， I meant the second one！", "correction"),
        ("Thanks for that. But that's not what I asked.", "correction"),
        ("不對，我說的是臺北", "correction"),
        ("perfect, exactly what I needed", "reinforcement"),
        ("就是这样，很好", "reinforcement"),
    ],
)
def test_each_signal_is_found_in_both_languages(text: str, signal: str) -> None:
    """The plain case of each signal, with full-width punctuation and traditional characters too."""
    assert signal in PATTERNS.detect(text)


@pytest.mark.parametrize("text", ["I prefer tabs", "我在一家医院工作", "I want to run a marathon", "那就定下来用方案B"])
def test_only_corrections_and_praise_are_looked_for(text: str) -> None:
    """The other signals are a producer's, or those of patterns of your own: no worth of theirs could be shown."""
    assert PATTERNS.detect(text) == frozenset()
    assert {signal for signal, _ in PATTERNS.rules} == {"correction", "reinforcement", "harmless", "answer"}


def test_words_in_code_and_quotations_are_not_said() -> None:
    """What stands in code or quotation marks is talked about."""
    assert PATTERNS.detect('What does "no, that\'s wrong" mean?') == frozenset()
    assert PATTERNS.detect("```\n# wrong file, use the other\n```\nWhat does this do?") == frozenset()


def test_own_patterns_are_added_or_replace(tmp_path: Path) -> None:
    """A folder with YAML files adds to a signal, or replaces all of it."""
    (tmp_path / "pt.yaml").write_text("correction:\n  any: ['^não era isso']\n", encoding="utf-8")
    added = load_patterns(tmp_path)
    assert added.detect("Não era isso que eu queria") == {"correction"}
    assert "correction" in added.detect("no, I meant the second one")
    (tmp_path / "pt.yaml").write_text("correction:\n  replace:\n    any: ['^não era isso']\n", encoding="utf-8")
    replaced = load_patterns(tmp_path)
    assert replaced.detect("Não era isso que eu queria") == {"correction"}
    assert "correction" not in replaced.detect("no, I meant the second one")


def test_patterns_are_built_from_fragments_of_all_files(tmp_path: Path) -> None:
    """A fragment is a list of alternatives; each file may add some, and an escaped brace is a brace."""
    (tmp_path / "es.yaml").write_text(
        "fragments:\n  negation: ['no era']\ncorrection:\n  any: ['^{negation} eso', '^\\{negation}']\n",
        encoding="utf-8",
    )
    (tmp_path / "pt.yaml").write_text("fragments:\n  negation: ['não era']\n", encoding="utf-8")
    loaded = load_patterns(tmp_path)
    assert loaded.detect("No era eso") == {"correction"}
    assert loaded.detect("Não era eso") == {"correction"}
    assert loaded.detect("{negation}") == {"correction"}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("correction:\n  any:\n    - 'fine'\n    - '(('\n", 4, "not a pattern"),
        ("praise:\n  any: []\n", 1, "no such signal"),
        ("correction:\n  sometimes: []\n", 2, "expected any"),
        ("correction: ['x']\n", 1, "expected names"),
        ("correction:\n  any: x\n", 2, "expected a list"),
        ("correction: [\n", 2, "not YAML"),
        ("correction:\n  any: ['{nobody}']\n", 2, "no such fragment: nobody"),
        ("fragments: ['x']\n", 1, "expected names"),
        ("fragments:\n  verb: x\n", 2, "expected a list"),
    ],
)
def test_a_bad_pattern_stops_the_start_with_file_and_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    """The error names the file, the line and what is wrong."""
    file = tmp_path / "own.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(f"{file}, line {line}: {problem}")):
        load_patterns(tmp_path)


@pytest.mark.timeout(60)
@given(st.text(max_size=3_000))
def test_any_text_has_signals_or_none(text: str) -> None:
    """Detection is total, and no pattern hangs."""
    assert PATTERNS.detect(text) <= set(SIGNALS)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["no " * 1_000, "not , " * 500, "i " * 1_000, "我" * 2_000, "不是" * 1_000, "my " * 900, "," * 2_000]
)
def test_hostile_text_does_not_hang(text: str) -> None:
    """Rows of trigger words are read in time: what is not linear would be ended by the time limit."""
    assert PATTERNS.detect(text) <= set(SIGNALS)
