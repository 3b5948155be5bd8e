"""The progress of a claim: what its model calls have used and brought so far, shared by all of its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memd.context import Message
from memd.extraction.batch import results
from memd.extraction.protocol import Extraction
from memd.inbox.claim import Claim, PaidAnswer

PER_CLAIM = 2
"""Replies without an update that one claim takes: to the request, and to the repair request that names the error."""

MOST = 2 * PER_CLAIM
"""Replies without an update after which the messages are dead: there is one new attempt, after a backoff."""


@dataclass(slots=True)
class Progress:
    """Kept while the claim is in hand. `formless` and `pieces` outlive it: the inbox keeps them with the messages."""

    answer: PaidAnswer | None
    """The answer that the claim came with; None once it was found to be no update."""

    formless: Counter[str]
    """How many replies were no update, by name: a message's identity, for a piece with its place behind an @."""

    spent: Counter[str] = field(default_factory=Counter)
    """What the calls have used: counted with the claim's one move."""

    _pieces: dict[str, Extraction | None] = field(default_factory=dict)
    _in_pieces: tuple[Message, ...] = ()

    @classmethod
    def of(cls, claim: Claim) -> Progress:
        """The progress that earlier claims of these messages made."""
        return cls(claim.answer, Counter(claim.formless))

    def count_formless(self, names: Sequence[str]) -> bool:
        """Count one more reply that is no update. Returns whether the request is repaired in this claim."""
        count = max(self.formless[name] for name in names) + 1
        self.formless |= Counter(dict.fromkeys(names, count))
        return count % PER_CLAIM != 0

    def names_of(self, messages: Sequence[Message]) -> list[str]:
        """The names of these messages and of their pieces that are counted."""
        identities = {message.identity for message in messages}
        return [name for name in self.formless if name.partition("@")[0] in identities]

    def is_used_up(self, names: Iterable[str]) -> bool:
        """Whether there were as many replies without an update as these messages, or this piece of one, get."""
        return any(self.formless[name] >= MOST for name in names)

    def keep_piece(self, piece: Sequence[Message], extraction: Extraction | None) -> None:
        """Keep what was said of a piece, in case the claim goes back before all have an extraction. None: too long."""
        self._pieces[results.asked(piece)] = extraction

    def begin_pieces(self, whole: Sequence[Message]) -> None:
        """These messages are asked about in pieces from now on."""
        if self._in_pieces != tuple(whole):
            self._pieces, self._in_pieces = {}, tuple(whole)

    def paid_pieces(self, model: str) -> PaidAnswer | None:
        """The pieces so far, as an answer for the next claim of the same messages; None when nothing is in pieces."""
        return results.keep_pieces(self._pieces, self._in_pieces, model) if self._in_pieces else None

    def end_pieces(self) -> None:
        """The pieces are stored, or never will be."""
        self._pieces, self._in_pieces = {}, ()
