"""The circuit breaker of a model endpoint, shared by all workers through the inbox.

Closed: calls are made. Open: no key is claimed until the pause ends; nothing costs an attempt. Half-open: one claim is
the probe. Its success closes the breaker; its failure opens it for twice as long, with jitter, up to `backoff_max_s`.
The pause is never shorter than the endpoint's Retry-After.

A failure before any HTTP status (no route, DNS, connection refused, TLS) may be the fault of one host. It opens the
breaker of that host, and the shared one only when no host that called in the last minute got a status.

An endpoint whose replies are no update, ten in a row and no other in between, is at fault itself: the breaker opens as
`no_structured_output`, so that contexts wait for a better model instead of dying one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memd.context import FUNCTIONS_VERSION
from memd.errors import ModelUnavailable
from memd.inbox.connection import Call
from memd.inbox.decoding import text
from memd.inbox.verbs import P, jitter

MAYBE_CONTENT = frozenset({"server_error", "timeout", "connection", "conflict", "not_the_api"})
"""Failures that a single request may cause. They count as an outage after three in a row, or when the endpoint asks for
a pause longer than `backoff_max_s`."""

ACCOUNT = frozenset({"unauthorized", "payment", "forbidden", "model_not_found", "no_key", "max_tokens"})
"""Failures that only a person can fix: tried at most once a minute."""

ACCOUNT_PAUSE_MS = 60_000

UNFIT = "no_structured_output"
"""The code of a breaker that opened because no reply was an update."""

UNFIT_HELP = (
    "no reply is in the form asked for: choose a model, or a server, that keeps to a JSON schema; what was pushed waits"
)
"""What to do about it, for people."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """The result of a report. `state`: opened, open (already), counted, closed or ok; `pause_s`: seconds open."""

    state: str
    pause_s: float
    code: str


def trip(endpoint: str, error: ModelUnavailable, host: str = "") -> Call[Breaker]:
    """Report a failed call. Without a host it counts for all hosts."""
    kind = "maybe" if error.code in MAYBE_CONTENT else "outage"
    floor = ACCOUNT_PAUSE_MS if error.code in ACCOUNT else 0
    retry_after_ms = int((error.retry_after_s or 0) * 1000)
    return _call(endpoint, "trip", error.code, kind, retry_after_ms, floor, jitter(), host, int(error.reached))


def close(endpoint: str, claim_id: str, host: str = "") -> Call[Breaker]:
    """Report a call that succeeded.

    It closes a breaker when it was the probe, or when the breaker is open because the endpoint was not reached.
    """
    return _call(endpoint, "close", claim_id, host)


def formless(endpoint: str, claim_id: str, host: str = "") -> Call[Breaker]:
    """Report a reply that is no update: the endpoint is reached, but may be unfit. It ends an outage."""
    return _call(endpoint, "formless", claim_id, host, jitter())


def free(endpoint: str, claim_id: str, host: str = "") -> Call[Breaker]:
    """Report a claim that ended without a call, so that another claim can be the probe."""
    return _call(endpoint, "free", claim_id, host)


def _call(endpoint: str, *arguments: Any) -> Call[Breaker]:
    def parse(reply: list[Any]) -> Breaker:
        state, pause_ms, code = reply
        return Breaker(text(state), int(pause_ms) / 1000, text(code))

    return Call(("FCALL", f"memd_breaker_{FUNCTIONS_VERSION}", 1, P, endpoint, *arguments), parse)
