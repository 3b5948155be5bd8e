"""Whether the user asks to forget what the extractor names: it read the messages, so a quote needs few words of a wish.

The patterns of `wishes` say what to forget where nobody else does, and must be strict. Here the extractor says it, and
the sentences of its quote only have to ask the assistant to forget, to erase or not to keep something.
"""

from __future__ import annotations

import re
from pathlib import Path

from memd.memory.said.wishes import lowered, sentences_of, wish_of, without_harmless
from memd.push.patterns import Lists

_LISTS = Lists(Path(__file__).parent / "wishes", "asks_plainly", "asks", "asks_not", "drops", "documents", "erases")


def asks_to_forget(quote: str, turn: str) -> bool:
    """Whether the sentences of a turn that hold a quote of it ask to forget, to erase or not to keep something."""
    words = _sentences(quote, turn)
    left = _LISTS["asks_not"].sub(_gap, words)
    if _LISTS["asks_plainly"].search(left):
        return True
    left = without_harmless(left)
    if _LISTS["asks"].search(left):
        return True
    return _LISTS["drops"].search(left) is not None and not _LISTS["documents"].search(words)


def may_ask_to_forget(quote: str, turn: str) -> bool:
    """Whether at least the patterns of `wishes` find one in these sentences, which tell a document less well apart."""
    words = _sentences(quote, turn)
    return wish_of(_LISTS["asks_not"].sub(_gap, words)) is not None and not _LISTS["documents"].search(words)


def speaks_of_erasing(quote: str) -> bool:
    """Whether a quote has a word of forgetting or erasing at all."""
    return _LISTS["erases"].search(lowered(quote)) is not None


def _sentences(quote: str, turn: str) -> str:
    return " ".join(sentences_of(quote, turn).split())


def _gap(match: re.Match[str]) -> str:
    return " " * len(match[0])
