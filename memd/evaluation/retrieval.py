"""Retrieval: how well a memory finds the evidence for a question: recall@k, MRR, and coverage of the injected block.

recall@k: the share of a question's evidence among the first k results, averaged over all questions. MRR: the mean of
1 / rank of the first piece of evidence, 0 beyond rank 20. coverage: the share of a question's evidence in the injected
block within the token budget, averaged over all questions. newer first: of the questions with a stale value, those
whose evidence is above it. memd/evaluation/retrieval_sets.py describes the files.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memd.evaluation.retrieval_sets import EvidenceQuestion, Labelled
from memd.memory.text import fold

DEPTHS = (1, 5, 10, 20)


class AskedMemory(Protocol):
    """A memory to measure."""

    def search(self, question: EvidenceQuestion) -> list[str]:
        """The ids of the documents that answer the question, best first; the words of what is no document."""
        ...

    def block(self, question: EvidenceQuestion, max_tokens: int) -> str:
        """The text to inject into the next prompt."""
        ...


@dataclass(frozen=True)
class SetResult:
    """What a memory answered to one question. `recall`: by depth. `newer_first`: None where nothing is stale."""

    question: EvidenceQuestion
    recall: Mapping[int, float]
    reciprocal: float
    coverage: float
    newer_first: bool | None

    @property
    def is_missed(self) -> bool:
        """Whether no evidence is among the first five."""
        return self.reciprocal < 1 / DEPTHS[1]


class Score:
    """The means over some results."""

    def __init__(self, results: Iterable[SetResult]) -> None:
        self.results = list(results)

    def figures(self) -> dict[str, Any]:
        """The means; `newer_first`, as counts, only where a question has a stale value."""
        whole = {f"recall@{depth}": self._mean(_recall_at(depth)) for depth in DEPTHS}
        means = {
            "MRR": self._mean(lambda result: result.reciprocal),
            "coverage": self._mean(lambda result: result.coverage),
        }
        compared = [result.newer_first for result in self.results if result.newer_first is not None]
        newer = {"newer_first": {"yes": sum(compared), "of": len(compared)}} if compared else {}
        return {"questions": len(self.results), **whole, **means, **newer}

    def _mean(self, value: Callable[[SetResult], float]) -> float:
        return sum(map(value, self.results)) / len(self.results)


def _recall_at(depth: int) -> Callable[[SetResult], float]:
    return lambda result: result.recall[depth]


def measure(
    labelled: Labelled, memory: AskedMemory, max_tokens: int, progress: Callable[[], None] | None = None
) -> list[SetResult]:
    """The result of each question. `progress` is called after each."""
    texts = {(group, fact["id"]): fold(fact["content"]) for group, facts in labelled.groups.items() for fact in facts}
    results = []
    for question in labelled.questions:
        words = {name: texts.get((question.group, name)) or question.answers.get(name) for name in question.evidence}
        block = fold(html.unescape(memory.block(question, max_tokens)))
        results.append(_result(question, memory.search(question), words, block))
        if progress:
            progress()
    return results


def _result(
    question: EvidenceQuestion, answer: Sequence[str], words: Mapping[str, str | None], block: str
) -> SetResult:
    """`words`: those of each piece of evidence; None where they are not known."""
    places = {name: _place(answer, name, question.answers.get(name)) for name in words}
    first = min(places.values())
    stale = min((_place(answer, name, None) for name in question.stale), default=None)
    return SetResult(
        question,
        {depth: sum(place < depth for place in places.values()) / len(words) for depth in DEPTHS},
        1 / (first + 1) if first < DEPTHS[-1] else 0.0,
        sum(text is not None and text in block for text in words.values()) / len(words),
        None if stale is None else first < stale or stale >= len(answer),
    )


def _place(answer: Sequence[str], name: str, words: str | None) -> int:
    """The place of a piece of evidence among the answers, by its id or its words; behind all when it is not there."""
    if name in answer:
        return answer.index(name)
    found = (place for place, text in enumerate(answer) if words is not None and words in fold(text))
    return next(found, max(len(answer), DEPTHS[-1]))


def by_group(results: Sequence[SetResult]) -> dict[str, Score]:
    """The scores of each group, and of all groups together."""
    return {**grouped(results, lambda result: result.question.group), "all": Score(results)}


def by_part(results: Sequence[SetResult]) -> dict[str, Score]:
    """The scores of the open and of the held-out questions."""
    return grouped(results, lambda result: "held_out" if result.question.held_out else "open")


def by_kind(results: Sequence[SetResult]) -> dict[str, Score]:
    """The scores of all questions together, and of each kind."""
    return {"all": Score(results), **grouped(results, lambda result: result.question.kind)}


def grouped(results: Iterable[SetResult], name: Callable[[SetResult], str]) -> dict[str, Score]:
    """The scores of the results with the same name."""
    found: dict[str, list[SetResult]] = {}
    for result in results:
        found.setdefault(name(result), []).append(result)
    return {name: Score(same) for name, same in found.items()}


SCORE_HEAD = ("memory", "group", "questions", *(f"R@{depth}" for depth in DEPTHS), "MRR", "coverage")


def score_rows(found: Mapping[str, Mapping[str, Score]]) -> Iterator[list[str]]:
    """The scores of each memory and group, as rows under SCORE_HEAD."""
    for name, scores in found.items():
        for group, score in scores.items():
            figures = score.figures()
            means = [figures[f"recall@{depth}"] for depth in DEPTHS] + [figures["MRR"], figures["coverage"]]
            yield [name, group, str(figures["questions"]), *(f"{value:.3f}" for value in means)]
