"""Answers: whether a short turn of the user says anything, which may depend on the question before it.

"Yes" after "Are you allergic to nuts?" says a lot, "ok" after "It is saved." nothing, and "thanks" never does. A turn
is judged here only if it holds no words but those of the lists in `answers/`: any other word has content of its own.
The assistant's turn directly before decides what the words mean: a yes or no is an answer to a question anywhere in it,
weaker words only to what its end asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from memd.context import Message
from memd.push.patterns import Lists, prepared
from memd.push.width import nfkc

MAX_CHARS = 80
"""Longer turns have content. It also bounds the work."""

MAX_TOKENS = MAX_CHARS * 3 // 2
"""The estimated tokens of so long a turn at most: those of Chinese."""

_TAIL = 600
"""Characters at the end of the assistant's turn in which the question for weaker words is looked for."""

_QUESTION = 300
"""Characters before a question mark that are read of a question."""

_AFTER = 3
"""Sentences that may follow a question that is still open."""

Strength = Literal["courtesies", "noted", "assents", "answers"]
Question = Literal["closing", "question", "offer", "supposition", ""]
"""What the turn before asks: "" is a statement that asks nothing."""

_FILLERS = "fillers"
_STRENGTHS: tuple[Strength, ...] = ("courtesies", "noted", "assents", "answers")
"""The weakest first: a word of two languages counts as the stronger one."""

_LISTS = Lists("answers", "unmarked", "offers", "closings", "self_asked", "supposes")

_ENOUGH: dict[Strength, frozenset[Question]] = {
    "courtesies": frozenset(),
    "noted": frozenset({"offer"}),
    "assents": frozenset({"offer", "question"}),
    "answers": frozenset({"offer", "question", "supposition"}),
}
"""The questions to which words of each strength are an answer."""

