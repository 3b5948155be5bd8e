"""Excerpts: the sentences of a user's turn that may be shown later as what was said. They pass two gates.

A turn that holds markup, a secret or fiction anywhere gives none. Of the others only whole sentences count that state
something: no question, no request, no word to the assistant, nothing quoted or pasted; and each passes the gates of
facts and is no order itself, since nobody else judges it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from memd.memory.gates.instructions import is_markup, said_refusal
from memd.memory.gates.uploads import is_upload_event, names_upload
from memd.memory.said.own_words import own_words
from memd.memory.said.turns import MAX_TURN_CHARS, Turn
from memd.push.answers import strength_of
from memd.push.marks import MARK
from memd.push.patterns import load, prepared
from memd.push.prefilter import Prefilter
from memd.push.sentence_ends import sentence_ends
from memd.push.width import nfkc

GATES_VERSION = 4
"""The version of these gates. It grows whenever fewer sentences pass, and then older lines are judged anew."""

MAX_CHARS = 400
"""Characters of an excerpt at most; a longer run without an end is no sentence."""

_MARKUP = re.compile(
    r"</?[A-Za-z][^<>\n]{0,200}>|<!--|<\||^[ \t]*(?:```|~~~)|^[ \t]{0,3}#{1,6} |\[/?[A-Za-z_]{1,20}\]|\{\{|\{\s*\"\w"
    r"|^[ \t]*(?:system|assistant|user|human) ?:|[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
    r"|[\[【]/?[^\]】\n]{0,12}(?:系统|管理员|通知|助手|用户)[^\]】\n]{0,12}[\]】]",
    re.M | re.I,
)
_MARKUP_SIGN = re.compile("[<`~#\\[{:：【\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Every markup has one of these; most texts have none, which is found ten times as fast."""

_QUOTED = re.compile(r"\"[^\"\n]+\"|“[^”\n]+”|「[^」\n]+」|『[^』\n]+』|«[^»\n]+»")
_BULLET = re.compile(r"[\s\-*•·#>]*(?:\d{1,2}[.)、]\s+)?")
_ONE_WORD = r"[^\W_]++(?:['’-][^\W_]++)*+"
_WORD = re.compile(_ONE_WORD)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_STRAIGHT = str.maketrans("‘’", "''")

LEAST_WORDS = 3
"""Words of an excerpt at least."""

_ENOUGH_WORDS = re.compile(rf"(?<![^\W_]){_ONE_WORD}(?:[\W_]+{_ONE_WORD}){{{LEAST_WORDS - 1}}}")
"""It begins at the beginning of a word: tried inside one too, a long word would take time by the square of it."""

LEAST_CJK = 4
"""Characters of an excerpt without spaces between words at least."""

_OF_TURN = ("orders", "permissions", "fiction", "secrets")
_OF_SENTENCE = ("addressed", "questions", "requests", "hypothetical", "bare", "standing", "waivers")


class _Pattern(NamedTuple):
    """A pattern of the list of this name."""

    name: str
    source: str


@prepared
def _prefilter() -> Prefilter[_Pattern]:
    sources = load(Path(__file__).parent / "statements")
    names = (*_OF_TURN, *_OF_SENTENCE, "conduct", "reports")
    return Prefilter((source, _Pattern(name, source)) for name in names for source in sources[name])


_compiled = cache(re.compile)


@prepared
def _compile_all() -> None:
    for pattern in _prefilter().all():
        _compiled(pattern.source)


def _matches(likely: Iterable[_Pattern], names: Collection[str], text: str) -> bool:
    """Whether any of these patterns, of the lists of these names, matches a folded text."""
    return any(_compiled(source).search(text) for name, source in likely if name in names)


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
    if strength_of(text) or (_MARKUP_SIGN.search(text) and (MARK.search(text) or _MARKUP.search(text))):
        return []
    if is_markup(text):
        return []
    own = own_words(text)
    folded = _folded(own)
    literals = _prefilter().literals_in(folded)
    if _matches(_prefilter().select_part(literals, folded), _OF_TURN, folded):
        return []
    stated = [(start, end) for start, end in _sentences(own) if _states(own[start:end], literals)]
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


def _states(sentence: str, literals: Sequence[str]) -> bool:
    """Whether a sentence states something in the user's own words. `literals`: those of its turn."""
    if sentence.endswith((":", "：")):  # it announces what is shown
        return False
    if not _is_long_enough(sentence):
        return False
    if any(_is_speech(quoted[0]) for quoted in _QUOTED.finditer(sentence)):
        return False
    folded = _folded(sentence)
    likely = _prefilter().select_part(literals, folded)
    return not _matches(likely, _OF_SENTENCE, folded) and _is_harmless(likely, folded)


def _is_long_enough(sentence: str) -> bool:
    cjk = 0 if sentence.isascii() else len(_CJK.findall(sentence))
    if not cjk:
        return _ENOUGH_WORDS.search(sentence) is not None
    return cjk >= LEAST_CJK or len(_WORD.findall(_CJK.sub(" ", sentence))) + cjk / 2 >= LEAST_WORDS


def _is_harmless(likely: Iterable[_Pattern], folded: str) -> bool:
    """Whether a sentence says nothing of what an assistant does or may do, or only reports of a person who did.

    Shown for months to every agent, a rule dressed as a statement acts like an order.
    """
    if not _matches(likely, ("conduct",), folded):
        return True
    for source in {source for name, source in likely if name == "reports"}:
        folded = _compiled(source).sub(" ", folded)
    return not _matches(_prefilter().select(folded), ("conduct",), folded)


def _is_speech(quoted: str) -> bool:
    """Whether quoted words are more than a name or a title."""
    return len(_WORD.findall(_CJK.sub(" ", quoted))) + len(_CJK.findall(quoted)) / 2 > LEAST_WORDS


def _pass(sentences: str) -> bool:
    """Whether these sentences, one a line, pass the gates that facts pass; their secrets are cut out already."""
    if names_upload(sentences) and any(map(is_upload_event, sentences.split("\n"))):
        return False
    return said_refusal(sentences) is None


def _folded(text: str) -> str:
    if not text.isascii():
        text = nfkc(text).translate(_STRAIGHT)
    return text.lower()
