"""Support: whether what was said proves a fact. A quote proves that words were said, not what the fact makes of them.

The numbers and names of a fact stand in the messages, of whatever role, or in what was known; its quotes are the user's
own words, no quotation and no joke, and state what the fact says; and a bare yes answers a question about it. What
fails is doubtful: a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Literal, NamedTuple

from memd.context import Message
from memd.memory.gates.moods import answers_it, is_announced_as_own, is_bare, mood
from memd.memory.gates.quotations import is_quoted
from memd.memory.gates.said_names import SaidNames
from memd.memory.gates.said_numbers import SaidNumbers
from memd.memory.said.own_words import is_speech, own_words

Doubt = Literal["number", "name", "question", "hypothetical", "negation", "joke", "not_the_user", "bare_yes", ""]
"""What is missing; "": the fact is supported."""


class Quoted(NamedTuple):
    """A passage that a fact quotes, as written, and the place of its message among all messages."""

    place: int
    passage: str


class Support:
    """Everything said around the facts of a claim: its messages in order, with those before them, and known facts."""

    def __init__(self, messages: Sequence[Message], known: Sequence[str], said_on: date) -> None:
        self._messages = messages
        said = [message.content for message in messages]
        named = [message.name for message in messages if message.name]
        # What is said with a fact mostly holds its numbers and names; a hundred known facts are read only for the rest.
        figures = SaidNumbers(said, said_on)
        self._figures = (figures, SaidNumbers(known, said_on, more=figures))
        self._names = (SaidNames([*said, *named]), SaidNames([*known, *said, *named]))
        self._own: dict[int, str] = {}

    def doubt(self, fact: str, quotes: Sequence[Quoted]) -> Doubt:
        """Why a fact is doubtful; one good quote is enough for the doubts about quotes."""
        if all(figures.missing(fact) for figures in self._figures):
            return "number"
        if all(names.missing(fact) for names in self._names):
            return "name"
        doubts = [self._doubt_of(fact, quoted) for quoted in quotes]
        return doubts[0] if doubts and all(doubts) else ""

    def _doubt_of(self, fact: str, quoted: Quoted) -> Doubt:
        message = self._messages[quoted.place]
        if is_bare(message.content):
            asked = self._messages[quoted.place - 1] if quoted.place else None
            answers = asked is not None and asked.role == "assistant" and answers_it(fact, asked.content)
            return "" if answers else "bare_yes"
        start, end = _place(quoted.passage, message.content)
        if start < 0:
            return ""
        if quoted.place not in self._own:
            self._own[quoted.place] = own_words(message.content)
        own = self._own[quoted.place][start:end]
        may_be_own = is_speech(message.content, start) or is_announced_as_own(message.content, start)
        if not may_be_own and 2 * sum(map(str.isalnum, own)) < sum(map(str.isalnum, message.content[start:end])):
            return "not_the_user"
        if is_quoted(message.content, start, end):
            return "not_the_user"
        return mood(fact, message.content, start, end)


def _place(passage: str, text: str) -> tuple[int, int]:
    """The start and end of a passage in a text, whatever its gaps; -1 and -1 when it is not there."""
    if (start := text.find(passage)) >= 0:  # the fast path
        return start, start + len(passage)
    found = re.search(r"\s+".join(map(re.escape, passage.split())), text)
    return found.span() if found else (-1, -1)
