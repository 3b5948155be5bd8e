"""The closed sentence forms of a language, from its YAML file, and the facts that they could have stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from memd.config import yaml_text
from memd.push.patterns import prepared
from memd.push.prefilter import Prefilter

_HERE = Path(__file__).parent
_FRAGMENT = re.compile(r"\{([a-z]\w*)\}")
_VALUE = re.compile(r"(?<!\(\?P)<([a-z]\w*)>")
_PROPER = re.compile("(?:[Tt]he )?[A-ZÀ-ÖØ-Þ]|(?!一家)[\u4e00-\u9fff]")
_SEAM = re.compile("(?<=[\u4e00-\u9fff])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u4e00-\u9fff])")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of statement. In `stored`, `{0}` is the value and `{1}` the kin word.

    `single`: a user has one of these at a time, so a new one replaces the old one. `strict`: read only in a sentence
    of which every clause is a form. `vague`: what must not occur in the value. `value`: what a value looks like.
    `sensitive`: values that are more private than an assistant needs. `firm`: where in the value a firm is named.
    """

    kind: str
    single: bool
    category: str
    stored: str
    value: re.Pattern[str]
    strict: bool
    vague: re.Pattern[str] | None
    sensitive: re.Pattern[str] | None
    firm: re.Pattern[str] | None

    def content(self, value: str, relationship: str) -> str:
        """The fact's sentence. Chinese gets a space where Latin letters begin or end."""
        before, _, after = self.stored.replace("{1}", relationship).partition("{0}")
        gaps = [" " if _SEAM.search(seam) else "" for seam in (before[-1:] + value[:1], value[-1:] + after[:1])]
        return before + gaps[0] + value + gaps[1] + after

    def firm_in(self, value: str) -> str:
        """The firm that a value names; "" for none."""
        found = self.firm.fullmatch(value) if self.firm else None
        return found["firm"] if found else ""

    def slot(self, value: str) -> str:
        """What a newer statement overrules: the kind where there is only one, else the kind with this value."""
        return self.kind if self.single else f"{self.kind}\n{value.casefold()}"


class Sieve(Generic[T]):
    """Regexes in order, each with what it stands for; only those are tried whose literals the text has."""

    def __init__(self, patterns: Sequence[tuple[re.Pattern[str], T]]) -> None:
        self.patterns = patterns
        sources = ((pattern.pattern, place) for place, (pattern, _) in enumerate(patterns))
        self._likely = Prefilter(sources, folded=any(pattern.flags & re.I for pattern, _ in patterns))

    def whole(self, text: str) -> Iterator[tuple[T, re.Match[str]]]:
        """Those that match the whole text."""
        for place in sorted(self._likely.select(text)):
            pattern, meaning = self.patterns[place]
            if found := pattern.fullmatch(text):
                yield meaning, found

    def any_in(self, text: str) -> bool:
        """Whether any matches somewhere in the text."""
        return any(self.patterns[place][0].search(text) for place in self._likely.select(text))


class Grammar(NamedTuple):
    """Everything read from one file. `marks`: the regexes beside the forms, by name; the comments are in the files.

    `said`: the ways to say each form. `over`: those to say that a kind of fact has ended. `subject`: "I", for a clause
    without one. `pasted`, `excluded`: marks that are looked for in every message and sentence.
    """

    forms: tuple[Form, ...]
    said: Sieve[Form]
    over: Sieve[str]
    subject: str
    marks: Mapping[str, re.Pattern[str]]
    pasted: Sieve[None]
    excluded: Sieve[None]


class KnownFact(NamedTuple):
    """A fact of the document as a form could have stored it; `form` is None where no form could.

    `value`: case folded. `firm`: the firm that it names, as it is written.
    """

    id: str
    content: str
    value: str = ""
    form: Form | None = None
    firm: str = ""


@prepared
def languages() -> Mapping[str, Grammar]:
    """The forms of `en` and `zh`; compiling them takes 0.3 s."""
    return {name: _read(name) for name in ("en", "zh")}


def _read(name: str) -> Grammar:
    data = yaml_text.read(_HERE / f"{name}.yaml")
    flags = re.I if data["ignore_case"] else 0  # a large set of characters takes long to compile where case is ignored
    fragments: dict[str, str] = {}
    for fragment, source in data["fragments"].items():
        fragments[fragment] = f"(?:{_filled(source, fragments)})"

    def compiled(source: str) -> re.Pattern[str]:
        return re.compile(_filled(source, fragments), flags)

    marks = {mark: compiled(source) for mark, source in data["marks"].items()}

    said: list[tuple[re.Pattern[str], Form]] = []

    def form(kind: str, many: str, category: str, stored: str, *ways: str) -> Form:
        values = "|".join(fragments[name] for each in ways for name in _VALUE.findall(each))
        made = Form(
            kind=kind,
            single=many == "one",
            category=category,
            stored=stored,
            value=compiled(values),
            strict=kind in {"preference", "taste"},  # else it may be a choice in the task at hand
            vague=marks["vague"] if kind in data.get("words", ()) else None,
            sensitive=compiled(data["sensitive"][kind]) if kind in data["sensitive"] else None,
            firm=compiled(data["firm"][kind]) if kind in data["firm"] else None,
        )
        said.extend((compiled(each + data["end"]), made) for each in ways)
        return made

    return Grammar(
        forms=tuple(form(*row) for row in data["forms"]),
        said=Sieve(said),
        over=Sieve([(compiled(way + data["end"]), kind) for kind, ways in data["over"].items() for way in ways]),
        subject=data["subject"],
        marks=marks,
        pasted=Sieve([(marks["pasted"], None)]),
        excluded=Sieve([(marks["excluded"], None)]),
    )


def is_proper(firm: str) -> bool:
    """Whether a firm is named, not only its trade ("a hospital")."""
    return _PROPER.match(firm) is not None


def recognise(fact_id: str, content: str) -> KnownFact:
    """The form that could have stored a fact, with the value."""
    sizes, begun = _by_beginning()
    likely = [one for size in sizes for one in begun.get(content[:size], ())]
    for _, before, after, form in sorted(likely, key=itemgetter(0)):
        value = content[len(before) : len(content) - len(after)].strip()
        if value and content.endswith(after) and form.value.match(value):
            return KnownFact(fact_id, content, value.casefold(), form, form.firm_in(value))
    return KnownFact(fact_id, content)


@cache
def _by_beginning() -> tuple[list[int], dict[str, list[tuple[int, str, str, Form]]]]:
    """The forms by what stands before the value, and the lengths of that; each with its place and what stands around.

    The longest form is the first of all: "The user is from {0}." is not "The user is {0}." with another value.
    """
    forms = [form for grammar in languages().values() for form in grammar.forms]
    ordered = sorted((form for form in forms if "{1}" not in form.stored), key=lambda form: -len(form.stored))
    begun: dict[str, list[tuple[int, str, str, Form]]] = {}
    for place, form in enumerate(ordered):
        before, _, after = form.stored.partition("{0}")
        begun.setdefault(before, []).append((place, before, after, form))
    return sorted({*map(len, begun)}), begun


def _filled(source: str, fragments: dict[str, str]) -> str:
    source = _VALUE.sub(lambda use: f"(?P<value>{fragments[use[1]]})", source)
    return _FRAGMENT.sub(lambda use: fragments[use[1]], source)
