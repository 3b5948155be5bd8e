"""Session facts: when what holds in one conversation only is over. Pure.

It ends SESSION_HOURS after the newest message of its thread, which each commit of the thread moves; and it ends when
the user says the same for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from memd.context import Message
from memd.memory.document import Fact
from memd.memory.duplicates import Contents, says_more
from memd.memory.facts import Scope, content_of, evidence_of, id_of, is_manual, person_of, scope_of, valid_until
from memd.memory.ledger import places
from memd.push.times import iso, moment

SESSION_HOURS = 24
"""Hours for which the facts of a conversation hold after its newest message."""

SESSION_TIME = timedelta(hours=SESSION_HOURS)


def newest(session: Scope, messages: Iterable[Message], facts: Iterable[Fact], now: datetime) -> datetime:
    """When the newest known message of a conversation was said; never later than now, as clocks may be fast.

    `messages`: those that come now. The document knows others: those that its facts quote, and the one that the end of
    the conversation's facts counts from.
    """
    times = (time for time in _times(session, messages, facts) if time <= now)
    return max(times, default=now)


def _times(session: Scope, messages: Iterable[Message], facts: Iterable[Fact]) -> Iterator[datetime]:
    said: list[object] = [message.said_at for message in messages]
    thread_id = places(session.id)[-1]
    for fact in facts:
        said += [entry.get("saidAt") for entry in evidence_of(fact) if entry.get("thread") == thread_id]
        if scope_of(fact) == session and (end := moment(valid_until(fact))) is not None:
            yield end - SESSION_TIME
    yield from (time for text in said if (time := moment(text)) is not None)


def renewed(facts: Iterable[Fact], session: Scope, said: datetime, now: datetime) -> list[Fact]:
    """The facts, with the end of those of this conversation, whose newest message was said then.

    A fact of another one without an end, which only a person's edit leaves, gets one too.
    """
    end, default = iso(said + SESSION_TIME), iso(now + SESSION_TIME)

    def with_end(fact: Fact) -> Fact:
        scope = scope_of(fact)
        if scope == session:
            return {**fact, "validUntil": end}
        endless = scope.kind == "session" and moment(valid_until(fact)) is None
        return {**fact, "validUntil": default} if endless else fact

    return list(map(with_end, facts))


class SaidForGood:
    """What an update has heard for good: the session fact that says the same is over, in whatever conversation."""

    def __init__(self, heard: Sequence[Fact], near_duplicate: float) -> None:
        """`heard`: the lasting facts that the update has added or confirmed."""
        self._contents = {id_of(fact): content_of(fact) for fact in heard}
        self._said = Contents(heard, near_duplicate)

    def by(self, fact: Fact) -> str | None:
        """The id of the lasting fact that says all that a session fact says; none for a person's own."""
        if not self._contents or scope_of(fact).kind != "session" or is_manual(fact):
            return None
        content, person = content_of(fact), person_of(fact)
        if same := self._said.same(content, person):
            return same
        near = self._said.near(content, person)
        return None if near is None or says_more(content, self._contents[near]) else near
