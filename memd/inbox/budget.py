"""Budgets of tokens per day, for one user and for all: what waits for them, and what is to be said of them.

They are asked when a key is claimed (lua/budget.lua) and charged with the move that ends a claim. A key whose
budget is used up is rationed: it stays pending and goes on merging until the day, UTC by the server's clock, is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memd.inbox.connection import Call
from memd.inbox.decoding import moment, text
from memd.inbox.verbs import P


@dataclass(frozen=True, slots=True)
class Notice:
    """A budget of tokens was reached: of a user (the hash), or of all (None); the limit, and when its day is over."""

    owner: str | None
    limit: int
    until: datetime


def rationed(keys: Sequence[str]) -> Call[list[datetime | None]]:
    """Until when each key waits for a budget; None for one that does not."""

    def parse(reply: list[Any]) -> list[datetime | None]:
        return [moment(score) if score is not None else None for score in reply]

    return Call(("ZMSCORE", f"{P}:rationed", *keys), parse)


def notices(limit: int = 100) -> Call[list[Notice]]:
    """Take what is to be said in the log. A reply that is lost takes its notices along: `memd status` has the state."""

    def parse(reply: list[Any] | None) -> list[Notice]:
        rows = (text(row).split(" ") for row in reply or ())
        return [Notice(None if who == "total" else who, int(cap), moment(int(until))) for who, cap, until in rows]

    return Call(("LPOP", f"{P}:notices", limit), parse)
