"""Domains: what limits a request that names no fact, such as the allergy for "book us a table". Pure.

`domains/` has for each language what requests ask for and what limits them, by domain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from memd.config.yaml_text import read
from memd.memory.document import Fact
from memd.memory.facts import backstory_of, category_of, content_of
from memd.memory.text import fold
from memd.recall.words import roots

MOST = 6
"""Facts that one request brings at most: constraints first, then those that match most of the domain's words."""

_FILES = sorted(Path(__file__).with_suffix("").glob("*.yaml"))
_FIRST_UNSPACED = "\u2e80"
_FIRST_SENTENCES = re.compile(r"[,.;!?:，。；！？：]\s*")

Phrase = frozenset[str]
Domain = tuple[frozenset[Phrase], frozenset[Phrase]]


@cache
def _domains() -> tuple[Domain, ...]:
    """What each domain's requests ask for, and what limits them, as roots that must all occur."""
    found: dict[str, tuple[set[Phrase], set[Phrase]]] = {}
    for file in _FILES:
        for name, words in read(file)["domains"].items():
            asks, limits = found.setdefault(name, (set(), set()))
            asks.update(map(_phrase, words["asks"]))
            limits.update(map(_phrase, words["limits"]))
    return tuple((frozenset(asks), frozenset(limits)) for asks, limits in found.values())


@cache
def _request() -> re.Pattern[str]:
    """A clause that asks for something to be done."""
    languages: list[dict[str, Any]] = list(map(read, _FILES))
    english = [name for words in languages for name in words["requests"] if name.isascii()]
    chinese = [name for words in languages for name in words["requests"] if not name.isascii()]
    openings = [re.escape(name) for words in languages for name in words["openings"]]
    begins = rf"(?:(?:{'|'.join(openings)})\b,?\s*){{0,3}}+(?:{'|'.join(english)})\b"
    return re.compile(rf"{begins}|[^吗呢什怎哪谁几]{{0,10}}(?:{'|'.join(chinese)})[^吗呢什怎哪谁几]*\Z")


class Limits:
    """The facts of a memory that limit requests, by domain. Built once, never changed."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._by_domain: list[dict[int, tuple[bool, int, int]]] = [{} for _ in _domains()]
        for place, fact in enumerate(facts):
            words = frozenset(roots(f"{content_of(fact)} {backstory_of(fact)}"))
            for (_, limits), limited in zip(_domains(), self._by_domain, strict=True):
                if matched := sum(phrase <= words for phrase in limits):
                    limited[place] = category_of(fact) != "constraint", -matched, place

    def of(self, query: str) -> list[int]:
        """The places of the facts that limit what a request asks for, the surest first."""
        asked = frozenset(roots(query))
        found: dict[int, tuple[bool, int, int]] = {}
        for (asks, _), limited in zip(_domains(), self._by_domain, strict=True):
            if any(phrase <= asked for phrase in asks):
                found |= limited
        return sorted(found, key=found.__getitem__)[:MOST]


def is_request(query: str) -> bool:
    """Whether a clause of the query asks for something to be done."""
    clauses = _FIRST_SENTENCES.split(fold(query[:500]))
    return any(_request().match(clause) for clause in clauses if clause)


def _phrase(words: str) -> Phrase:
    """The roots of a phrase; of characters only the pairs, if there are any."""
    found = roots(words)
    pairs = [root for root in found if root[0] < _FIRST_UNSPACED or len(root) > 1]
    return frozenset(pairs or found)
