"""Evidence: only the user's own new messages prove a fact, by a quote that is long enough to say something."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, tzinfo

from memd.context import Message
from memd.extraction.update import Evidence as Quoted
from memd.memory import sayings
from memd.memory.facts import Evidence
from memd.memory.quotes import QuotedText
from memd.memory.sayings import Saying
from memd.memory.text import fold
from memd.push.times import day_said

MAX_EVIDENCE = 5
"""Quotes kept for one fact."""


class UserMessages:
    """The new user messages of one thread, in which quotes are looked up. Each is read once, when first needed."""

    def __init__(self, thread_id: str, sent: Sequence[Message], new: Collection[str]) -> None:
        self._thread_id = thread_id
        self._messages = {i: m for i, m in enumerate(sent) if m.role == "user" and m.identity in new}
        self._texts: dict[int, QuotedText] = {}

    def hold(self, quote: str) -> bool:
        """Whether any of the messages contains the quote, whoever said it."""
        return self._find(quote, -1, None) is not None

    def last_own(self) -> Saying | None:
        """When the last of the user's own messages was said; None where only others spoke."""
        own = [m for m in self._messages.values() if m.name is None]
        if self._messages and not own:
            return None
        return sayings.latest(sayings.of_message(m, self._thread_id) for m in own)

    def evidence(self, quoted: Sequence[Quoted], person: str = "") -> list[Evidence]:
        """The passages that the quotes repeat, as the document keeps them. `person`: whom the fact is about, folded.

        A quote from another user message than the one named counts: only the number was wrong. The words of another
        speaker than the user count for facts about that speaker.
        """
        entries: list[Evidence] = []
        for item in quoted:
            found = self._find(item.quote, item.message, person) if len(entries) < MAX_EVIDENCE else None
            entries += [entry for entry in self._entries(found) if entry not in entries]
        return entries[:MAX_EVIDENCE]

    def quote(self, quote: str, person: str = "") -> list[Evidence]:
        """The evidence that a quote of any message gives. `person`: as for `evidence`."""
        return self._entries(self._find(quote, -1, person))

    def why_not(self, quotes: Iterable[str]) -> str:
        """Why quotes are no evidence: no message holds them, or only somebody else than the person said them."""
        return "other_speaker" if any(map(self.hold, quotes)) else "quote_not_found"

    def signalled(self, evidence: Sequence[Evidence], signal: str) -> bool:
        """Whether a message that these entries quote carries the signal."""
        named = {entry["message"] for entry in evidence}
        return any(signal in m.signals for m in self._messages.values() if (m.id or m.identity) in named)

    def identities(self, evidence: Sequence[Evidence]) -> list[str]:
        """The identities of the messages that these entries quote."""
        named = {entry["message"] for entry in evidence}
        return [message.identity for message in self._messages.values() if (message.id or message.identity) in named]

    def day(self, evidence: Sequence[Evidence], zone: tzinfo) -> date | None:
        """The day on which the last of these quotes was said, where it was said (`day_said`)."""
        named = {entry["message"] for entry in evidence}
        quoted = [m for m in self._messages.values() if (m.id or m.identity) in named and m.said_at]
        last = max(quoted, key=lambda m: m.said_at, default=None)
        return day_said(last.created_at, last.said_at, zone) if last else None

    def sources(self, evidence: Sequence[Evidence]) -> dict[str, str]:
        """What the words of the first quoted message came from, as fields of a fact; none where nobody said."""
        named = {entry["message"] for entry in evidence}
        found = (m for m in self._messages.values() if (m.id or m.identity) in named and m.source_kind)
        first = next(found, None)
        if first is None:
            return {}
        kind = {"sourceKind": first.source_kind}
        return {**kind, "sourceId": first.source_id} if first.source_id else kind

    def _entries(self, found: tuple[int, list[str]] | None) -> list[Evidence]:
        if found is None:
            return []
        message = self._messages[found[0]]
        place: Evidence = {"thread": self._thread_id, "message": message.id or message.identity}
        said = {"saidAt": message.said_at, "order": message.order} if message.said_at else {}
        return [place | {"quote": passage} | said for passage in found[1]]

    def _find(self, quote: str, expected: int, person: str | None) -> tuple[int, list[str]] | None:
        """The message that a quote repeats, and the passages there.

        `person`: whom the fact is about; None: whoever said it.
        """
        heard = [i for i, message in self._messages.items() if person is None or may_prove(message.name, person)]
        for index in sorted(heard, key=lambda index: index != expected):
            if passages := self._text(index).find(quote):
                return index, passages
        return None

    def _text(self, index: int) -> QuotedText:
        if index not in self._texts:
            self._texts[index] = QuotedText(self._messages[index].content)
        return self._texts[index]


def may_prove(name: str | None, person: str) -> bool:
    """Whether the words of this speaker (None: the user) prove facts about this person (folded; "": the user).

    The user speaks of everybody, others only of themselves; "Ben" and "Ben Carter" may be one.
    """
    if name is None:
        return True
    words, others = set(fold(name).split()), set(person.split())
    return bool(others) and (words <= others or others <= words)
