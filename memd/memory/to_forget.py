"""What the user asks to forget, and asks not to keep, in the messages of one update."""

from __future__ import annotations

from dataclasses import dataclass

from memd.context import Message
from memd.memory.document import Fact
from memd.memory.facts import content_of, rests_on, subject_of
from memd.memory.said.matter import Matter


@dataclass(frozen=True, slots=True)
class ToForget:
    """What the user asks to forget in the messages of an update.

    `gone`: the identities of the messages that a wish takes along, of this claim and stored ones; `matters`: what
    wishes name; `unread`: messages of the claim that the extractor must not see, as they prove nothing.
    """

    gone: frozenset[str] = frozenset()
    matters: tuple[Matter, ...] = ()
    unread: tuple[Message, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.gone or self.matters)

    def means(self, fact: Fact) -> bool:
        """Whether nothing proves a fact but what goes, or it holds what a wish names."""
        text = " ".join((content_of(fact), *subject_of(fact)))
        return rests_on(fact, self.gone) or any(matter.held_by(text) for matter in self.matters)


NOTHING_TO_FORGET = ToForget()

NO_WISH = ToForget()
"""The same where wishes were looked for in all messages, and none has any."""