_UNSPACED = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Letters of scripts without spaces between words: Chinese and Japanese."""

_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_PIECE = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:['-][^\W_{_UNSPACED}]+)*|[^\w\s]")
_LENGTHENED = re.compile(r"(.)\1{2,}")
_MARK = re.compile(r"[?？](?![\w=&%/\"'”’»」』])")
"""A question mark that ends a question: not one inside a URL, nor before a closing quotation mark."""

_SENTENCE = re.compile(r"[^.!?。！？…\n]*\w[^.!?。！？…\n]*(?:[.!?。！？…]+|\n|\Z)")
_OPTION = re.compile(r"\s*(?:[-*•·]|\(?[\w]{1,2}[.):：、）])\s*\S")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.S)
_END = re.compile(r"[.!。！…\n]")


class _Vocabulary(NamedTuple):
    words: dict[str, str]
    longest: dict[str, int]
    """Characters of the longest word without spaces, by its first character."""

    spaced: int
    """Words of the longest phrase."""


@prepared
def _vocabulary() -> _Vocabulary:
    words = {_plain(word): name for name in (_FILLERS, *_STRENGTHS) for word in _LISTS.sources(name)}
    longest: dict[str, int] = {}
    for word in filter(_IS_UNSPACED.match, words):
        longest[word[0]] = max(longest.get(word[0], 0), len(word))
    return _Vocabulary(words, longest, max(word.count(" ") + 1 for word in words))


class Before:
    """What the assistant said directly before a turn of the user; read once a short turn depends on it."""

    def __init__(self, *texts: str) -> None:
        self._unread = list(texts)
        self._tail = ""
        self._asked = False

    def add(self, text: str) -> None:
        """The assistant goes on with another message."""
        self._unread.append(text)

    @property
    def end(self) -> Question:
        """What its end asks."""
        self._read()
        return _question_at_end(self._tail)

    @property
    def asked(self) -> bool:
        """Whether anything in it is a question of which the answer says something."""
        self._read()
        return self._asked

    def _read(self) -> None:
        """Read what is new, so that each message is read once, however many short turns follow."""
        for text in self._unread:
            plain = _CODE.sub(" ", text)
            self._asked = self._asked or any(not _LISTS["closings"].search(one) for one in _questions(plain))
            self._tail = f"{self._tail}\n{plain[-_TAIL:]}"[-_TAIL:]
        self._unread.clear()


def says_nothing(text: str, before: Before | None) -> bool:
    """Whether a turn is an acknowledgement, after this turn of the assistant.

    `before` is None where the turn before is not known: then a yes or no may be an answer. An empty one means that
    nothing of the assistant stands before it.
    """
    strength = strength_of(text)
    if strength is None:
        return False
    if before is None:
        return strength != "answers"
    return before.end not in _ENOUGH[strength] and not (strength == "answers" and before.asked)


def without_acknowledgements(new: Sequence[Message], thread: Sequence[Message]) -> tuple[Message, ...]:
    """The new messages without those of the user that say nothing where they stand in the thread, oldest first."""
    silent: set[str] = set()
    before = Before()
    for message in thread:
        if message.role == "assistant":
            before.add(message.content)
        elif says_nothing(message.content, before):
            silent.add(message.identity)
        else:
            before = Before()
    return tuple(message for message in new if message.identity not in silent)


def strength_of(text: str) -> Strength | None:
    """How much a turn of nothing but listed words can say; None for a turn with content of its own."""
    if len(text) > MAX_CHARS:
        return None
    lists = set()
    for name in _words(_plain(text)):
        if name is None:
            return None
        lists.add(name)
    if lists == {_FILLERS}:  # "very much" alone is an answer in its own words
        return None
    return next((strength for strength in reversed(_STRENGTHS) if strength in lists), "courtesies")


def asks(text: str) -> bool:
    """Whether a turn of the assistant asks something of the user that an answer can be given to."""
    said = Before(text)
    return said.asked or said.end in ("question", "offer")


def _question_at_end(tail: str) -> Question:
    """What the end of a turn of the assistant asks, without its code."""
    tail = tail.strip().rstrip("*_~ ")
    open_part = _open_question(tail)
    if open_part is not None:
        if _LISTS["closings"].search(open_part):
            return "closing"
        return "offer" if _LISTS["offers"].search(open_part) else "question"
    last = _last_sentences(tail, 2)
    if _LISTS["closings"].search(last):
        return "closing"
    if _LISTS["offers"].search(last):
        return "offer"
    if _LISTS["unmarked"].search(_last_sentences(tail, 1)):
        return "question"
    return "supposition" if _LISTS["supposes"].search(last) else ""


def _questions(text: str) -> Iterator[str]:
    """The sentences that end in a question mark, wherever they stand."""
    last = 0
    for mark in _MARK.finditer(text):
        if mark.start() > last:  # not one in a row of marks
            sentence = _END.split(text[max(last, mark.start() - _QUESTION) : mark.end()])[-1]
            if any(map(str.isalnum, sentence)):
                yield sentence
        last = mark.end()


def _open_question(tail: str) -> str | None:
    """From the last sentence that ends in a question mark to the end; None where there is none that is still open."""
    marks = [mark.end() for mark in _MARK.finditer(tail)]
    if not marks:
        return None
    after = tail[marks[-1] :]
    sentences = [match[0] for match in _SENTENCE.finditer(tail[: marks[-1]])]
    question = sentences[-1] if sentences else ""
    options = all(_OPTION.match(line) for line in after.splitlines() if line.strip())
    if not options:
        following = len(_SENTENCE.findall(after))
        if following > _AFTER or (following and _LISTS["self_asked"].search(question)):
            return None
    return question + ("" if options else after)


def _last_sentences(tail: str, number: int) -> str:
    return "".join(_SENTENCE.findall(tail)[-number:]).rstrip()


def _plain(text: str) -> str:
    return nfkc(text).casefold().replace("’", "'").strip()


def _words(text: str) -> Iterator[str | None]:
    """The list of each word; None for a word that is in no list. Signs in no list are skipped."""
    vocabulary = _vocabulary()
    pieces = [match[0] for match in _PIECE.finditer(text)]
    place = 0
    while place < len(pieces):
        piece = pieces[place]
        if _IS_UNSPACED.match(piece):
            yield from _unspaced_words(piece, vocabulary)
            place += 1
        elif not piece[0].isalnum():
            if piece in vocabulary.words:
                yield vocabulary.words[piece]
            place += 1
        else:
            length, name = _phrase(pieces[place : place + vocabulary.spaced], vocabulary.words)
            yield name
            place += length


def _phrase(pieces: Sequence[str], words: dict[str, str]) -> tuple[int, str | None]:
    """The longest listed phrase that these pieces begin with: how many of them, and its list."""
    for length in range(len(pieces), 0, -1):
        if name := words.get(" ".join(pieces[:length])):
            return length, name
    for repeat in (r"\1", r"\1\1"):  # "yesss", "coool"
        if name := words.get(_LENGTHENED.sub(repeat, pieces[0])):
            return 1, name
    return 1, None


def _unspaced_words(run: str, vocabulary: _Vocabulary) -> Iterator[str | None]:
    start = 0
    while start < len(run):
        for end in range(min(len(run), start + vocabulary.longest.get(run[start], 0)), start, -1):
            if name := vocabulary.words.get(run[start:end]):
                yield name
                start = end
                break
        else:
            yield None
            return
