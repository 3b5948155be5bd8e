"""Word finder: finds the words of many languages in one pass over a text, each by its regex."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

import ahocorasick  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extension without types

from memd.errors import ConfigError
from memd.push.prefilter import Literals, first_literals

Place = tuple[int, int]

AT_ONCE = 3
"""Characters between two words of which the second follows the first at once."""


class WordFinder:
    """Regexes of words by kind. Each regex begins with one of a few literals, and is tried only where one occurs."""

    def __init__(self, sources: Iterable[tuple[str, str]]) -> None:
        """Take pairs of a kind and a regex. Raises ConfigError when a regex begins with no literal."""
        self._kinds: set[str] = set()
        owners: dict[str, list[tuple[str, Callable[[str, int], re.Match[str] | None]]]] = defaultdict(list)
        for kind, source in sources:
            for literal in _shortest(first_literals(source)):
                owners[literal].append((kind, re.compile(source).match))
            if not first_literals(source):
                raise ConfigError(f"the pattern of a word must begin with a literal: {source}")
            self._kinds.add(kind)
        self._automaton = ahocorasick.Automaton()
        for literal, patterns in owners.items():
            self._automaton.add_word(literal, (len(literal), patterns))
        self._automaton.make_automaton()

    def find(self, text: str) -> dict[str, list[Place]]:
        """The places of the words of each kind, in order and apart (see `add`)."""
        found: dict[str, list[Place]] = {kind: [] for kind in self._kinds}
        for last, (length, patterns) in self._automaton.iter(text):
            start = last - length + 1
            for kind, matches in patterns:
                if match := matches(text, start):
                    add(match.span(), found[kind])
        return found


def add(place: Place, places: list[Place]) -> None:
    """Add the place of a word to those before it. A word that lies in another is left out.

    A word that the next one follows at once is left out too, so a text of nothing but words has few places.
    """
    if not places:
        places.append(place)
        return
    start, (first, last) = place[0], places[-1]
    if start > last + AT_ONCE:
        places.append(place)
    elif (start >= last or start <= first) and place[1] > last:
        places[-1] = place


def _shortest(literals: Literals) -> list[str]:
    """The literals without those that begin with another."""
    kept: list[str] = []
    for literal in sorted(literals):
        if not kept or not literal.startswith(kept[-1]):
            kept.append(literal)
    return kept
