"""Halving: a batch that the model cannot take is made smaller, in order, until the guilty messages are alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from memd.context import Message
from memd.errors import ContentRefused, ContentTooLong
from workers.outcome import Guilty, Outcome, Skipped, Stored

MAX_CALLS = 64
"""Model calls that one halving may cost: eight guilty messages among thousands are found with fewer."""

Store = Callable[[Sequence[Message]], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Halved:
    """What became of the parts, in order: what was stored, who is guilty, and what ended it before its time."""

    parts: tuple[Stored | Skipped, ...]
    guilty: tuple[Guilty, ...]
    ended_by: Outcome | None


class Halving:
    """One halving. `store` brings a part to its end, or raises ContentTooLong or ContentRefused."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts: list[Stored | Skipped] = []
        self._guilty: list[Guilty] = []
        self._ended_by: Outcome | None = None
        self._calls = 0

    async def run(self, messages: Sequence[Message], failure: ContentRefused | ContentTooLong) -> Halved:
        """Find out who is to blame for the failure of `messages`, and store the others."""
        await self._blame(messages, failure)
        return Halved(tuple(self._parts), tuple(self._guilty), self._ended_by)

    @property
    def guilty(self) -> set[str]:
        """The identities found guilty so far: they are no context for the rest."""
        return {one.identity for one in self._guilty}

    async def _blame(self, messages: Sequence[Message], failure: ContentRefused | ContentTooLong) -> None:
        users = [place for place, message in enumerate(messages) if message.role == "user"]
        if len(messages) == 1 or not users or self._calls >= MAX_CALLS:
            self._guilty += [Guilty(message.identity, failure.code, str(failure)) for message in messages]
        elif len(users) == 1:
            # A reply cannot be tried without its question: when that one is fine alone, the rest is to blame.
            question = messages[users[0] : users[0] + 1]
            if await self._try(question):
                rest = [message for message in messages if message is not question[0]]
                self._guilty += [Guilty(message.identity, failure.code, str(failure)) for message in rest]
        else:
            middle = users[len(users) // 2]
            await self._try(messages[:middle])
            await self._try(messages[middle:])

    async def _try(self, part: Sequence[Message]) -> bool:
        """Store one part; False when it could not be, whoever is to blame, or the halving was ended."""
        if self._ended_by is not None:
            return False
        self._calls += 1
        try:
            outcome = await self._store(part)
        except (ContentRefused, ContentTooLong) as failure:  # smaller still; the claim keeps all of it meanwhile
            await self._blame(part, failure)
            return False
        if isinstance(outcome, (Stored, Skipped)):
            self._parts.append(outcome)
            return True
        self._ended_by = outcome
        return False
