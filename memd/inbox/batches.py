"""Batches of the model's endpoint, as the inbox keeps them: which requests are out, and what becomes of their answers.

A claim whose request is in a batch is given back (`defer`): its messages are pending and go on merging, its bucket is
free, and its key waits for the answer or a flush. The answer goes to the key, and the next claim of it takes the
answer along with the messages it is about. A request that no key waits for any more is counted, and that is all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memd.context import WIRE_VERSION
from memd.inbox.connection import Call
from memd.inbox.decoding import text
from memd.inbox.verbs import P, flat, jitter


@dataclass(frozen=True, slots=True)
class Polled:
    """A batch that is to be asked for now, and how many of its requests keys still wait for."""

    id: str
    age_ms: int
    wanted: int


def defer(claim_id: str, batch_id: str, endpoint: str, fingerprint: str) -> Call[bool]:
    """Give a claim back until its request, which has the claim's id, is answered.

    `fingerprint`: see `extraction.batch.results.fingerprint`.
    """
    return Call(("FCALL", f"memd_defer_{WIRE_VERSION}", 1, P, claim_id, batch_id, endpoint, fingerprint), bool)


def poll(endpoint: str, limit: int = 10) -> Call[list[Polled]]:
    """Take the batches of an endpoint that are to be asked for now: nobody else asks until `batch_poll_s` later."""

    def parse(reply: list[Any]) -> list[Polled]:
        return [Polled(text(name), int(age), int(wanted)) for name, age, wanted in reply]

    return Call(("FCALL", f"memd_poll_{WIRE_VERSION}", 1, P, endpoint, limit, jitter()), parse)


def answer(batch_id: str, request_id: str, raw: bytes, stats: Mapping[str, int]) -> Call[str]:
    """Hand an answer to its key: taken; unused (then `stats` are counted); unknown, as it was handed over before."""
    return _answer(batch_id, request_id, "take", raw, *flat(stats))


def again(batch_id: str, request_id: str = "", *, urgent: bool = False) -> Call[str]:
    """Have a request asked anew, at no attempt, after a backoff; without `request_id` all that are left of a batch.

    `urgent`: not in a batch again.
    """
    return _answer(batch_id, request_id, "again", jitter(), int(urgent))


def _answer(*arguments: Any) -> Call[str]:
    return Call(("FCALL", f"memd_answer_{WIRE_VERSION}", 1, P, *arguments), text)
