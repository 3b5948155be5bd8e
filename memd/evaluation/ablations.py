"""Ablations: the same measurement with one part of the search left out at a time, for the share of each to be seen.

Only a memory with what was said around its facts has them all; nothing in the search itself knows of ablations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from memd.config import RecallSettings
from memd.evaluation.retrieval import Score, SetResult, by_kind, by_part, measure
from memd.evaluation.retrieval_memory import MemdMemory, Memories
from memd.evaluation.retrieval_sets import Labelled
from memd.recall.domains import Limits
from memd.recall.fields import entries_of
from memd.recall.index import Index
from memd.recall.periods import NO_PERIOD, Period
from memd.recall.ranking import Indexed
from memd.recall.search import Found, everything, rank
from memd.recall.vectors import Vectors, load_embedder


class _NoExcerpts(MemdMemory):
    excerpts = False


class _NoContext(MemdMemory):
    def opened(self, memory: Indexed) -> Indexed:
        return Indexed(memory.memory)


class _FactsAlone(_NoContext):
    excerpts = False


class _WithoutDay(Indexed):
    """The day said is not indexed; what was said later is still known to be newer."""

    @cached_property
    def indexes(self) -> Sequence[Index]:
        found = [{**fact, "saidAt": "", "createdAt": ""} for fact in self.memory.found]
        return (Index(entries_of(found, self.around)),)


class _NoDay(MemdMemory):
    def opened(self, memory: Indexed) -> Indexed:
        return _WithoutDay(memory.memory, [replace(around, speaker="") for around in memory.around])


class _NoPeriods(MemdMemory):
    def period(self, query: str, now: datetime, memory: Indexed) -> Period:
        return NO_PERIOD


class _NotNewerFirst(MemdMemory):
    def ranked(self, memory: Indexed, query: str, period: Period, cosines: Mapping[int, float] | None) -> list[Found]:
        # A question about the past is the one for which the search itself puts nothing newer first.
        without = memory.left_out((), past=period.past)
        return rank(memory, everything(query), cosines, without, period._replace(past=True))


class _WithoutLimits(Indexed):
    @cached_property
    def limits(self) -> Limits:
        return Limits(())


class _NoLimits(MemdMemory):
    def opened(self, memory: Indexed) -> Indexed:
        return _WithoutLimits(memory.memory, memory.around)


ABLATIONS: Mapping[str, type[MemdMemory]] = {
    "all": MemdMemory,
    "without excerpts": _NoExcerpts,
    "without what was said around": _NoContext,
    "without excerpts and what was said around": _FactsAlone,
    "without the day said": _NoDay,
    "without periods of questions": _NoPeriods,
    "without newer before older": _NotNewerFirst,
    "without constraints for requests": _NoLimits,
}
"""The parts of the search that can be left out, by the name of what remains."""

WITHOUT_VECTORS = "without vectors"


class Ablations:
    """The measurements of one labelled set, with each part left out in turn where the set has turns."""

    def __init__(self, labelled: Labelled, settings: RecallSettings) -> None:
        """Raises ConfigError for an embedder that cannot be loaded."""
        self._labelled = labelled
        self._memories = Memories(labelled)
        self._settings = settings
        self._vectors = Vectors(load_embedder(settings.embedder)) if settings.embedder else None

    @property
    def names(self) -> list[str]:
        """What is measured: with everything first."""
        if not any(self._labelled.turns.values()):
            return ["all"]
        return [*ABLATIONS, *([WITHOUT_VECTORS] if self._vectors else [])]

    @property
    def steps(self) -> int:
        """How many questions are asked, in all measurements together."""
        return len(self.names) * len(self._labelled.questions)

    def measure(self, max_tokens: int, progress: Callable[..., None] | None = None) -> dict[str, list[SetResult]]:
        """The results of each measurement. `progress` is called after each question."""
        return {name: measure(self._labelled, self._memory(name), max_tokens, progress) for name in self.names}

    def _memory(self, name: str) -> MemdMemory:
        vectors = None if name == WITHOUT_VECTORS else self._vectors
        return ABLATIONS.get(name, MemdMemory)(self._memories, self._settings, vectors)


def figures(found: Mapping[str, Sequence[SetResult]]) -> dict[str, Any]:
    """The figures of each measurement, by part and kind, for JSON."""
    return {
        name: {part: _figures(by_kind(score.results)) for part, score in by_part(results).items()}
        for name, results in found.items()
    }


def _figures(scores: Mapping[str, Score]) -> dict[str, Any]:
    return {name: score.figures() for name, score in scores.items()}


def head(found: Mapping[str, Sequence[SetResult]], part: str) -> list[str]:
    """The columns of the table of one part."""
    return [part, "R@10", "MRR", "coverage", "newer first", *_kinds(found["all"])]


def rows(found: Mapping[str, Sequence[SetResult]], part: str) -> Iterator[list[str]]:
    """The table of one part: a measurement a row, of each kind R@10 and coverage."""
    for name, results in found.items():
        kinds = by_kind(by_part(results)[part].results)
        of_all = kinds["all"].figures()
        newer = of_all.get("newer_first")
        shown = [f"{of_all[mean]:.3f}" for mean in ("recall@10", "MRR", "coverage")]
        cells = (kinds[kind].figures() if kind in kinds else None for kind in _kinds(found["all"]))
        yield [
            name,
            *shown,
            f"{newer['yes']}/{newer['of']}" if newer else "-",
            *(f"{cell['recall@10']:.2f} {cell['coverage']:.2f}" if cell else "-" for cell in cells),
        ]


def _kinds(results: Sequence[SetResult]) -> list[str]:
    return [kind for kind in dict.fromkeys(result.question.kind for result in results) if kind]
