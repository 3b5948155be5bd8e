"""Reads one sentence: an opening, then clauses, each of which has to be a form as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memd.extraction.offline.grammar import Form, Grammar, languages
from memd.extraction.offline.sentences import MASK

MAX_VALUE_CHARS = 120
"""A longer value is a paragraph, not a plain statement."""

HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_EDGE = re.compile(r"^[\s\"'`*_~]+|[\s.!;~。！；，,]+$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the user: a fact of this form with this value.

    `over`: the kind of fact that no longer holds; without a value, any of it. Without form and `over` it is a
    correction: `value` is right and `wrong` was wrong, whatever fact it belongs to. `relationship`: who the person is
    whose name is the value. `beside`: it holds beside what is known ("I also work at").
    """

    value: str
    form: Form | None = None
    over: str = ""
    corrects: bool = False
    wrong: str = ""
    relationship: str = ""
    beside: bool = False


def language_of(sentence: str) -> Grammar:
    """Chinese when it has a Chinese character, else English."""
    return languages()["zh" if HAN.search(sentence) else "en"]


def read(sentence: str, *, corrects: bool = False) -> list[Statement]:
    """The plain statements of one sentence. `corrects`: the previous sentence was a bare "No."."""
    known = language_of(sentence)
    whole = _normal(sentence)
    text = known.marks["question"].sub("", whole)
    if MASK in text or known.excluded.any_in(text):
        return []
    start = _opening(text)
    corrects = corrects or known.marks["correcting"].search(text[:start]) is not None
    body, wrong = text[start:], ""
    if found := (known.marks["meant"].match(body) or known.marks["not_but"].match(body)):
        return [Statement(_bare(found["right"]), corrects=True, wrong=_bare(found["wrong"]))]
    if found := known.marks["wrong"].search(body):
        body, wrong, corrects = body[: found.start()], _bare(found["wrong"]), True
    clauses = known.marks["boundary"].split(body)
    if taken_back := [place for place, clause in enumerate(clauses) if place and is_bare_no(clause)]:
        clauses, corrects = clauses[taken_back[-1] + 1 :], True
    read_ones = list(_clauses(clauses, known))
    is_whole = text == whole and len(read_ones) == len(clauses)
    said = (each for found in read_ones for each in found)
    kept = [each for each in said if is_whole or not (each.form and each.form.strict)]
    return [replace(each, corrects=corrects, wrong=wrong) for each in kept]


def is_bare_no(sentence: str) -> bool:
    """Whether the whole sentence is a "no" or 不对 that the next sentence explains."""
    correcting = language_of(sentence).marks["correcting"]
    return not _bare(sentence[_opening(sentence) :]) and correcting.search(sentence) is not None


def _normal(sentence: str) -> str:
    """English with single spaces and plain apostrophes; Chinese without spaces, but beside Latin letters."""
    text = sentence.replace("’", "'")
    return (" " if _LATIN.search(text) or not HAN.search(text) else "").join(text.split())


def _opening(text: str) -> int:
    found = language_of(text).marks["opening"].match(text)
    return found.end() if found else 0


def _bare(value: str) -> str:
    return _EDGE.sub("", value.replace("`", ""))


def _clauses(clauses: list[str], known: Grammar) -> Iterator[list[Statement]]:
    """What each clause states, up to the first clause that is no form. A later one may leave out its subject."""
    elided = False
    for clause in clauses:
        subject = known.subject if elided and not known.marks["own"].match(clause) else ""
        found = [*_endings(subject + clause, known), *filter(None, [_stated(subject + clause, known)])]
        if not found:
            return
        yield found
        elided = not found[-1].relationship


def _endings(text: str, known: Grammar) -> Iterator[Statement]:
    for kind, found in known.over.whole(text):
        yield Statement(_bare(found.groupdict().get("value") or ""), over=kind)


def _stated(text: str, known: Grammar) -> Statement | None:
    for form, found in known.said.whole(text):
        value = found["value"]
        if len(value) <= MAX_VALUE_CHARS and not (form.vague and form.vague.search(value)):
            kin = found.groupdict().get("kin", "").lower()
            beside = known.marks["beside"].search(text) is not None
            return Statement(_bare(value), form, relationship=kin, beside=beside)
    return None
