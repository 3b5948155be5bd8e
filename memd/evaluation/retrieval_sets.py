"""Sets for retrieval: facts, questions with evidence, and what was said around them.

A file is JSON or JSONL (by its name). JSON is one object:

    {"documents": [{"id": "d1", "text": "…"}], "questions": [{"id": "q1", "text": "…"}], "evidence": {"q1": ["d1"]}}

JSONL has one record a line: {"document": "d1", "text": "…"} or {"question": "q1", "text": "…", "evidence": ["d1"]}.
A document or question can be a plain text (its id is its number, from 0); `evidence` can be a field of the question.
Optional fields: `group` (a question searches only the documents of its group: one user's memory), and for a document
`category`, `confidence` and the other fields of a fact. JSONL has also what makes a memory whole: {"turn": "t1", …} and
{"archived": "d0", …}; evaluation/README.md describes them and the further fields of a question.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memd.evaluation.lines import BadLabels, files, is_held_out, nothing_in, read_text
from memd.memory.said.excerpts import judged
from memd.memory.said.turns import Turn
from memd.memory.text import fold

Row = dict[str, Any]


@dataclass(frozen=True)
class EvidenceQuestion:
    """A question, and the ids of its evidence: facts, or turns where no fact says it.

    `answers`: for each of the evidence its words, folded, where the set names them. `stale`: facts with the old value.
    `at`: when it is asked; None: now.
    """

    id: str
    group: str
    text: str
    evidence: tuple[str, ...]
    kind: str = ""
    at: datetime | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    stale: frozenset[str] = frozenset()
    held_out: bool = False


@dataclass
class Labelled:
    """A labelled set: of each group the documents, as facts, the archived facts and the turns; and the questions."""

    groups: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    archived: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    turns: dict[str, list[Turn]] = field(default_factory=lambda: defaultdict(list))
    questions: list[EvidenceQuestion] = field(default_factory=list)

    def add_document(self, name: str, record: Any) -> None:
        """Add a document as a fact of its group's memory."""
        group, fact = _fact(name, record)
        self.groups[group].append(fact)

    def add_archived(self, name: str, record: Any) -> None:
        """Add a fact that a later one replaced."""
        group, fact = _fact(name, record)
        self.archived[group].append(fact)

    def add_turn(self, name: str, record: Any) -> None:
        """Add a message of the user or the assistant, with the sentences of it that may be shown."""
        said_at = str(record["saidAt"])
        turn = Turn(name, str(record["thread"]), record["role"], str(record["text"]), said_at, said_at)
        self.turns[str(record.get("group", ""))].append(judged(turn))

    def add_question(self, name: str, record: Any, evidence: Iterable[Any], *, held_out: bool = False) -> None:
        """Add a question. A question without evidence is left out, as it cannot be scored."""
        fields: Row = {"text": record} if isinstance(record, str) else record
        named = tuple(map(str, evidence or fields.get("evidence", ())))
        if named:
            answers = {name: fold(words) for name, words in fields.get("answers", {}).items()}
            today = fields.get("today")
            question = EvidenceQuestion(
                name,
                str(fields.get("group", "")),
                fields["text"],
                named,
                str(fields.get("kind", "")),
                datetime.fromisoformat(today).replace(tzinfo=UTC) if today else None,
                answers,
                frozenset(fields.get("stale", ())),
                held_out,
            )
            self.questions.append(question)


def read(paths: Sequence[Path]) -> Labelled:
    """All files, and the JSONL files of folders, as one set. Groups of the same name in different files are one group.

    Raises BadLabels.
    """
    found = Labelled()
    for file in files(paths):
        text = read_text(file)
        if file.suffix == ".jsonl":
            _read_lines(found, file, text)
        else:
            _read_object(found, file, text)
    if not found.questions:
        raise nothing_in(paths)
    return found


def _read_lines(found: Labelled, file: Path, text: str) -> None:
    held_out = is_held_out(file)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            _add(found, json.loads(line), held_out=held_out)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadLabels(f"{file}, line {number}: neither a document nor a question with a text") from None


def _add(found: Labelled, record: Row, *, held_out: bool) -> None:
    if "document" in record:
        found.add_document(str(record.pop("document")), record)
    elif "turn" in record:
        found.add_turn(str(record.pop("turn")), record)
    elif "archived" in record:
        found.add_archived(str(record.pop("archived")), record)
    else:
        found.add_question(str(record.pop("question")), record, (), held_out=held_out)


def _read_object(found: Labelled, file: Path, text: str) -> None:
    try:
        value = json.loads(text)
        evidence = value.get("evidence", {})
        for number, record in enumerate(value["documents"]):
            found.add_document(_id(record, number), record)
        for number, record in enumerate(value["questions"]):
            name = _id(record, number)
            listed = evidence[number] if isinstance(evidence, list) else evidence.get(name, ())
            found.add_question(name, record, listed, held_out=is_held_out(file))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise BadLabels(f"{file} is no object with documents, questions and evidence") from None


def _id(record: Any, number: int) -> str:
    return str(record.get("id", number)) if isinstance(record, dict) else str(number)


def _fact(name: str, record: Any) -> tuple[str, Row]:
    """The group of a document, and the document as a fact."""
    fields = {"text": record} if isinstance(record, str) else dict(record)
    group = str(fields.pop("group", ""))
    return group, {"id": name, "category": "context", **fields, "content": fields.pop("text")}
