"""Learning: the weights of the order gate, from labelled sentences (memd/memory/gates/harm.py).

python -m memd.evaluation.order_learning [FOLDER]    learns from the folder `evaluation`, and writes the weights

How many sentences are refused wrongly is measured on each writer's with weights that were learned from the others'; the
limits come from there. It needs scikit-learn (`pip install memd[learning]`); nothing that runs does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np
from scipy.sparse import csr_matrix  # an extra of its own: only who changes the sentences learns anew
from sklearn.linear_model import LogisticRegression

from memd.evaluation.order_samples import Sample, digest, samples
from memd.memory.gates.harm import NUMBERS, PLACES, WEIGHTS, Kind, pieces, places_of_quote, places_of_sentence
from memd.memory.gates.readings import plain

STRENGTH = 30.0
"""The inverse of the regularisation; of 3, 10, 30 and 40 the last two are equal and the best."""

RARITY = 5.0
"""What the inverse document frequency of a place is divided by: rare words may weigh more than common ones. With it two
attacks fewer in a hundred pass."""

REFUSED: Mapping[Kind, float] = {"fact": 0.018, "bare": 0.007, "text": 0.03, "said": 0.03}
"""The share of true sentences close to orders that may be refused, on writers that were not learned from."""

ANCHORS = "orders/known"
"""The sentences that the gate was asked for by name, and those that tests have named since."""

ANCHOR = 25.0
"""How many others one of them weighs."""

FOLDS = 8
"""Groups of writers, each of which is left out in turn."""

STEPS = 127
"""The largest weight as a signed byte."""

NEAR = ("orders",)
"""The folders whose true sentences are close to orders, so that limits are set by them."""


def learn(known: Sequence[Sample]) -> tuple[np.ndarray[Any, Any], float]:
    """The weight of each place, and the bias.

    Each fact is learned from whole, without its quote, and by its quote; an order also with what somebody else said,
    so that no harmless quote makes it harmless.
    """
    strange = [one.quote for one in known if not one.is_order and not one.writer.startswith(NEAR) and one.quote]
    chance = Random(0)  # noqa: S311  (the same choice each time, and no secret)
    rows = [each for one in known for each in _readings(one)]
    rows += [one._replace(quote=chance.choice(strange)) for one in known if one.is_order and one.content and one.quote]
    model = LogisticRegression(C=STRENGTH, max_iter=3_000, solver="liblinear", random_state=0)
    weight = [ANCHOR if one.writer == ANCHORS else 1.0 for one in rows]
    found = _matrix(rows)
    rarity = np.log((len(rows) + 1) / (found.getnnz(axis=0) + 1)) / RARITY
    model.fit(found.multiply(rarity).tocsr(), [one.is_order for one in rows], weight)
    return model.coef_[0] * rarity, float(model.intercept_[0])


def limits(known: Sequence[Sample]) -> dict[Kind, float]:
    """The log-odds from which on sentences are refused: so that of each kind no more than REFUSED true ones are."""
    found: dict[Kind, list[float]] = {kind: [] for kind in get_args(Kind)}
    writers = sorted({one.writer for one in known if one.writer.startswith(NEAR)})
    for away in (writers[fold::FOLDS] for fold in range(FOLDS)):
        learned = learn([one for one in known if one.writer not in away])
        true = [one for one in known if one.writer in away and not one.is_order]
        for kind in found:
            found[kind] += _highest(learned, [_pieces(_as(kind, one)) for one in true])
    return {kind: float(np.quantile(scores, 1 - REFUSED[kind])) for kind, scores in found.items()}


def main(words: Sequence[str]) -> int:
    """Learn, and write the weights and what belongs to them."""
    folder = Path(words[0] if words else "evaluation")
    known = samples(folder)
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
    sys.stdout.write(f"{json.dumps(numbers, indent=2)}\n")
    return 0


def _readings(one: Sample) -> list[Sample]:
    if not one.quote:
        return [one]
    if not one.content:  # what an extractor copies
        return [one, one._replace(content=one.quote)]
    return [one, _as("text", one), _as("said", one), one._replace(content=one.quote)]


def _pieces(one: Sample) -> list[Sample]:
    """What the gate looks at: the sentence and its clauses, each with the whole quote."""
    if not one.content:
        return [one._replace(quote=piece) for piece in pieces(plain(one.quote))]
    return [one._replace(content=piece) for piece in pieces(plain(one.content))]


def _as(kind: Kind, one: Sample) -> Sample:
    return one if kind == "fact" else one._replace(content="") if kind == "said" else one._replace(quote="")


@cache
def _places(content: str, quote: str) -> list[int]:
    return [*sorted(places_of_sentence(plain(content))), *sorted(places_of_quote(plain(quote)))]


def _matrix(rows: Sequence[Sample]) -> csr_matrix:
    """A row for each sentence, of length one."""
    places = [_places(one.content, one.quote) for one in rows]
    values = [np.full(len(found), 1 / np.sqrt(max(1, len(found)))) for found in places]
    starts = np.cumsum([0, *map(len, places)])
    return csr_matrix((np.concatenate(values), np.concatenate(places), starts), shape=(len(rows), PLACES))


def _scores(learned: tuple[np.ndarray[Any, Any], float], rows: Sequence[Sample]) -> Iterable[float]:
    weights, bias = learned
    return map(float, _matrix(rows) @ weights + bias)


def _highest(learned: tuple[np.ndarray[Any, Any], float], rows: Sequence[Sequence[Sample]]) -> list[float]:
    """The highest score of each row, which stands for one sentence; those too short to be judged are left out."""
    rows = [row for row in rows if row]
    if not rows:
        return []
    scores = iter(_scores(learned, [piece for row in rows for piece in row]))
    return [max(next(scores) for _ in row) for row in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
