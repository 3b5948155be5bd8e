"""Closed sentence forms: what the offline extractor can read in one language, from its YAML file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from memd.config import yaml_text

_HERE = Path(__file__).parent
_FRAGMENT = re.compile(r"\{([a-z]\w*)\}")
_VALUE = re.compile(r"(?<!\(\?P)<([a-z]\w*)>")


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of statement. In `stored`, `{0}` is the value and `{1}` the kin word.

    `single`: a user has one of these at a time, so a new one replaces the old one. `alone`: no question or request
    stands in the sentence. `words`: the value is free text, which must not be vague. `value`: what a value looks like.
    `sensitive`: values that are more private than an assistant needs; None: none are.
    """

    kind: str
    stored: str
    category: str
    single: bool
    alone: bool
    words: bool
    said: tuple[re.Pattern[str], ...]
    value: re.Pattern[str]
    sensitive: re.Pattern[str] | None = None

    def is_sensitive(self, value: str) -> bool:
        """Whether a fact with this value gets the label `sensitive`."""
        return self.sensitive is not None and self.sensitive.search(value) is not None


class Marks(NamedTuple):
    """The regexes of a language beside its forms; the comments are in the files."""

    opening: re.Pattern[str]
    correcting: re.Pattern[str]
    clause: re.Pattern[str]
    question: re.Pattern[str]
    excluded: re.Pattern[str]
    vague: re.Pattern[str]
    wrong: re.Pattern[str]
    meant: re.Pattern[str]
    not_but: re.Pattern[str]
    pasted: re.Pattern[str]
    about_me: re.Pattern[str]


class Grammar(NamedTuple):
    """Everything read from one file. `over`: the kind of fact that has ended, with the form that says so."""

    forms: tuple[Form, ...]
    marks: Marks
    over: tuple[tuple[str, re.Pattern[str]], ...]


@cache
def language(name: str) -> Grammar:
    """The forms of `en` or `zh`."""
    data = yaml_text.read(_HERE / f"{name}.yaml")
    flags = re.I if data["ignore_case"] else 0  # a large set of characters takes long to compile where case is ignored
    fragments: dict[str, str] = {}
    for fragment, source in data["fragments"].items():
        fragments[fragment] = f"(?:{_filled(source, fragments)})"
    ending, alone = (_filled(data["filler"] + data[tail], fragments) for tail in ("tail", "alone"))
    forms = tuple(
        _form(kind, entry, fragments, alone if "alone" in entry else ending, flags)
        for kind, entry in data["forms"].items()
    )
    marks = Marks(*(re.compile(data[mark], flags) for mark in Marks._fields))
    over = tuple((kind, _compiled(source, fragments, ending, flags)) for kind, source in data["over"].items())
    return Grammar(forms, marks, over)


def all_forms() -> tuple[Form, ...]:
    """The forms of all languages."""
    return (*language("en").forms, *language("zh").forms)


def _form(kind: str, entry: dict[str, Any], fragments: dict[str, str], ending: str, flags: int) -> Form:
    values = [fragments[name] for said in entry["said"] for name in _VALUE.findall(said)]
    return Form(
        kind=entry.get("kind", kind),
        stored=entry["stored"],
        category=entry.get("single") or entry["many"],
        single="single" in entry,
        alone="alone" in entry,
        words="words" in entry,
        said=tuple(_compiled(said, fragments, ending, flags) for said in entry["said"]),
        value=re.compile("|".join(values), flags),
        sensitive=re.compile(_filled(entry["sensitive"], fragments), flags) if "sensitive" in entry else None,
    )


def _compiled(source: str, fragments: dict[str, str], ending: str, flags: int) -> re.Pattern[str]:
    return re.compile(_filled(source, fragments) + ending, flags)


def _filled(source: str, fragments: dict[str, str]) -> str:
    source = _VALUE.sub(lambda use: f"(?P<value>{fragments[use[1]]})", source)
    return _FRAGMENT.sub(lambda use: fragments[use[1]], source)
