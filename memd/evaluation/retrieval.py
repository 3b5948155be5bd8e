"""Retrieval: how well a memory finds the evidence for a question: recall@k, MRR, and coverage of the injected block.

A file is JSON or JSONL (by its name). JSON is one object:

    {"documents": [{"id": "d1", "text": "…"}], "questions": [{"id": "q1", "text": "…"}], "evidence": {"q1": ["d1"]}}

JSONL has one record a line: {"document": "d1", "text": "…"} or {"question": "q1", "text": "…", "evidence": ["d1"]}.
A document or question can be a plain text (its id is its number, from 0); `evidence` can be a field of the question.
Optional fields: `group` (a question searches only the documents of its group: one user's memory), and for a document
`category`, `confidence` and the other fields of a fact.

recall@k: the share of a question's evidence among the first k results, averaged over all questions. MRR: the mean of
1 / rank of the first piece of evidence, 0 beyond rank 20. coverage: the share of a question's evidence in the injected
block within the token budget, averaged over all questions.
"""

from __future__ import annotations

import html
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from memd import config
from memd.client import Memd
from memd.context import Bucket, digest
from memd.evaluation.lines import BadLabels, nothing_in, read_text
from memd.memory.document import Document, empty_document
from memd.memory.store.paths import FILE, folder
from memd.memory.text import fold

DEPTHS = (1, 5, 10, 20)


class AskedMemory(Protocol):
    """A memory to measure."""

    def search(self, group: str, query: str) -> list[str]:
        """The ids of the matching documents, best first; ids beyond the deepest of DEPTHS are ignored."""
        ...

    def block(self, group: str, query: str, max_tokens: int) -> str:
        """The text to inject into the next prompt."""
        ...


@dataclass(frozen=True)
class EvidenceQuestion:
    """A question, and the ids of its evidence."""

    id: str
    group: str
    text: str
    evidence: tuple[str, ...]


@dataclass
class Labelled:
    """A labelled set: the documents of each group, as facts, and the questions."""

    groups: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    questions: list[EvidenceQuestion] = field(default_factory=list)

    def add_document(self, name: str, record: Any) -> None:
        """Add a document as a fact of its group's memory."""
        fields = {"text": record} if isinstance(record, str) else dict(record)
        group = str(fields.pop("group", ""))
        self.groups[group].append({"id": name, "category": "context", **fields, "content": fields.pop("text")})

    def add_question(self, name: str, record: Any, evidence: Iterable[Any]) -> None:
        """Add a question. A question without evidence is left out, as it cannot be scored."""
        fields = {"text": record} if isinstance(record, str) else record
        named = tuple(map(str, evidence or fields.get("evidence", ())))
        if named:
            self.questions.append(EvidenceQuestion(name, str(fields.get("group", "")), fields["text"], named))


def read(files: Sequence[Path]) -> Labelled:
    """All files as one set. Groups of the same name in different files are one group.

    Raises BadLabels.
    """
    found = Labelled()
    for file in files:
        text = read_text(file)
        if file.suffix == ".jsonl":
            _read_lines(found, file, text)
        else:
            _read_object(found, file, text)
    if not found.questions:
        raise nothing_in(files)
    return found


