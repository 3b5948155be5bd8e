"""The file `facts.md`: a memory's facts as lines that an agent edits.

A line is `- [id | category] sentence`. A line whose sentence or category changed updates its fact, a new line without
an id becomes a note, and a missing line retires its fact. Pure: returns the next document, or raises and changes
nothing.
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

_LINE = re.compile(r"(?:[-*]\s+)?(?:\[(?:(?P<id>[^\[\]|]+?)\s*\|)?\s*(?P<category>[^\[\]|]+?)\s*\]\s*)?(?P<text>\S.*)")


@dataclass(frozen=True, slots=True)
class _FactLine:
    """A line of the file; `fact_id` and `category` are empty when the line has none."""

    fact_id: str
    category: str
    content: str


def text_of(document: Document) -> str:
    """The file: one line for each fact, oldest first; empty when there are no facts."""
    return "".join(f"- [{_name(fact)} | {_category(fact)}] {_sentence(fact)}\n" for fact in facts_of(document))


def applied(document: Document, text: str, now: datetime, rules: ApplySettings) -> Edited:
    """Change the document so that the file has this text. Raises Rejected."""
    lines = [_parsed(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    facts = {_name(fact): fact for fact in facts_of(document)}
    kept = {line.fact_id: line for line in lines if line.fact_id}
    if len(kept) != sum(bool(line.fact_id) for line in lines):
        raise Rejected("E_LINE_TWICE", "two lines name the same fact", "file")
    if not kept.keys() <= facts.keys():
        raise Rejected("E_LINE_ID", "a line names an unknown fact; write new lines without an id", "file")
    edited = Edited(document, "")
    for name, fact in facts.items():
        edited = _changed(edited.document, fact, kept.get(name), now, rules)
    for line in lines:
        if not line.fact_id:
            edited = notes.save(edited.document, line.content, line.category or None, now, rules)
    return edited


def _changed(document: Document, fact: Fact, line: _FactLine | None, now: datetime, rules: ApplySettings) -> Edited:
    if line is None:
        return notes.retire(document, id_of(fact), "", now, rules)
    if (line.category, one_line(line.content)) == (_category(fact), one_line(_sentence(fact))):
        return Edited(document, id_of(fact))
    before, after = _around(fact)
    if not (line.content.startswith(before) and line.content.endswith(after)):
        raise Rejected("E_LINE_ASIDE", "the parts `about …:` and `(avoid: …)` of a line cannot be edited", "file")
    content = line.content[len(before) : len(line.content) - len(after)]
    category = None if line.category == _category(fact) else line.category
    return notes.update(document, id_of(fact), content, category, now, rules)


def _parsed(number: int, line: str) -> _FactLine:
    match = _LINE.fullmatch(line.strip())
    if match is None or match["text"].startswith("#"):
        raise Rejected("E_LINE", f"line {number} is not a fact: write one sentence per line, without headings", "file")
    return _FactLine(match["id"] or "", match["category"] or "", match["text"])


def _name(fact: Fact) -> str:
    """The id in a line: percent-encoded, because in a document edited by hand it may be any text."""
    return quote(id_of(fact), safe="")


def _category(fact: Fact) -> str:
    return one_line(category_of(fact)).translate(_BRACKETS) or DEFAULT_CATEGORY


_BRACKETS = str.maketrans("[]|", "()/")


def _sentence(fact: Fact) -> str:
    before, after = _around(fact)
    return f"{before}{one_line(content_of(fact))}{after}"


def _around(fact: Fact) -> tuple[str, str]:
    """The text before and after a fact's content: the person it is about, and the error that it corrects."""
    person, error = one_line(subject_of(fact)[0]), one_line(source_error(fact))
    return f"about {person}: " if person else "", f" (avoid: {error})" if error else ""
