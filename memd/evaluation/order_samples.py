"""Samples: the labelled sentences that the order gate is learned from. No held-out case is read.

They are those of `orders/*.jsonl`, of the open attacks and true statements, and what people said and a memory made of
it in the open sets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memd.evaluation.attack_cases import read_cases
from memd.memory.gates.instructions import is_markup
from memd.memory.gates.readings import is_hidden
from memd.push.sentence_ends import sentence_ends
from memd.push.shapes import to_turn

NO_STATEMENTS = frozenset({"permission", "order", "pasted", "fiction", "quoted"})
"""Sessions with such texts do not only hold statements."""


class Sample(NamedTuple):
    """One labelled sentence: a fact with its quote, or one of the two alone."""

    writer: str
    is_order: bool
    content: str
    quote: str


def samples(folder: Path) -> list[Sample]:
    """All sentences to learn from. Raises BadLabels."""
    found = [*_near(folder), *_cases(folder), *_facts(folder), *_memories(folder), *_turns(folder)]
    return [one for one in found if not (one.is_order and _is_caught(one))]


def sources(folder: Path) -> list[Path]:
    """The files that they stand in."""
    patterns = (
        "orders/*.jsonl", "attacks/open/*.jsonl", "statements/open/*.jsonl", "blind/attacks/open/*.jsonl",
        "blind/statements/open/*.jsonl", "replies/open/*.jsonl", "blind/replies/open/*.jsonl",
        "retrieval/open/*/*.jsonl", "sets/open/*.jsonl", "blind/sets/open/*.jsonl", "changes/sets/open/*.jsonl",
    )  # fmt: skip
    return sorted(file for pattern in patterns for file in folder.glob(pattern))


def digest(folder: Path) -> str:
    """Of the files that the weights were learned from; it tells whether they still are."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources(folder))).hexdigest()[:16]


def _lines(files: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(files):
        writer = f"{file.parent.name}/{file.stem}"
        yield from ((writer, json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines())


def _is_caught(one: Sample) -> bool:
    """Whether patterns stop it: what it hides or marks up says nothing about the words around that."""
    return any(is_hidden(text) or is_markup(text) for text in (one.content, one.quote))


def _near(folder: Path) -> Iterator[Sample]:
    for writer, line in _lines(folder.glob("orders/*.jsonl")):
        yield Sample(writer, line["label"] == "attack", line["content"], line["quote"])


def _cases(folder: Path) -> Iterator[Sample]:
    """The open attacks, as an obedient model writes them, and the true statements."""
    parts = [part for root in (folder, folder / "blind") for part in (root / "attacks/open", root / "statements/open")]
    for line in read_cases(parts):
        case = line.value
        is_attack = case.label == "attack"
        if case.kind == "secret":  # another gate's
            continue
        reply = case.reply("obedient" if is_attack else "honest").reply or {}
        for fact in reply["newFacts"]:
            yield Sample(f"case/{line.file.stem}", is_attack, fact["content"], fact["evidence"][0]["quote"])


def _facts(folder: Path) -> Iterator[Sample]:
    """What people who answered requests took for facts."""
    for writer, line in _lines([*folder.glob("replies/open/*.jsonl"), *folder.glob("blind/replies/open/*.jsonl")]):
        reply = line.get("reply", {})
        for fact in reply.get("reply", reply).get("newFacts", ()):
            if fact.get("authority", "descriptive") == "descriptive" and fact.get("evidence"):
                yield Sample(writer, False, fact["content"], fact["evidence"][0]["quote"])
                for aside in filter(None, (fact.get("sourceError"), fact.get("backstory"))):
                    yield Sample(writer, False, aside, "")


def _memories(folder: Path) -> Iterator[Sample]:
    for writer, line in _lines(folder.glob("retrieval/open/*/memory.jsonl")):
        if "category" in line:
            quotes = [one["quote"] for one in line.get("evidence", ()) if isinstance(one, dict)]
            yield Sample(writer, False, line["text"], quotes[0] if quotes else "")


def _turns(folder: Path) -> Iterator[Sample]:
    """The sentences that users say where nothing but statements is said."""
    sets = (folder.glob(f"{part}sets/open/*.jsonl") for part in ("", "blind/", "changes/"))
    for writer, user in _lines(file for files in sets for file in files):
        for session in user["sessions"]:
            if NO_STATEMENTS.isdisjoint(one.get("kind") for one in session.get("must_not", ())):
                for turn in map(to_turn, session["messages"]):
                    yield from _said(writer, turn.text if turn.kind == "user" else "")
    for writer, line in _lines(folder.glob("retrieval/open/*/said.jsonl")):
        yield from _said(writer, line.get("text", ""))


def _said(writer: str, text: str) -> Iterator[Sample]:
    start = 0
    for end in sentence_ends(text):
        sentence, start = text[start:end].strip(), end
        if sentence:
            yield Sample(writer, False, "", sentence)
