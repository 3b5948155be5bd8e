"""How well memd's search finds the evidence for a question: recall@1/5/10/20 and MRR over a labelled set.

    python -m benchmarks.retrieval [FILE…] [--against fts5] [--embedder package.function] [--misses] [--json]

A file is JSON or JSONL (by its name). JSON is one object:

    {"documents": [{"id": "d1", "text": "…"}], "questions": [{"id": "q1", "text": "…"}], "evidence": {"q1": ["d1"]}}

JSONL has one record a line: {"document": "d1", "text": "…"} or {"question": "q1", "text": "…", "evidence": ["d1"]}.
A document or question can be a plain text (its id is its number, from 0); `evidence` can be a field of the question.
Optional fields: `group` (a question searches only the documents of its group: one user's memory), and for a document
`category`, `confidence` and the other fields of a fact. Without FILE: the set of this repository.

Each group is written as the memory of a user and searched with `Memd.search`: the same code, cache and files as in use.
recall@k: of a question's evidence, the share among the first k, averaged over all questions. MRR: the mean of one over
the rank of the first piece of evidence, 0 beyond 20.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from benchmarks.fts5 import Fts5
from memd import __version__, config
from memd.client import Memd
from memd.context import Bucket, digest
from memd.memory.document import Document, empty_document
from memd.memory.store.paths import FILE, folder

OWN = Path(__file__).parent / "data" / "memories.jsonl"
DEPTHS = (1, 5, 10, 20)

Search = Callable[[str, str], list[str]]
"""Group and question → ids of documents, best first."""


@dataclass(frozen=True)
class Question:
    """A question, and its documents of evidence."""

    id: str
    group: str
    text: str
    evidence: tuple[str, ...]


@dataclass
class Labelled:
    """A labelled set: the documents of each group, as facts, and the questions."""

    groups: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    questions: list[Question] = field(default_factory=list)

    def add_document(self, name: str, record: Any) -> None:
        """A document as a fact of its group's memory."""
        fields = {"text": record} if isinstance(record, str) else dict(record)
        group = str(fields.pop("group", ""))
        self.groups[group].append({"id": name, "category": "context", **fields, "content": fields.pop("text")})

    def add_question(self, name: str, record: Any, evidence: Iterable[Any]) -> None:
        """A question; None without evidence, as it could not be scored."""
        fields = {"text": record} if isinstance(record, str) else record
        named = tuple(map(str, evidence or fields.get("evidence", ())))
        if named:
            self.questions.append(Question(name, str(fields.get("group", "")), fields["text"], named))


def read(files: Iterable[Path]) -> Labelled:
    """The sets of all files as one. Groups of the same name in different files are one group."""
    found = Labelled()
    for file in files:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".jsonl":
            _read_lines(found, text)
        else:
            _read_object(found, json.loads(text))
    return found


def _read_lines(found: Labelled, text: str) -> None:
    for line in filter(str.strip, text.splitlines()):
        record = json.loads(line)
        if "document" in record:
            found.add_document(str(record.pop("document")), record)
        else:
            found.add_question(str(record.pop("question")), record, ())


def _read_object(found: Labelled, value: Mapping[str, Any]) -> None:
    evidence = value.get("evidence", {})
    for number, record in enumerate(value["documents"]):
        found.add_document(_id(record, number), record)
    for number, record in enumerate(value["questions"]):
        name = _id(record, number)
        listed = evidence[number] if isinstance(evidence, list) else evidence.get(name, ())
        found.add_question(name, record, listed)


def _id(record: Any, number: int) -> str:
    return str(record.get("id", number)) if isinstance(record, dict) else str(number)


@dataclass
class Score:
    """Sums over questions."""

    questions: int = 0
    recall: dict[int, float] = field(default_factory=lambda: dict.fromkeys(DEPTHS, 0.0))
    reciprocal: float = 0.0
    missed: list[Question] = field(default_factory=list)

    def add(self, question: Question, answer: list[str]) -> None:
        """Count the results of one question."""
        self.questions += 1
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
        return {"questions": self.questions, **whole, "MRR": self.reciprocal / self.questions}


def measure(labelled: Labelled, search: Search) -> dict[str, Score]:
    """The scores of each group, and of all."""
    scores: dict[str, Score] = defaultdict(Score)
    for question in labelled.questions:
        answer = search(question.group, question.text)
        scores[question.group].add(question, answer)
        scores["all"].add(question, answer)
    return scores


def written(labelled: Labelled, data_dir: Path) -> None:
    """Each group as the memory document of a user."""
    for group, facts in labelled.groups.items():
        bucket = Bucket(user_of(group))
        document: Document = {**empty_document(bucket), "facts": facts}
        file = folder(data_dir, bucket, shared=False) / FILE
        file.parent.mkdir(parents=True)
        file.write_bytes(orjson.dumps(document))


def user_of(group: str) -> str:
    """The user who has the memory of a group."""
    return f"group-{digest(group)}"


def by_memd(labelled: Labelled, data_dir: Path, embedder: str | None) -> Search:
    """memd's own search."""
    written(labelled, data_dir)
    flags = {"data_dir": str(data_dir), "recall.embedder": embedder}
    memd = Memd(config.load(environ={}, use_file=False, flags=flags).settings)
    return lambda group, text: [one.fact["id"] for one in memd.search(user_of(group), text, limit=DEPTHS[-1])]


def by_fts5(labelled: Labelled) -> Search:
    """SQLite's full text search over the same texts, with pairs of characters for Chinese."""
    tables = {group: Fts5([fact["content"] for fact in facts]) for group, facts in labelled.groups.items()}
    return lambda group, text: [labelled.groups[group][place]["id"] for place in tables[group].search(text, DEPTHS[-1])]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[OWN])
    parser.add_argument("--against", choices=["fts5"])
    parser.add_argument("--embedder")
    parser.add_argument("--misses", action="store_true", help="print the evidence that is not among the first five")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    labelled = read(wanted.files)
    with tempfile.TemporaryDirectory() as data_dir:
        found = {"memd": measure(labelled, by_memd(labelled, Path(data_dir), wanted.embedder))}
        if wanted.against == "fts5":
            found["fts5"] = measure(labelled, by_fts5(labelled))
    if wanted.json:
        figures = {name: {group: score.figures() for group, score in scores.items()} for name, scores in found.items()}
        about = {
            "memd": __version__,
            "python": platform.python_version(),
            "files": [file.name for file in wanted.files],
        }
        print(json.dumps({**about, "figures": figures}, indent=2))
    else:
        show(found, misses=wanted.misses)


def show(found: Mapping[str, Mapping[str, Score]], *, misses: bool) -> None:
    """The table."""
    print(f"{'search':<8}{'group':<10}{'questions':>10}" + "".join(f"{f'R@{k}':>8}" for k in DEPTHS) + f"{'MRR':>8}")
    for name, scores in found.items():
        for group, score in scores.items():
            means = score.figures()
            row = [means[f"recall@{depth}"] for depth in DEPTHS] + [means["MRR"]]
            print(f"{name:<8}{group:<10}{score.questions:>10}" + "".join(f"{value:>8.3f}" for value in row))
    if misses:
        for question in found["memd"]["all"].missed:
            print(f"not among the first {DEPTHS[1]}: {question.id} {question.text}")


if __name__ == "__main__":
    main()
