"""Candidates: which of many patterns may be found in a text at all, told by the texts that they cannot do without.

All those texts are looked for in one pass (Aho and Corasick's automaton), and a pattern is a candidate when one of its
own occurs. Most patterns are never looked at, and never compiled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import ahocorasick  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extension without types

from memd.push.literals import needed

P = TypeVar("P")


class Candidates(Generic[P]):
    """Patterns by what they need. `folded`: they ignore case."""

    def __init__(self, patterns: Iterable[tuple[str, P]], *, folded: bool = False) -> None:
        self._folded = folded
        self._always: list[P] = []
        self._owners: dict[str, list[P]] = defaultdict(list)
        for source, pattern in patterns:
            texts = {_fold(text) for text in needed(source)} if folded else needed(source)
            if not texts:
                self._always.append(pattern)
            for text in texts:
                self._owners[text].append(pattern)
        self._automaton = ahocorasick.Automaton()
        for text in self._owners:
            self._automaton.add_word(_narrow(text), text)
        self._automaton.make_automaton()

    def all(self) -> Iterator[P]:
        """All patterns, some more than once."""
        yield from self._always
        for owners in self._owners.values():
            yield from owners

    def needs(self, text: str) -> list[str]:
        """The needed texts that occur in a text."""
        text = _narrow(_fold(text) if self._folded else text)
        return list({wanted for _, wanted in self._automaton.iter(text)}) if self._owners else []

    def may_match(self, found: Sequence[str]) -> bool:
        """Whether any pattern is to be tried at all where `needs` has answered `found`."""
        return bool(found or self._always)

    def of(self, text: str) -> set[P]:
        """The patterns that may be found in a text at all."""
        return {*self._always, *(owner for wanted in self.needs(text) for owner in self._owners[wanted])}

    def among(self, found: Sequence[str], text: str) -> list[P]:
        """The patterns to try on a part of a text for which `needs` has answered `found`; some maybe twice.

        Not for patterns that ignore case.
        """
        return [*self._always, *(owner for wanted in found if wanted in text for owner in self._owners[wanted])]


def _fold(text: str) -> str:
    """So that whatever is equal to `re.IGNORECASE` is equal; Turkish letters are not by casefolding alone."""
    folded = text.casefold()
    return folded if folded.isascii() else folded.replace("i\u0307", "i").replace("\u0131", "i")


def _narrow(text: str) -> str:
    """A text with a character for each byte of its UTF-8.

    The automaton tries the characters that may come next one after the other: hundreds at its root for Chinese texts,
    where their bytes begin in six ways.
    """
    return text if text.isascii() else text.encode(errors="surrogatepass").decode("latin-1")
