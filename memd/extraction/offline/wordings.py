"""Wordings: recognises facts of the document that one of the offline extractor's rules could have written."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from memd.extraction.offline.rules_en import RULES as ENGLISH_RULES
from memd.extraction.offline.rules_zh import RULES as CHINESE_RULES

RULES = (*ENGLISH_RULES, *CHINESE_RULES)

CATEGORIES = {rule.kind: rule.category for rule in RULES}
SINGLE_KINDS = {rule.kind for rule in RULES if rule.single}


class KnownFact(NamedTuple):
    """A fact of the document, read by its wording. `template`: the text before and after the value."""

    id: str
    content: str
    kind: str
    value: str
    template: tuple[str, str]


_Wording = tuple[str, str, Callable[[str], bool] | None]
"""The parts of a template after its value: kind, text after the value, check of the value."""


def _wordings() -> dict[str, list[_Wording]]:
    """All wordings, by the text before the value."""
    result: dict[str, list[_Wording]] = {}
    for rule in RULES:
        before, slot, after = rule.template.partition("{0}")
        if slot and not rule.kin:
            result.setdefault(before, []).append((rule.kind, after, rule.accept))
    for wordings in result.values():
        wordings.sort(key=lambda wording: -len(wording[1]))
    return result


_WORDINGS = _wordings()
BEGINNINGS = {
    kind: tuple(before for before, wordings in _WORDINGS.items() if any(wording[0] == kind for wording in wordings))
    for kind in {wording[0] for wordings in _WORDINGS.values() for wording in wordings}
}
"""For each kind, the texts that its facts can begin with."""

_STEM = 12


def _stems() -> dict[str, list[int]]:
    """The first `_STEM` characters of each wording, with the lengths of the texts before the value, longest first."""
    result: dict[str, list[int]] = {}
    for before in sorted(_WORDINGS, key=len, reverse=True):
        lengths = result.setdefault(before[:_STEM], [])
        if len(before) not in lengths:
            lengths.append(len(before))
    return result


_STEMS = _stems()
_STEM_LENGTHS = sorted(set(map(len, _STEMS)), reverse=True)


def recognise(fact_id: str, content: str) -> KnownFact:
    """The kind and value of a fact that a rule could have written; any other fact gets an empty kind."""
    for stem in _STEM_LENGTHS:
        # The longest first: "The user is from {0}." is not "The user is {0}." with another value.
        for length in _STEMS.get(content[:stem], ()):
            before = content[:length]
            for kind, after, accept in _WORDINGS.get(before, ()):
                value = content[length : len(content) - len(after)].strip()
                if content.endswith(after) and value and (accept is None or accept(value)):
                    return KnownFact(fact_id, content, kind, value.casefold(), (before, after))
    return KnownFact(fact_id, content, "", "", ("", ""))
