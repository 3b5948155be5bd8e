"""What an endpoint was found not to take, kept for all workers: names alone, without a user's data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memd.inbox.connection import Call
from memd.inbox.decoding import text
from memd.inbox.verbs import P

KEEP_MS = 86_400_000
"""After a day the endpoint is asked with everything again: its server may have been upgraded."""


def key(endpoint: str) -> str:
    """The key of an endpoint's names: a string, "<name> <name>...". It expires."""
    return f"{P}:learnt:{endpoint}"


def learn(endpoint: str, names: Iterable[str]) -> Call[bool]:
    """Keep these names for KEEP_MS. Of two workers the last one wins; what it did not know is found again."""
    return Call(("SET", key(endpoint), " ".join(sorted(names)), "PX", KEEP_MS), bool)


def learnt(endpoint: str) -> Call[frozenset[str]]:
    """The names that are kept."""

    def parse(reply: Any) -> frozenset[str]:
        return frozenset(text(reply).split()) if reply else frozenset()

    return Call(("GET", key(endpoint)), parse)
