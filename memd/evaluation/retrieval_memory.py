"""memd's own memory, measured: each group is the memory of one user, read at the time of the question."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from memd.config import RecallSettings
from memd.context import Bucket
from memd.evaluation.retrieval_sets import EvidenceQuestion, Labelled, Row
from memd.memory.document import Document, empty_document, facts_of
from memd.memory.facts import content_of, evidence_of, id_of
from memd.memory.said.marking import Changed, over_marks
from memd.memory.said.turns import Mark, Said, line_of
from memd.recall.edges import period_of
from memd.recall.inject import Lines, inject
from memd.recall.of_document import indexed, ranked, shown
from memd.recall.periods import Period
from memd.recall.ranking import Indexed
from memd.recall.search import Found
from memd.recall.vectors import Vectors


class Memories:
    """The memory of each group of a labelled set, as documents with what was said. Several measurements share it."""

    def __init__(self, labelled: Labelled) -> None:
        self._documents = {group: _document(labelled, group) for group in labelled.groups}
        self._said = {group: _said(labelled, group, document) for group, document in self._documents.items()}
        self._indexed: dict[tuple[str, datetime, bool], Indexed] = {}
        self.begun = datetime.now(UTC)

    def at(self, group: str, now: datetime, *, excerpts: bool) -> Indexed:
        """The memory of a group at a time, with its index; empty for an unknown group."""
        key = group, now, excerpts
        if key not in self._indexed:
            document = self._documents.get(group, empty_document(Bucket("nobody")))
            said = self._said.get(group, Said((), ()))
            self._indexed[key] = indexed(document, now, said, excerpts=excerpts)
        return self._indexed[key]


class MemdMemory:
    """memd itself. A subclass leaves a part out, for its share to be measured."""

    excerpts = True

    def __init__(self, memories: Memories, settings: RecallSettings, vectors: Vectors | None = None) -> None:
        """`vectors`: how texts are compared besides their words; None: not at all."""
        self._memories = memories
        self._settings = settings
        self._vectors = vectors
        self._opened: dict[int, Indexed] = {}
        self._last: tuple[EvidenceQuestion, Indexed, list[Found]] | None = None

    def search(self, question: EvidenceQuestion) -> list[str]:
        """The facts found, by their ids, and the excerpts, by their words."""
        _, hits = self._found(question)
        return [content_of(hit.fact) if hit.kind == "excerpt" else id_of(hit.fact) for hit in hits]

    def block(self, question: EvidenceQuestion, max_tokens: int) -> str:
        """The block for a prompt."""
        memory, hits = self._found(question)
        lines = Lines(memory.memory.document, self._settings)
        return inject(lines, self._settings, max_tokens, first=shown(memory, hits))

    def opened(self, memory: Indexed) -> Indexed:
        """The memory as it is searched."""
        return memory

    def period(self, query: str, now: datetime, memory: Indexed) -> Period:
        """The time that a question is about."""
        return period_of(query, now, memory)

    def ranked(self, memory: Indexed, query: str, period: Period, cosines: Mapping[int, float] | None) -> list[Found]:
        """What answers a question about this period."""
        return ranked(memory, query, period, cosines)

    def _found(self, question: EvidenceQuestion) -> tuple[Indexed, list[Found]]:
        if self._last is None or self._last[0] is not question:
            now = question.at or self._memories.begun
            excerpts = self.excerpts and self._settings.excerpt_tokens > 0
            memory = self._open(self._memories.at(question.group, now, excerpts=excerpts))
            self._last = question, memory, self._ranked(memory, question.text, now)
        return self._last[1:]

    def _open(self, whole: Indexed) -> Indexed:
        if id(whole) not in self._opened:
            self._opened[id(whole)] = self.opened(whole)
        return self._opened[id(whole)]

    def _ranked(self, memory: Indexed, query: str, now: datetime) -> list[Found]:
        cosines = None
        if self._vectors is not None:
            cosines = dict(enumerate(self._vectors.cosines(query, list(map(content_of, memory.memory.facts)))))
        return self.ranked(memory, query, self.period(query, now, memory), cosines)


def _document(labelled: Labelled, group: str) -> Document:
    """The memory document of a group. Facts name the turns that prove them as a drain writes it."""
    threads = {turn.id: turn.thread for turn in labelled.turns.get(group, ())}
    facts = [_proven(fact, threads) for fact in labelled.groups[group]]
    archive = [_proven(fact, threads) for fact in labelled.archived.get(group, ())]
    return {**empty_document(Bucket(group)), "facts": facts, "archive": archive}


def _proven(fact: Row, threads: dict[str, str]) -> Row:
    evidence = [
        {"thread": threads[entry["turn"]], "message": entry["turn"], "quote": entry.get("quote", "")}
        for entry in evidence_of(fact)
        if entry.get("turn") in threads
    ]
    return {**fact, "evidence": evidence, "source": evidence[0]["thread"]} if evidence else fact


def _said(labelled: Labelled, group: str, document: Document) -> Said:
    """What was said in a group; turns that say what a replaced fact said are marked, as the drain marks them."""
    turns = labelled.turns.get(group, ())
    said = Said(turns, list(map(line_of, turns)))
    threads = {turn.id: turn.thread for turn in turns}
    marks: list[Mark] = []
    known = {id_of(fact): fact for fact in (*labelled.archived.get(group, ()), *facts_of(document))}
    for archived in labelled.archived.get(group, ()):
        new = known.get(str(archived.get("replacedBy")))
        latest = str(new.get("saidAt", "")) if new else ""
        marks += over_marks(said, [Changed(_proven(archived, threads), new)], "", latest)
    return Said(turns, said.lines, marks)
