"""Cases: attacks, which must leave nothing stored, and true statements, which must be stored. One line is one case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from memd.context import Bucket
from memd.evaluation.lines import Line, nothing_in, read_lines
from memd.evaluation.matching import Matcher, Term, Terms
from memd.evaluation.saved_replies import SavedReply
from memd.evaluation.tally import PARTS
from memd.memory.document import Document, empty_document
from memd.push.shapes import to_turn

KNOWN = ("The user lives in Porto.", "The user works as a nurse.", "用户喜欢绿茶。")
"""The facts in the memory before a case runs, unless the case has its own."""

_FACT = {
    "category": "preference",
    "confidence": 0.95,
    "scope": "user",
    "durability": "durable",
    "authority": "descriptive",
}
_UPDATE: Mapping[str, Any] = {"summaries": {}, "newFacts": [], "confirmedFacts": [], "retiredFacts": []}

Update = dict[str, Any]


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """An attack or a true statement, with the reply of an honest model and that of a model that obeys the attack."""

    id: Annotated[str, Meta(min_length=1, max_length=80)]
    label: Literal["attack", "true"]
    kind: str
    language: str
    text: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    honest: Update | None = None
    obedient: Update | None = None
    allowed: tuple[Matcher, ...] = ()
    terms: Terms | None = None
    without: tuple[Term, ...] = ()
    known: tuple[str, ...] = KNOWN
    reasons: tuple[str, ...] | None = None
    limit: bool = False
    """A known limit: an attack that code cannot distinguish from a statement."""

    def problem(self) -> str:
        """The first rule about several fields that the case breaks, as a sentence; empty if it breaks none."""
        if bool(self.text) == bool(self.messages):
            return "a case has either `text` or `messages`"
        if self.label == "attack" and self.obedient is None:
            return "an attack needs `obedient`"
        if self.label == "true" and self.honest is None:
            return "a true statement needs `honest`"
        if self.label == "true" and self.obedient is not None:
            return "a true statement has no `obedient`"
        return next((f"a fact of `{name}` has no content" for name in ("honest", "obedient") if self._bare(name)), "")

    def _bare(self, name: str) -> bool:
        facts = (getattr(self, name) or {}).get("newFacts", [])
        return not all(isinstance(fact, dict) and isinstance(fact.get("content"), str) for fact in facts)

    def push(self) -> tuple[dict[str, Any], ...]:
        """The conversation as an app pushes it."""
        return self.messages or ({"role": "user", "content": self.text},)

    def reply(self, column: str) -> SavedReply:
        """The reply of a column (`honest`, `obedient`), written in full."""
        given = getattr(self, column) or {}
        facts = [self._whole(fact) for fact in given.get("newFacts", ())]
        return SavedReply(self.id, reply={**_UPDATE, **given, "newFacts": facts})

    def _whole(self, fact: Mapping[str, Any]) -> dict[str, Any]:
        fields = {**_FACT, **fact}
        quote = fields.pop("quote", None)
        if "evidence" not in fields:
            # A wrong message number does no harm: apply looks for the quote in every message of the user.
            fields["evidence"] = [{"message": 0, "quote": quote or self._last_said()}]
        return fields

    def _last_said(self) -> str:
        said = [turn.text for turn in map(to_turn, self.push()) if turn.kind == "user"]
        return said[-1] if said else ""

    def document(self) -> Document:
        """The memory before the case."""
        facts = [
            {"id": f"fact_{number:08x}", "content": content, "category": "context", "confidence": 0.9, "source": "t0"}
            for number, content in enumerate(self.known, 1)
        ]
        return {**empty_document(Bucket("ana")), "facts": facts}


def case_sizes(cases: Sequence[Line[Case]]) -> dict[str, dict[str, int]]:
    """The number of cases with each label, by part."""
    counts = Counter((line.held_out, line.value.label) for line in cases)
    return {
        part: {"attacks": counts[held_out, "attack"], "true statements": counts[held_out, "true"]}
        for part, held_out in PARTS.items()
    }


def read_cases(paths: Sequence[Path]) -> list[Line[Case]]:
    """The cases of these files and folders. Raises BadLabels."""
    ids: set[str] = set()
    lines = list(read_lines(paths, Case))
    for line in lines:
        if problem := line.value.problem():
            raise line.wrong(problem)
        if line.value.id in ids:
            raise line.wrong("another case has the same `id`")
        ids.add(line.value.id)
    if not lines:
        raise nothing_in(paths)
    return lines
