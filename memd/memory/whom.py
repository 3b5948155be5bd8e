"""Whom a fact is about: the user, or another person or animal. `whom/` has the words by language.

The sentence says so, and where it does not its `subject`: "the user's sister moved" is about the sister, "Mia gave up
the violin" about Mia; "the user drives Mira to school" and "the user's new flat is in Faro" are about the user. Facts
about different persons never count as the same, and neither ends or contradicts the other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from memd.memory.document import Fact
from memd.memory.facts import content_of, person_of, subject_of
from memd.memory.text import CJK, fold, names, normal_key
from memd.push.patterns import load, prepared

_CHARS = 200
"""Characters of a sentence in which its subject is looked for."""

_CAPITALISED = rf"[^\W\d_a-zà-öø-ÿ{CJK}][^\W{CJK}]*(?:[.'’-][^\W{CJK}]+|\.)*"
_OWNER = re.compile(r"['’]s$|(?<=s)['’]$")
_SELF = frozenset(("user", "the user", "self", "me", "用户", "我", "本人", "自己", "nutzer", "nutzerin", "usuario"))


class _Patterns(NamedTuple):
    """What a sentence can open with. The number of a group of `relation` stands for the relationship."""

    relation: re.Pattern[str]
    user: re.Pattern[str]
    name: re.Pattern[str]
    with_user: re.Pattern[str]


@prepared
def _patterns() -> _Patterns:
    lists = load(Path(__file__).with_suffix(""))
    any_of = {name: f"(?:{'|'.join(sources)})" for name, sources in lists.items()}
    opening, verbs = f"{any_of['opening']}?", any_of["verbs"]
    chinese = f"{any_of['names']}(?={any_of['follows']})"
    latin = rf"(?P<latin>(?!(?:{any_of['no_name']}|{any_of['certain']})(?!\w)){_CAPITALISED}(?: {_CAPITALISED}){{0,2}})"
    relations = "|".join(f"({source})" for source in lists["relations"])
    relation = rf"{any_of['owned']}(?P<which>{any_of['former']}?{any_of['adjectives']}?)(?i:{relations})(?![a-zà-ÿ])"
    called = rf"(?:,? (?:named |called )?{latin}|(?:[名叫]*)(?P<chinese>{chinese}))?"
    aside = r"(?:, [^,]{1,40},|\s?[(（][^()（）]{1,40}[)）])?"
    subject = rf"{latin}(?:(?<=['’]s)\s|{aside}(?: and\b| (?:{any_of['certain']}\b|{verbs})))"
    return _Patterns(
        re.compile(rf"{opening}{relation}{any_of['of_user']}?(?!{any_of['no_relation']}){called}"),
        re.compile(f"{opening}{any_of['user']}"),
        re.compile(f"{opening}(?:{subject}|(?P<chinese>{chinese}))"),
        re.compile(any_of["with_user"]),
    )


def whom(content: str, person: str = "") -> str:
    """Whom a sentence is about, as text to compare: a folded name, a relationship, or "" for the user.

    `person`: the folded name in the fact's `subject`; it counts unless the sentence is plainly about the user.
    """
    told = _told(content)
    if told == "" or person in _SELF:
        return ""
    return person or told or ""


def whom_of(fact: Fact) -> str:
    """The same of a fact."""
    return whom(content_of(fact), person_of(fact))


def is_idle(content: str, person: str) -> bool:
    """Whether a subject says nothing beside this sentence: it is the user, or whom one about the user only mentions."""
    return fold(person) in _SELF or (_told(content) == "" and _names(content, person))


def whose(fact: Fact) -> str:
    """Whose fact it is, as `Mira (daughter)`; "" for the user, and where the sentence names both itself."""
    (person, relationship), sentence = subject_of(fact), content_of(fact)
    if not person or is_idle(sentence, person):
        return ""
    if relationship.casefold() in sentence.casefold() and _names(sentence, person):
        return ""
    return f"{person} ({relationship})" if relationship else person


def about(fact: Fact) -> str:
    """What its sentence does not say of whose fact it is: `Mira (daughter)`, or only `daughter` where it names her."""
    person, relationship = subject_of(fact)
    told = whose(fact)
    return relationship if told and _names(content_of(fact), person) else told


@lru_cache(maxsize=8192)
def _told(content: str) -> str | None:
    """Whom the subject of a sentence names; None where it names nobody that is known to be a person."""
    patterns, text = _patterns(), content[:_CHARS]
    if found := patterns.relation.match(text):
        if patterns.with_user.match(text, found.end()):
            return ""
        name = found["latin"] or found["chinese"]
        return _name(name) if name else f"{fold(found['which'])} {found.lastindex}"
    if patterns.user.match(text):
        return ""
    if found := patterns.name.match(text):
        end = found.end("latin") if found["latin"] else found.end()
        return "" if patterns.with_user.match(text, end) else _name(found["latin"] or found["chinese"])
    return None


def _names(sentence: str, person: str) -> bool:
    return names(normal_key(sentence), person)


def _name(name: str) -> str:
    return _OWNER.sub("", fold(name).strip())
