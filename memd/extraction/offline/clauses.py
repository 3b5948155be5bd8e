"""Reads one sentence: an opening, a form, a tail, and further clauses as long as each of them is a form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memd.extraction.offline.forms import Form, Grammar, language
from memd.extraction.offline.sentences import MASK

MAX_VALUE_CHARS = 120
"""A longer value is a paragraph, not a plain statement."""

HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_EDGE = re.compile(r"^[\s\"'`*_~]+|[\s.!;~。！；，,]+$")
_SUBJECT = {True: "我", False: "I "}
_OWN = {True: re.compile("我|叫|是"), False: re.compile(r"(?:i|i'm|i've|my|we|please|call)\b", re.I)}
"""Beginnings of a clause, Chinese or not, that get no subject: 叫 and 是 without theirs mean something else."""

# Chinese puts a space around Latin words and numbers.
_HAN_BEFORE = re.compile("(?<=[\u4e00-\u9fff])\\{0\\}")
_HAN_AFTER = re.compile("\\{0\\}(?=[\u4e00-\u9fff])")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the user.

    Kind `over`: the fact of kind `content` with this value no longer holds. Kind `correction`: `value` is right and
    `wrong` was wrong, whatever fact it belongs to.
    """

    kind: str
    content: str
    category: str
    value: str = ""
    single: bool = False
    corrects: bool = False
    wrong: str = ""
    person: str = ""
    relationship: str = ""
    sensitive: bool = False


def language_of(sentence: str) -> Grammar:
    """Chinese when it has a Chinese character, else English."""
    return language("zh" if HAN.search(sentence) else "en")


def read(sentence: str, *, corrects: bool = False) -> list[Statement]:
    """The plain statements of one sentence. `corrects`: the previous sentence was a bare "No."."""
    marks = language_of(sentence).marks
    whole = _normal(sentence)
    text = marks.question.sub("", whole)
    if MASK in text or marks.excluded.search(text):
        return []
    start = _opening(text)
    corrects = corrects or marks.correcting.search(text[:start]) is not None
    body = text[start:]
    if found := (marks.meant.match(body) or marks.not_but.match(body)):
        return [_correction(found)]
    wrong = marks.wrong.search(body)
    if wrong and not HAN.search(body):  # in English the wrong value may follow any form
        body = body[: wrong.start()]
    found_all = [each for each, form in _clauses(body) if text == whole or form is None or not form.alone]
    if wrong or corrects:
        found_all = [
            replace(each, corrects=True, wrong=_EDGE.sub("", wrong["wrong"]) if wrong else "") for each in found_all
        ]
    return found_all


def is_bare_no(sentence: str) -> bool:
    """Whether the whole sentence is a "no" or 不对 that the next sentence explains."""
    marks = language_of(sentence).marks
    return not _EDGE.sub("", sentence[_opening(sentence) :]) and marks.correcting.search(sentence) is not None


def _normal(sentence: str) -> str:
    """English with single spaces and plain apostrophes; Chinese without spaces, but beside Latin letters."""
    text = sentence.replace("’", "'")
    return (" " if _LATIN.search(text) or not HAN.search(text) else "").join(text.split())


def _opening(text: str) -> int:
    found = language_of(text).marks.opening.match(text)
    return found.end() if found else 0


def _correction(found: re.Match[str]) -> Statement:
    right, wrong = _EDGE.sub("", found["right"]), _EDGE.sub("", found["wrong"])
    return Statement("correction", "", "correction", value=right, corrects=True, wrong=wrong)


def _clauses(body: str) -> Iterator[tuple[Statement, Form | None]]:
    """One statement a clause, up to the first clause that is no form."""
    known = language_of(body)
    chinese = HAN.search(body) is not None
    elided = False
    while body:
        found = _clause(_SUBJECT[chinese] + body if elided and not _OWN[chinese].match(body) else body)
        if found is None:
            return
        statement, form, rest = found
        yield statement, form
        elided = not statement.person
        boundary = known.marks.clause.match(rest)
        body = rest[boundary.end() :] if boundary else ""


def _clause(text: str) -> tuple[Statement, Form | None, str] | None:
    """The statement at the beginning of a text, its form, and the text behind it."""
    known = language_of(text)
    for kind, pattern in known.over:
        if found := pattern.match(text):
            return Statement("over", kind, "", value=_clean(found)), None, text[found.end() :]
    for form in known.forms:
        for pattern in form.said:
            if (found := pattern.match(text)) and _is_plain(form, found["value"], known):
                return _statement(form, found), form, text[found.end() :]
    return None


def _is_plain(form: Form, value: str, known: Grammar) -> bool:
    return len(value) <= MAX_VALUE_CHARS and not (form.words and known.marks.vague.search(value))


def _clean(found: re.Match[str]) -> str:
    return _EDGE.sub("", found["value"].replace("`", ""))


def _statement(form: Form, found: re.Match[str]) -> Statement:
    value = _clean(found)
    relationship = found.groupdict().get("kin", "").lower()
    stored = form.stored.replace("{1}", relationship)
    if value[0].isascii() and value[0].isalpha():
        stored = _HAN_BEFORE.sub(" {0}", stored)
    if value[-1].isascii() and value[-1].isalpha():
        stored = _HAN_AFTER.sub("{0} ", stored)
    return Statement(
        kind=form.kind,
        content=stored.replace("{0}", value),
        category=form.category,
        value=value,
        single=form.single,
        person=value if relationship else "",
        relationship=relationship,
        sensitive=form.is_sensitive(value),
    )