def _read_lines(found: Labelled, file: Path, text: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "document" in record:
                found.add_document(str(record.pop("document")), record)
            else:
                found.add_question(str(record.pop("question")), record, ())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadLabels(f"{file}, line {number}: neither a document nor a question with a text") from None


def _read_object(found: Labelled, file: Path, text: str) -> None:
    try:
        value = json.loads(text)
        evidence = value.get("evidence", {})
        for number, record in enumerate(value["documents"]):
            found.add_document(_id(record, number), record)
        for number, record in enumerate(value["questions"]):
            name = _id(record, number)
            listed = evidence[number] if isinstance(evidence, list) else evidence.get(name, ())
            found.add_question(name, record, listed)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise BadLabels(f"{file} is no object with documents, questions and evidence") from None


def _id(record: Any, number: int) -> str:
    return str(record.get("id", number)) if isinstance(record, dict) else str(number)


@dataclass
class Score:
    """Sums over questions."""

    questions: int = 0
    recall: dict[int, float] = field(default_factory=lambda: dict.fromkeys(DEPTHS, 0.0))
    reciprocal: float = 0.0
    coverage: float = 0.0
    missed: list[EvidenceQuestion] = field(default_factory=list)

    def add(self, question: EvidenceQuestion, answer: list[str], held: float) -> None:
        """Count the results of one question. `held`: the share of its evidence in the block."""
        self.questions += 1
        self.coverage += held
        for depth in DEPTHS:
            hits = set(answer[:depth]) & set(question.evidence)
            self.recall[depth] += len(hits) / len(set(question.evidence))
        ranks = [place for place, name in enumerate(answer[: DEPTHS[-1]], 1) if name in question.evidence]
        self.reciprocal += 1 / ranks[0] if ranks else 0.0
        if not ranks or ranks[0] > DEPTHS[1]:
            self.missed.append(question)

    def figures(self) -> dict[str, float]:
        """The means."""
        whole = {f"recall@{depth}": self.recall[depth] / self.questions for depth in DEPTHS}
        means = {"MRR": self.reciprocal / self.questions, "coverage": self.coverage / self.questions}
        return {"questions": self.questions, **whole, **means}


def measure(labelled: Labelled, memory: AskedMemory, max_tokens: int) -> dict[str, Score]:
    """The scores of each group, and of all groups together."""
    scores: dict[str, Score] = defaultdict(Score)
    texts = {(group, fact["id"]): fact["content"] for group, facts in labelled.groups.items() for fact in facts}
    for question in labelled.questions:
        answer = memory.search(question.group, question.text)
        block = fold(html.unescape(memory.block(question.group, question.text, max_tokens)))
        needed = [texts.get((question.group, name)) for name in dict.fromkeys(question.evidence)]
        held = sum(text is not None and fold(text) in block for text in needed) / len(needed)
        scores[question.group].add(question, answer, held)
        scores["all"].add(question, answer, held)
    return scores


class MemdMemory:
    """memd itself: each group is the memory of a user, read by the production code, cache and files."""

    def __init__(self, labelled: Labelled, data_dir: Path, embedder: str | None = None) -> None:
        """Write the documents to a data folder. Raises ConfigError for an embedder that cannot be loaded."""
        _write(labelled, data_dir)
        flags = {"data_dir": str(data_dir), "recall.embedder": embedder}
        self._memd = Memd(config.load(environ={}, use_file=False, flags=flags).settings)

    def search(self, group: str, query: str) -> list[str]:
        """`Memd.search`."""
        return [found.fact["id"] for found in self._memd.search(_user_of(group), query, limit=DEPTHS[-1])]

    def block(self, group: str, query: str, max_tokens: int) -> str:
        """`Memd.inject`."""
        return self._memd.inject(_user_of(group), query=query, max_tokens=max_tokens)


def _write(labelled: Labelled, data_dir: Path) -> None:
    """Write each group as the memory document of a user."""
    for group, facts in labelled.groups.items():
        bucket = Bucket(_user_of(group))
        document: Document = {**empty_document(bucket), "facts": facts}
        file = folder(data_dir, bucket, shared=False) / FILE
        file.parent.mkdir(parents=True)
        file.write_bytes(orjson.dumps(document))


def _user_of(group: str) -> str:
    """The user id of a group."""
    return f"group-{digest(group)}"


SCORE_HEAD = ("memory", "group", "questions", *(f"R@{depth}" for depth in DEPTHS), "MRR", "coverage")


def score_rows(found: Mapping[str, Mapping[str, Score]]) -> Iterator[list[str]]:
    """The scores of each memory and group, as rows under SCORE_HEAD."""
    for name, scores in found.items():
        for group, score in scores.items():
            count, *means = score.figures().values()
            yield [name, group, f"{count:.0f}", *(f"{value:.3f}" for value in means)]
