"""A memory's facts as the lines of a file that an agent edits, and what its edits mean for the facts.

A line is `- [id | category] sentence`. One whose sentence or category changed is an update, a new line without an id is
a note, a line that is gone retires its fact. Pure: it answers the next document, or raises for all of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from memd.config import ApplySettings
from memd.errors import Rejected
from memd.memory.document import Document, Fact, facts_of
from memd.memory.facts import DEFAULT_CATEGORY, category_of, content_of, id_of, source_error, subject_of
from memd.memory.hand import notes
from memd.memory.hand.steps import Edited
from memd.memory.text import one_line

_LINE = re.compile(r"(?:[-*]\s+)?(?:\[(?:(?P<id>[^\[\]|]+?)\s*\|)?\s*(?P<category>[^\[\]|]+?)\s*\]\s*)?(?P<said>\S.*)")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the file; `fact_id` and `category` are empty when it names none."""

    fact_id: str
    category: str
    said: str


def text_of(document: Document) -> str:
    """The file: one line a fact, in the order they came; empty when there are none."""
    return "".join(f"- [{_name(fact)} | {_category(fact)}] {_said(fact)}\n" for fact in facts_of(document))


def applied(document: Document, text: str, now: datetime, rules: ApplySettings) -> Edited:
    """The document once the file has this text. Raises Rejected: then nothing of it is done."""
    lines = [_parsed(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    facts = {_name(fact): fact for fact in facts_of(document)}
    kept = {line.fact_id: line for line in lines if line.fact_id}
    if len(kept) != sum(bool(line.fact_id) for line in lines):
        raise Rejected("E_LINE_TWICE", "two lines name the same fact", "file")
    if not kept.keys() <= facts.keys():
        raise Rejected("E_LINE_ID", "a line names a fact that is not there; new lines have no id", "file")
    edited = Edited(document, "")
    for name, fact in facts.items():
        edited = _changed(edited.document, fact, kept.get(name), now, rules)
    for line in lines:
        if not line.fact_id:
            edited = notes.save(edited.document, line.said, line.category or None, now, rules)
    return edited


def _changed(document: Document, fact: Fact, line: _Line | None, now: datetime, rules: ApplySettings) -> Edited:
    if line is None:
        return notes.retire(document, id_of(fact), "", now, rules)
    if (line.category, one_line(line.said)) == (_category(fact), one_line(_said(fact))):
        return Edited(document, id_of(fact))
    before, after = _around(fact)
    if not (line.said.startswith(before) and line.said.endswith(after)):
        raise Rejected("E_LINE_ASIDE", "whom a fact is about and what to avoid cannot be edited here", "file")
    said = line.said[len(before) : len(line.said) - len(after)]
    category = None if line.category == _category(fact) else line.category
    return notes.update(document, id_of(fact), said, category, now, rules)


def _parsed(number: int, line: str) -> _Line:
    found = _LINE.fullmatch(line.strip())
    if found is None or found["said"].startswith("#"):
        raise Rejected("E_LINE", f"line {number} is no fact: write one sentence a line, without headings", "file")
    return _Line(found["id"] or "", found["category"] or "", found["said"])


def _name(fact: Fact) -> str:
    """The id as it stands in a line; one that a hand made up is encoded, so that it cannot be mistaken."""
    return quote(id_of(fact), safe="")


def _category(fact: Fact) -> str:
    return one_line(category_of(fact)).translate(_BRACKETS) or DEFAULT_CATEGORY


_BRACKETS = str.maketrans("[]|", "()/")


def _said(fact: Fact) -> str:
    before, after = _around(fact)
    return f"{before}{one_line(content_of(fact))}{after}"


def _around(fact: Fact) -> tuple[str, str]:
    """What stands before and after a fact's sentence: whom it is about, and what was wrong."""
    person, error = one_line(subject_of(fact)[0]), one_line(source_error(fact))
    return f"about {person}: " if person else "", f" (avoid: {error})" if error else ""
