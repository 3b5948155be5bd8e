"""The inbox's side of the endpoint's batches: which requests are in flight, and where each answer goes.

A claim whose request is in a batch is released (`defer`): its messages are pending and go on merging, its bucket is
free, and its key waits for the answer or a flush. The answer is stored with the key; the next claim of the key gets the
answer and the messages it covers. When no key waits for a request any more, its answer is only counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memd.context import FUNCTIONS_VERSION
from memd.inbox.connection import Call
from memd.inbox.decoding import text
from memd.inbox.verbs import P, flat, jitter


@dataclass(frozen=True, slots=True)
class Polled:
    """A batch to poll now. `open_requests`: how many of its requests a key still waits for."""

    id: str
    age_ms: int
    open_requests: int


def defer(claim_id: str, batch_id: str, endpoint: str, fingerprint: str) -> Call[bool]:
    """Release a claim until its request is answered. The request has the claim's id.

    `fingerprint`: see `extraction.batch.results.fingerprint`.
    """
    return Call(("FCALL", f"memd_defer_{FUNCTIONS_VERSION}", 1, P, claim_id, batch_id, endpoint, fingerprint), bool)


def poll(endpoint: str, limit: int = 10) -> Call[list[Polled]]:
    """Take the batches of an endpoint that are due for a poll. Nobody else polls them for `batch_poll_s` seconds."""

    def parse(reply: list[Any]) -> list[Polled]:
        return [Polled(text(name), int(age), int(requests)) for name, age, requests in reply]

    return Call(("FCALL", f"memd_poll_{FUNCTIONS_VERSION}", 1, P, endpoint, limit, jitter()), parse)


def answer(batch_id: str, request_id: str, raw: bytes, stats: Mapping[str, int]) -> Call[str]:
    """Hand an answer to its key.

    Returns taken, unused (no key waits for it; `stats` are counted) or unknown (it was handed over before).
    """
    return _answer(batch_id, request_id, "take", raw, *flat(stats))


def again(batch_id: str, request_id: str = "", *, urgent: bool = False) -> Call[str]:
    """Send a request again after a backoff, at no cost of an attempt; without `request_id`, all open ones of the batch.

    `urgent`: outside of a batch this time.
    """
    return _answer(batch_id, request_id, "again", jitter(), int(urgent))


def _answer(*arguments: Any) -> Call[str]:
    return Call(("FCALL", f"memd_answer_{FUNCTIONS_VERSION}", 1, P, *arguments), text)
