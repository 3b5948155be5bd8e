"""Learning: the weights of the order gate, from labelled sentences (memd/memory/gates/harm.py).

python -m memd.evaluation.order_learning [FOLDER]    learns from the folder `evaluation`, and writes the weights

The sentences are those of `orders/*.jsonl`, of the open attacks and true statements, and what people said and a memory
made of it in the open sets. No held-out case is read. How many are refused wrongly is measured on each writer's
sentences with weights that were learned from the others'; the limits come from there.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, get_args

import numpy as np
from scipy.sparse import csr_matrix  # an extra of its own: only who changes the sentences learns anew
from sklearn.linear_model import LogisticRegression

from memd.evaluation.attack_cases import read_cases
from memd.extraction.offline.sentences import sentence_ends
from memd.memory.gates.harm import NUMBERS, PLACES, WEIGHTS, Kind, places_of_quote, places_of_sentence
from memd.memory.gates.readings import plain
from memd.push.shapes import to_turn

STRENGTH = 30.0
"""The inverse of the regularisation; of 3, 10, 30 and 40 the last two are equal and the best."""

REFUSED: Mapping[Kind, float] = {"fact": 0.025, "text": 0.01, "said": 0.02}
"""The share of true sentences that are close to orders and that may be refused, on writers that were not learned from."""

ANCHORS = "orders/known"
"""The sentences that the gate was asked for by name, and those that tests have named since."""

ANCHOR = 3.0
"""How many others one of them weighs."""

STEPS = 127
"""The largest weight as a signed byte."""

NEAR = ("orders",)
"""The folders whose true sentences are close to orders, so that limits are set by them."""

NO_STATEMENTS = frozenset({"permission", "order", "pasted", "fiction", "quoted"})
"""Sessions with such texts do not only hold statements."""


class Labelled(NamedTuple):
    """One labelled sentence: a fact with its quote, or one of the two alone."""

    writer: str
    is_order: bool
    content: str
    quote: str


def sentences(folder: Path) -> list[Labelled]:
    """All sentences to learn from. Raises BadLabels."""
    return [*_near(folder), *_cases(folder), *_facts(folder), *_memories(folder), *_turns(folder)]


def sources(folder: Path) -> list[Path]:
    """The files that they stand in."""
    patterns = (
        "orders/*.jsonl", "attacks/open/*.jsonl", "statements/open/*.jsonl", "blind/attacks/open/*.jsonl",
        "blind/statements/open/*.jsonl", "replies/open/*.jsonl", "blind/replies/open/*.jsonl", "retrieval/open/*/*.jsonl",
        "sets/open/*.jsonl", "blind/sets/open/*.jsonl", "changes/sets/open/*.jsonl",
    )  # fmt: skip
    return sorted(file for pattern in patterns for file in folder.glob(pattern))


def digest(folder: Path) -> str:
    """Of the files that the weights were learned from; it tells whether they still are."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources(folder))).hexdigest()[:16]


def learn(known: Sequence[Labelled]) -> tuple[np.ndarray[Any, Any], float]:
    """The weight of each place, and the bias.

    Each fact is learned from whole, without its quote, and by its quote; an order also with what somebody else said,
    so that no harmless quote makes it harmless.
    """
    strange = [one.quote for one in known if not one.is_order and not one.writer.startswith(NEAR) and one.quote]
    chance = Random(0)
    rows = [each for one in known for each in _readings(one)]
    rows += [one._replace(quote=chance.choice(strange)) for one in known if one.is_order and one.content and one.quote]
    model = LogisticRegression(C=STRENGTH, max_iter=3_000, solver="liblinear", random_state=0)
    weight = [ANCHOR if one.writer == ANCHORS else 1.0 for one in rows]
    model.fit(_matrix(rows), [one.is_order for one in rows], weight)
    return model.coef_[0], float(model.intercept_[0])


def limits(known: Sequence[Labelled]) -> dict[Kind, float]:
    """The log-odds from which on sentences are refused: so that of each kind no more than REFUSED true ones are."""
    found: dict[Kind, list[float]] = {kind: [] for kind in get_args(Kind)}
    for writer in sorted({one.writer for one in known if one.writer.startswith(NEAR)}):
        learned = learn([one for one in known if one.writer != writer])
        true = [one for one in known if one.writer == writer and not one.is_order]
        for kind, scores in found.items():
            scores += list(_scores(learned, [_as(kind, one) for one in true]))
    return {kind: float(np.quantile(scores, 1 - REFUSED[kind])) for kind, scores in found.items()}


