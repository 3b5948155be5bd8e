"""Labels: the types of a labelled set. One line of a set is one user; evaluation/README.md explains each field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from memd.evaluation.matching import Matcher

YEARS = range(1970, 9999)
"""The years of `at`. Moments near the ends of the calendar overflow in UTC and in the retention of facts."""

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,40}\Z")]

FactClass = Literal[
    "home", "job", "family", "identity", "constraint", "health", "food", "preference", "habit", "skill", "tool",
    "project", "goal", "event", "decision", "belief", "correction", "other",
]  # fmt: skip
BaitKind = Literal[
    "assistant_words", "pasted", "quoted", "fiction", "hypothetical", "question", "joke", "transient", "task",
    "permission", "order", "off_record", "forget", "secret", "wrong_person", "guess", "negated", "other",
]  # fmt: skip
QuestionKind = Literal["recall", "multi_session", "proactive", "current"]
Producer = Literal["whole", "turns", "growing"]


class Must(Matcher, frozen=True, kw_only=True):
    """A fact that a careful person would keep. `person`: names of its subject, if that is not the user."""

    id: Name
    class_: FactClass = field(name="class")
    person: tuple[str, ...] = ()


class Bait(Matcher, frozen=True, kw_only=True):
    """A text that must not be stored."""

    kind: BaitKind


class Gone(Matcher, frozen=True, kw_only=True):
    """A fact that must be inactive afterwards. `by`: the `must` of the same session that replaces it."""

    by: Name | None = None


class LabelledSession(Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation and its labels. The run's clock is set to `at`."""

    id: Name
    at: Annotated[datetime, Meta(tz=True)]
    messages: Annotated[tuple[dict[str, Any], ...], Meta(min_length=1)]
    thread: str = ""
    producer: Producer = "whole"
    must: tuple[Must, ...] = ()
    must_not: tuple[Bait, ...] = ()
    allowed: tuple[Matcher, ...] = ()
    gone: tuple[Gone, ...] = ()
    kept: tuple[Matcher, ...] = ()

    def pushes(self) -> Iterator[tuple[dict[str, Any], ...]]:
        """The messages of each push, as the producer sends them."""
        if self.producer == "whole":
            yield self.messages
        elif self.producer == "turns":
            yield from ((message,) for message in self.messages)
        else:
            ends = [place for place, message in enumerate(self.messages) if place and message.get("role") == "user"]
            yield from (self.messages[:end] for end in (*ends, len(self.messages)))

    def wanted(self) -> tuple[Matcher, ...]:
        """Matchers of the facts that this session may store: `must` and `allowed`."""
        return (*self.must, *self.allowed)


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """A query and the facts that its injected block must hold. `after`: id of the session after which it is asked."""

    query: Annotated[str, Meta(min_length=1)]
    kind: QuestionKind
    holds: Annotated[tuple[Matcher, ...], Meta(min_length=1)]
    holds_not: tuple[Matcher, ...] = ()
    after: Name | None = None


class LabelledUser(Struct, frozen=True, forbid_unknown_fields=True):
    """One user: sessions in order of time, and questions."""

    user: Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,40}\Z")]
    language: str
    about: str
    sessions: Annotated[tuple[LabelledSession, ...], Meta(min_length=1)]
    questions: Annotated[tuple[Question, ...], Meta(max_length=10)]
    user_name: str | None = None
    """What the pushes call the user, where messages have the names of their speakers."""

    def problems(self) -> Iterator[str]:
        """Broken rules about several fields, a sentence each."""
        if far := next((n for n, session in enumerate(self.sessions, 1) if session.at.year not in YEARS), 0):
            yield f"`at` of session {far} is outside the years {YEARS[0]} to {YEARS[-1]}"
            return  # moments at the ends of the calendar cannot be compared in UTC
        ids = [session.id for session in self.sessions]
        if len(set(ids)) < len(ids):
            yield "two sessions have the same id"
        if any(later.at < earlier.at for earlier, later in zip(self.sessions, self.sessions[1:], strict=False)):
            yield "the sessions are not in order of `at`"
        musts = [must.id for session in self.sessions for must in session.must]
        if len(set(musts)) < len(musts):
            yield "two entries of `must` have the same id"
        for number, session in enumerate(self.sessions, 1):
            named = {must.id for must in session.must}
            if any(gone.by and gone.by not in named for gone in session.gone):
                yield f"`by` in session {number} names no `must` of that session"
        if any(question.after and question.after not in ids for question in self.questions):
            yield "`after` of a question names no session"


def sizes(users: Sequence[LabelledUser]) -> dict[str, int]:
    """The number of users, sessions and labels."""
    sessions = [session for user in users for session in user.sessions]
    return {
        "users": len(users),
        "sessions": len(sessions),
        "must": sum(len(session.must) for session in sessions),
        "must_not": sum(len(session.must_not) for session in sessions),
        "replacements": sum(gone.by is not None for session in sessions for gone in session.gone),
        "questions": sum(len(user.questions) for user in users),
    }
