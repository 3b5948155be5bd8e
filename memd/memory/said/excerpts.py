"""Excerpts: the sentences of a user's turn that may be shown later as what was said. They pass two gates.

A turn that holds an order, a permission, markup, a secret or fiction anywhere gives none. Of the others only whole
sentences count that state something: no question, no request, no word to the assistant, nothing quoted or pasted; and
each passes the gates of facts, since nobody else judges it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from memd.extraction.offline.sentences import sentence_ends
from memd.memory.gates.instructions import holds_order, text_refusal
from memd.memory.gates.uploads import is_upload_event
from memd.memory.said.own_words import own_words
from memd.memory.said.turns import MAX_TURN_CHARS, Turn
from memd.push.answers import strength_of
from memd.push.marks import MARK
from memd.push.patterns import load, prepared
from memd.push.prefilter import Prefilter

GATES_VERSION = 3
"""The version of these gates. It grows whenever fewer sentences pass, and then older lines are judged anew."""

MAX_CHARS = 400
"""Characters of an excerpt at most; a longer run without an end is no sentence."""

_MARKUP = re.compile(
    r"</?[A-Za-z][^<>\n]{0,200}>|<!--|<\||^[ \t]*(?:```|~~~)|^[ \t]{0,3}#{1,6} |\[/?[A-Za-z_]{1,20}\]|\{\{|\{\s*\"\w"
    r"|^[ \t]*(?:system|assistant|user|human) ?:|[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
    r"|[\[【]/?[^\]】\n]{0,12}(?:系统|管理员|通知|助手|用户)[^\]】\n]{0,12}[\]】]",
    re.M | re.I,
)
_QUOTED = re.compile(r"\"[^\"\n]+\"|“[^”\n]+”|「[^」\n]+」|『[^』\n]+』|«[^»\n]+»")
_BULLET = re.compile(r"[\s\-*•·#>]*(?:\d{1,2}[.)、]\s+)?")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_STRAIGHT = str.maketrans("‘’", "''")

LEAST_WORDS = 3
"""Words of an excerpt at least."""

LEAST_CJK = 4
"""Characters of an excerpt without spaces between words at least."""

_OF_TURN = ("orders", "permissions", "fiction", "secrets")
_OF_SENTENCE = ("addressed", "questions", "requests", "hypothetical", "bare", "standing", "waivers")


class _Patterns(NamedTuple):
    """The sources of the patterns: those that spoil a whole turn, or a sentence; what only a report may hold."""

    of_turn: Prefilter[str]
    of_sentence: Prefilter[str]
    conduct: Prefilter[str]
    reports: Prefilter[str]


@prepared
def _patterns() -> _Patterns:
    sources = load(Path(__file__).parent / "statements")
    kinds = (_OF_TURN, _OF_SENTENCE, ("conduct",), ("reports",))
    return _Patterns(*(Prefilter((source, source) for name in names for source in sources[name]) for names in kinds))


_compiled = cache(re.compile)


def _matches(patterns: Prefilter[str], text: str) -> bool:
    """Whether any of the patterns matches a folded text."""
    return any(_compiled(source).search(text) for source in patterns.select(text))


@prepared
def _compile_all() -> None:
    for patterns in _patterns():
        for source in patterns.all():
            _compiled(source)


def judged(turn: Turn, user_names: Collection[str] = ()) -> Turn:
    """The turn with its excerpts, and the version of the gates that chose them.

    `user_names`: the names by which the user speaks, besides none at all; in a claim the user has no name.
    """
    return structs.replace(turn, excerpts=excerpts_of(turn, user_names=user_names), gates=GATES_VERSION)


def excerpts_of(turn: Turn, *, user_names: Collection[str]) -> tuple[tuple[int, int], ...]:
    """The start and end in the turn's text of each of its excerpts; none for other speakers and for the assistant."""
    if turn.role != "user" or (turn.name and turn.name not in user_names):
        return ()
    return tuple(excerpts_in(turn.text))


def excerpts_in(text: str) -> list[tuple[int, int]]:
    """The start and end of each excerpt of a text that the user wrote, redacted and cut as turns are."""
    text = text[:MAX_TURN_CHARS]
    if strength_of(text) or MARK.search(text) or _MARKUP.search(text):
        return []
    own = own_words(text)
    if _matches(_patterns().of_turn, _folded(own)) or holds_order(text):
        return []
    stated = [(start, end) for start, end in _sentences(own) if _states(own[start:end])]
    if _pass("\n".join(own[start:end] for start, end in stated)):
        return stated
    return [(start, end) for start, end in stated if _pass(own[start:end])]


def _sentences(own: str) -> Iterator[tuple[int, int]]:
    """The places of the sentences, without bullets and white space around them."""
    start = 0
    for end in sentence_ends(own):
        first, start = start, end
        if bullet := _BULLET.match(own, first, end):
            first = bullet.end()
        last = first + len(own[first:end].rstrip())
        if 0 < last - first <= MAX_CHARS:
            yield first, last


def _states(sentence: str) -> bool:
    """Whether a sentence states something in the user's own words."""
    if sentence.endswith((":", "：")):  # it announces what is shown
        return False
    cjk = len(_CJK.findall(sentence))
    if cjk < LEAST_CJK and len(_WORD.findall(_CJK.sub(" ", sentence))) + cjk / 2 < LEAST_WORDS:
        return False
    if any(_is_speech(quoted[0]) for quoted in _QUOTED.finditer(sentence)):
        return False
    folded = _folded(sentence)
    return not _matches(_patterns().of_sentence, folded) and _is_harmless(folded)


def _is_harmless(folded: str) -> bool:
    """Whether a sentence says nothing of what an assistant does or may do, or only reports of a person who did.

    Shown for months to every agent, a rule dressed as a statement acts like an order.
    """
    patterns = _patterns()
    if not _matches(patterns.conduct, folded):
        return True
    for source in patterns.reports.select(folded):
        folded = _compiled(source).sub(" ", folded)
    return not _matches(patterns.conduct, folded)


def _is_speech(quoted: str) -> bool:
    """Whether quoted words are more than a name or a title."""
    return len(_WORD.findall(_CJK.sub(" ", quoted))) + len(_CJK.findall(quoted)) / 2 > LEAST_WORDS


def _pass(sentences: str) -> bool:
    """Whether these sentences, one a line, pass the gates that facts pass; their secrets are cut out already."""
    return text_refusal(sentences) is None and not any(map(is_upload_event, sentences.split("\n")))


def _folded(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    return text.lower()
