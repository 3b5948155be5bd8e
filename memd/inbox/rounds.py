"""Rounds: long work that one scheduler does for all of them, once in a while, however often schedulers start."""

from __future__ import annotations

from memd.inbox.connection import Call
from memd.inbox.verbs import P


def take(name: str, ms: int) -> Call[bool]:
    """Take a round for so long; False when it has been taken."""
    return Call(("SET", _key(name), "1", "PX", ms, "NX"), bool)


def keep(name: str, ms: int) -> Call[bool]:
    """Keep a round for so long from now on, whoever had it."""
    return Call(("SET", _key(name), "1", "PX", ms), bool)


def _key(name: str) -> str:
    return f"{P}:round:{name}"
