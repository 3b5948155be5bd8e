"""Orders: text that gives a permission, sends data away or sets rules aside instead of describing the user.

A memory is read at the start of every prompt, so one such sentence would act in all of them. What harms is permission,
exfiltration and override, whoever seems to say it; caution ("ask before touching production"), limits and wishes about
the way of answering do not. Which is which is learned (`harm`); `orders/patterns.yaml` has what no sentence of a memory
holds: forged tags and updates, markup that loads, commands of a shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from memd.memory.gates.harm import Kind, Weighed, is_harmful, pieces, quote_words, sentence_words
from memd.memory.gates.readings import is_hidden, plain
from memd.push.patterns import load, prepared
from memd.push.prefilter import Prefilter
from memd.push.sentence_ends import sentence_ends

LOOK_AT = 10_000
"""Characters of a text that are checked; no gate lets a longer one through."""

MOST_QUOTES, QUOTE_CHARS = 8, 1_000
"""Quotes of a fact that are looked at, and characters of each: mostly it has one, of a few words."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("forged_tag", "forged_update", "markup"), "markup"),
        **dict.fromkeys(("exfiltration", "command", "hidden", "order"), "instruction"),
    }
)
"""The kinds of text that are no statement, the most telling first, and the reason each is refused with."""


def text_refusal(text: str, quotes: Sequence[str] = ()) -> str | None:
    """The reason for refusing a text (`instruction`, `markup`); None when it is a statement.

    `quotes`: the user's words that it was drawn from. With them a statement is told far better from an order.
    """
    kind = kind_of(text, quotes)
    return KINDS[kind] if kind else None


def kind_of(text: str, quotes: Sequence[str] = ()) -> str | None:
    """The kind of a text that is no statement, one of KINDS; None for a statement. Never raises."""
    text = text[:LOOK_AT]
    said = [quote_words(plain(quote[:QUOTE_CHARS])[:QUOTE_CHARS]) for quote in quotes[:MOST_QUOTES]]
    reading = plain(text)[:LOOK_AT]  # NFKC makes eighteen characters of some
    if kind := _pattern_kind(reading):
        return kind
    return "order" if _is_order(reading, said) else "hidden" if is_hidden(text) else None


def said_refusal(text: str) -> str | None:
    """The reason for refusing the user's own words; None when they state something."""
    text = text[:LOOK_AT]
    reading = plain(text)[:LOOK_AT]
    if kind := _pattern_kind(reading):
        return KINDS[kind]
    ordered = any(is_harmful("said", quote_words(piece)) for piece in _pieces(reading))
    return "instruction" if ordered or is_hidden(text) else None


def is_markup(text: str) -> bool:
    """Whether a text holds tags, links or images as markup, or an update of the memory. Never raises."""
    kind = _pattern_kind(plain(text[:LOOK_AT])[:LOOK_AT])
    return kind is not None and KINDS[kind] == "markup"


def _is_order(reading: str, said: Sequence[Weighed]) -> bool:
    """Whether any sentence of a text reads like an order, by itself or with what it was drawn from.

    By itself, so that no harmless quote beside it hides one.
    """
    alone: Kind = "bare" if said else "text"
    return any(
        is_harmful(alone, sentence) or any(is_harmful("fact", sentence, quote) for quote in said)
        for sentence in map(sentence_words, _pieces(reading))
    )


def _pieces(text: str) -> Iterator[str]:
    """The sentences of a text, and their clauses."""
    start = 0
    for end in sentence_ends(text):
        yield from pieces(text[start:end].strip())
        start = end


def _pattern_kind(reading: str) -> str | None:
    found = {kind for kind, source in _patterns().select(reading) if _compiled(source).search(reading)}
    return next((kind for kind in KINDS if kind in found), None)


_compiled = cache(re.compile)


@prepared
def _compile_all() -> None:
    for _, source in _patterns().all():
        _compiled(source)


@prepared
def _patterns() -> Prefilter[tuple[str, str]]:
    """The patterns, each with its kind."""
    listed = load(Path(__file__).parent / "orders")
    return Prefilter((source, (kind, source)) for kind, sources in listed.items() for source in sources)
