"""Retiring: how many facts one update may end, and the wishes beyond it, which are withheld.

A replacement keeps the memory as full as it was and has a quote of its own, so only its number is bounded. A bare
retirement leaves nothing behind and takes from a share of the memory. A withheld wish is granted when a later message
of the user says it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from memd.config import ApplySettings
from memd.memory.document import Document, Withheld, withheld_of
from memd.memory.facts import ArchiveReason
from memd.memory.sayings import UNKNOWN, Saying

MAX_REPLACED_BY_ONE = 3
"""Facts that one new fact may replace."""

MAX_BY_MESSAGE = 3
"""Facts that may be replaced on the word of each message, also beyond `apply.max_retired_facts`: in a talk about a
summer 13 replacements were right, and the limit of 10 left three old values standing."""

ALWAYS = 5
"""Bare retirements that every memory allows in an update, however small it is."""

MAX_WITHHELD = 100
"""Withheld wishes that a document keeps; the oldest go."""


@dataclass(frozen=True, slots=True)
class Ending:
    """An update's wish that a fact ends. `note`: the model's words; `over`: when it was said that it is over.

    `replaced_by`: the id of the fact in its place, "" for a bare retirement. `proofs`: the identities of the messages
    that say so; none for a verdict of a review.
    """

    fact: str
    reason: ArchiveReason
    note: str = ""
    replaced_by: str = ""
    over: Saying = UNKNOWN
    proofs: Collection[str] = field(default=())


class Retirements:
    """The budget: what one update may still retire, and what was withheld from it and from the updates before."""

    def __init__(self, document: Document, facts: int, settings: ApplySettings) -> None:
        most = settings.max_retired_facts
        self._bare = min(most, max(ALWAYS, int(settings.max_retired_share * facts)))
        self._replaced = most
        self._by_message = MAX_BY_MESSAGE if most else 0
        self._by: Counter[str] = Counter()
        """Replaced facts, by the new fact in their place and by the messages that prove it."""

        self._earlier = withheld_of(document)
        self._withheld: list[Withheld] = []

    def grants(self, wish: Ending) -> bool:
        """Whether the wish is granted; only then it is paid for."""
        if self._is_repeated(wish):
            return True
        if not wish.replaced_by:
            granted = self._bare > 0
            self._bare -= granted
        else:
            said = [name for name in wish.proofs if self._by[name] < self._by_message]
            granted = self._by[wish.replaced_by] < MAX_REPLACED_BY_ONE and (self._replaced > 0 or bool(said))
            self._replaced -= granted
            self._by.update([wish.replaced_by, *wish.proofs] if granted else [])
        return granted

    def withhold(self, wish: Ending, why: str, now: str, source: str) -> None:
        """Keep a wish that was not granted."""
        entry = {"fact": wish.fact, "wanted": wish.reason, "why": why, "at": now, "source": source}
        rest = {"note": wish.note, "by": wish.replaced_by, "proofs": list(wish.proofs)}
        self._withheld.append(entry | {name: value for name, value in rest.items() if value})

    def fields(self, active: Collection[str], confirmed: Collection[str]) -> dict[str, Any]:
        """The document's `withheld`: one entry for each wish, while its fact is there and not confirmed since."""
        earlier = [entry for entry in self._earlier if entry.get("fact") not in confirmed]
        wishes = {(entry.get("fact"), entry.get("wanted")): entry for entry in (*earlier, *self._withheld)}
        kept = [entry for entry in wishes.values() if entry.get("fact") in active][-MAX_WITHHELD:]
        return {"withheld": kept} if kept or self._earlier else {}

    def _is_repeated(self, wish: Ending) -> bool:
        """Whether an earlier update wished the same and this one proves it by other messages."""
        before = [entry for entry in self._earlier if entry.get("fact") == wish.fact]
        return bool(before and wish.proofs) and not any(
            set(wish.proofs).intersection(proofs_of(entry)) for entry in before
        )


def proofs_of(entry: Withheld) -> list[str]:
    """The identities of the messages that a withheld wish was proven by."""
    proofs = entry.get("proofs")
    return [name for name in proofs if isinstance(name, str)] if isinstance(proofs, list) else []
