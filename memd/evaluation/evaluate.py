"""Evaluating: runs the sessions of labelled users through the memory, each at its own time, and judges each result."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memd.config import Settings
from memd.context import Bucket, Key
from memd.errors import ModelUnavailable, Rejected
from memd.evaluation.in_memory import Answers, InMemory, Remembered
from memd.evaluation.judging import Judge
from memd.evaluation.labels import LabelledUser, sizes
from memd.evaluation.lines import BadLabels, Line, nothing_in, read_lines
from memd.evaluation.long_chat import window_after
from memd.evaluation.saved_replies import Unanswered
from memd.evaluation.tally import PARTS, Tally
from memd.extraction.protocol import Usage
from memd.memory.document import empty_document
from memd.push.signals import Patterns

Users = Mapping[str, Line[LabelledUser]]


@dataclass
class Spent:
    """Tokens and time of the model's calls. `seconds`: one entry per call."""

    sessions: int = 0
    usage: dict[str, Usage] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def add(self, done: Remembered) -> None:
        """Count the calls of a session."""
        self.sessions += 1
        for asked in done.asked:
            self.seconds.append(asked.seconds)
            model, usage = "", asked.failure.usage if asked.failure else None
            if asked.extraction:
                model, usage = asked.extraction.model, asked.extraction.usage
            if usage is not None:
                self.usage[model] = self.usage.get(model, Usage()) + usage


@dataclass
class Run:
    """The results so far: an interrupted run has judged some of its users."""

    tally: Tally = field(default_factory=Tally)
    spent: Spent = field(default_factory=Spent)
    finished: set[str] = field(default_factory=set)
    unanswered: list[Unanswered] = field(default_factory=list)
    outages: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    """Repairs of the form of replies, by kind."""

    malformed_items: int = 0
    """Items that were refused for their form."""


def read_users(paths: Sequence[Path], chosen: Sequence[str] = ()) -> dict[str, Line[LabelledUser]]:
    """The users of these sets, by name. `chosen`: names to keep; empty keeps all. Raises BadLabels."""
    users: dict[str, Line[LabelledUser]] = {}
    for line in read_lines(paths, LabelledUser):
        if problem := next(line.value.problems(), ""):
            raise line.wrong(problem)
        if line.value.user in users:
            raise line.wrong("another line has the same `user`")
        users[line.value.user] = line
    if not users:
        raise nothing_in(paths)
    if unknown := [name for name in chosen if name not in users]:
        raise BadLabels(f"these sets have no user {unknown[0]}")
    return {name: line for name, line in users.items() if not chosen or name in chosen}


def user_sizes(users: Users) -> dict[str, dict[str, int]]:
    """The number of users, sessions and labels, by part."""
    return {
        part: sizes([line.value for line in users.values() if line.held_out is held_out])
        for part, held_out in PARTS.items()
    }


class Evaluation:
    """One run over labelled users."""

    def __init__(self, settings: Settings, patterns: Patterns, answers: Answers) -> None:
        self._settings = settings
        self._memory = InMemory(settings, patterns, answers)

    async def run(self, users: Users, run: Run, progress: Callable[[int], None] | None = None) -> None:
        """Measure these users, several at once; `run` is filled as they finish."""
        room = asyncio.Semaphore(self._settings.drain.concurrency)

        async def one(line: Line[LabelledUser]) -> None:
            async with room:
                await self._user(line, run)
            run.finished.add(line.value.user)
            if progress:
                progress(len(run.finished))

        await asyncio.gather(*map(one, users.values()))

    async def _user(self, line: Line[LabelledUser], run: Run) -> None:
        user = line.value
        judge = Judge(user, self._settings, line.held_out)
        document = empty_document(Bucket(user.user))
        for session in user.sessions:
            try:
                key = Key(session.thread or session.id, user.user)
                context = self._memory.context(key, session.pushes(), user_name=user.user_name)
                done = await self._memory.remember(context, document, session.at, f"{user.user}.{session.id}")
            except Rejected as error:
                raise line.wrong(f"session {user.sessions.index(session) + 1}: {error}") from None
            except Unanswered as unanswered:  # the later sessions of this user depend on it
                run.unanswered.append(unanswered)
                return
            document = done.after
            run.spent.add(done)
            for extraction in (asked.extraction for asked in done.asked if asked.extraction):
                run.mended.update(extraction.mended)
                run.malformed_items += len(extraction.malformed)
            run.outages.update(
                asked.failure.code for asked in done.asked if isinstance(asked.failure, ModelUnavailable)
            )
            run.tally.add(judge.session(session, done))
            run.tally.add(judge.questions(session, document, last=session is user.sessions[-1]))
        said = [message for session in user.sessions for message in session.messages]
        run.tally.add(judge.end(document, window_after(said)))
