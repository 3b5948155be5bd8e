"""Budgets: tokens per day, of one user and of all, and extractions of one thread in 24 hours. Which keys wait for one,
and the notices to log.

A claim checks the budgets (lua/budget.lua, lua/extractions.lua); the call that ends the claim charges them. A key whose
budget is used up is rationed: it stays pending and goes on merging until the end of the day (UTC, by the server's
clock), or until the extraction that made its thread's budget full is 24 hours ago.
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
    """A budget of tokens was reached. `owner`: the user's hash, None for the total; `until`: the end of its day."""

    owner: str | None
    limit: int
    until: datetime


def rationed(keys: Sequence[str]) -> Call[list[datetime | None]]:
    """When the wait of each key for a budget ends; None for a key that does not wait."""

    def parse(reply: list[Any]) -> list[datetime | None]:
        return [moment(score) if score is not None else None for score in reply]

    return Call(("ZMSCORE", f"{P}:rationed", *keys), parse)


def notices(limit: int = 100) -> Call[list[Notice]]:
    """Take the notices to log. A lost reply loses its notices; `memd status` still shows the state."""

    def parse(reply: list[Any] | None) -> list[Notice]:
        rows = (text(row).split(" ") for row in reply or ())
        return [Notice(None if who == "total" else who, int(cap), moment(int(until))) for who, cap, until in rows]

    return Call(("LPOP", f"{P}:notices", limit), parse)