def main(words: Sequence[str]) -> int:
    """Learn, and write the weights and what belongs to them."""
    folder = Path(words[0] if words else "evaluation")
    known = sentences(folder)
    weights, bias = learn(known)
    scale = float(np.abs(weights).max()) / STEPS
    WEIGHTS.write_bytes(np.round(weights / scale).astype(np.int8).tobytes())
    numbers = {
        "scale": scale,
        "bias": bias,
        "limits": limits(known),
        "orders": sum(one.is_order for one in known),
        "statements": sum(not one.is_order for one in known),
        "sources": digest(folder),
    }
    NUMBERS.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(numbers, indent=2))
    return 0


def _readings(one: Labelled) -> list[Labelled]:
    if not one.content or not one.quote:
        return [one]
    return [one, _as("text", one), _as("said", one), one._replace(content=one.quote)]


def _as(kind: Kind, one: Labelled) -> Labelled:
    return one if kind == "fact" else one._replace(quote="") if kind == "text" else one._replace(content="")


@cache
def _places(content: str, quote: str) -> list[int]:
    return [*sorted(places_of_sentence(plain(content))), *sorted(places_of_quote(plain(quote)))]


def _matrix(rows: Sequence[Labelled]) -> csr_matrix:
    """A row for each sentence, of length one."""
    places = [_places(one.content, one.quote) for one in rows]
    values = [np.full(len(found), 1 / np.sqrt(max(1, len(found)))) for found in places]
    starts = np.cumsum([0, *map(len, places)])
    return csr_matrix((np.concatenate(values), np.concatenate(places), starts), shape=(len(rows), PLACES))


def _scores(learned: tuple[np.ndarray[Any, Any], float], rows: Sequence[Labelled]) -> Iterable[float]:
    weights, bias = learned
    return map(float, _matrix(rows) @ weights + bias)


def _lines(files: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(files):
        writer = f"{file.parent.name}/{file.stem}"
        yield from ((writer, json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines())


def _near(folder: Path) -> Iterator[Labelled]:
    for writer, line in _lines(folder.glob("orders/*.jsonl")):
        yield Labelled(writer, line["label"] == "attack", line["content"], line["quote"])


def _cases(folder: Path) -> Iterator[Labelled]:
    """The open attacks, as an obedient model writes them, and the true statements."""
    parts = [part for root in (folder, folder / "blind") for part in (root / "attacks/open", root / "statements/open")]
    for line in read_cases(parts):
        case = line.value
        is_attack = case.label == "attack"
        if case.kind == "secret":  # another gate's
            continue
        for fact in case.reply("obedient" if is_attack else "honest").reply["newFacts"]:
            yield Labelled(f"case/{line.file.stem}", is_attack, fact["content"], fact["evidence"][0]["quote"])


def _facts(folder: Path) -> Iterator[Labelled]:
    """What people who answered requests took for facts."""
    for writer, line in _lines([*folder.glob("replies/open/*.jsonl"), *folder.glob("blind/replies/open/*.jsonl")]):
        reply = line.get("reply", {})
        for fact in reply.get("reply", reply).get("newFacts", ()):
            if fact.get("authority", "descriptive") == "descriptive" and fact.get("evidence"):
                yield Labelled(writer, False, fact["content"], fact["evidence"][0]["quote"])
                for aside in filter(None, (fact.get("sourceError"), fact.get("backstory"))):
                    yield Labelled(writer, False, aside, "")


def _memories(folder: Path) -> Iterator[Labelled]:
    for writer, line in _lines(folder.glob("retrieval/open/*/memory.jsonl")):
        if "category" in line:
            quotes = [one["quote"] for one in line.get("evidence", ()) if isinstance(one, dict)]
            yield Labelled(writer, False, line["text"], quotes[0] if quotes else "")


def _turns(folder: Path) -> Iterator[Labelled]:
    """The sentences that users say where nothing but statements is said."""
    sets = (folder.glob(f"{part}sets/open/*.jsonl") for part in ("", "blind/", "changes/"))
    for writer, user in _lines(file for files in sets for file in files):
        for session in user["sessions"]:
            if NO_STATEMENTS.isdisjoint(one.get("kind") for one in session.get("must_not", ())):
                for turn in map(to_turn, session["messages"]):
                    yield from _said(writer, turn.text if turn.kind == "user" else "")
    for writer, line in _lines(folder.glob("retrieval/open/*/said.jsonl")):
        yield from _said(writer, line.get("text", ""))


def _said(writer: str, text: str) -> Iterator[Labelled]:
    start = 0
    for end in sentence_ends(text):
        sentence, start = text[start:end].strip(), end
        if sentence:
            yield Labelled(writer, False, "", sentence)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
