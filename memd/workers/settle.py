"""Settling: the outcome of a claim becomes exactly one move of the inbox."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from itertools import groupby
from typing import Any

from memd.errors import InboxFull, MemdError, NotReady
from memd.events import Event, logger
from memd.extraction import address
from memd.inbox import batches, verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import Call, send
from memd.workers.outcome import Dead, Deferred, Guilty, Lost, Outcome, Retry, Skipped, Stored
from memd.workers.resources import Resources

MOST_PLACES = 20
"""Most places of malformed items that one log line names; `refused` has their number."""


class Settling:
    """Settles claims. Every method blocks."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._drain = resources.settings.drain

    def settle(self, claim: Claim, outcome: Outcome, spent: Counter[str]) -> None:
        """Make the move. When the inbox is unreachable, the claim stays claimed until its lease expires.

        `spent`: what the claim's model calls have used. The ledger makes a repeated claim harmless.
        """
        log = self._log(claim)
        used = {name: count for name, count in spent.items() if count}
        try:
            self._move(claim, outcome, used, log)
        except MemdError as error:
            log.warning(Event.CLAIM_LOST, code=type(error).__name__)

    def _move(self, claim: Claim, outcome: Outcome, used: dict[str, int], log: Any) -> None:
        match outcome:
            case Stored():
                self._bury_guilty(claim, outcome.guilty, log)
                # Acked last: the document is durable by now, and only its ledger decides what is new.
                self._send(verbs.ack(claim.id, _record(outcome), _stats(claim, outcome) | used))
                log.info(Event.STORED, **_told(outcome))
            case Skipped(reason):
                record = {"state": "skipped", "reason": reason}
                count = _pushes(claim)
                self._send(verbs.ack(claim.id, record, {"skipped": count, f"skipped:{reason}": count, **used}))
                log.info(Event.SKIPPED, reason=reason)
            case Retry():
                self._release(claim, outcome, used, log)
            case Deferred(batch, fingerprint):
                self._send(batches.defer(claim.id, batch, address(self._resources.settings.extraction), fingerprint))
                log.info(Event.DEFERRED, batch=batch)
            case Dead(code, error):
                self._send(verbs.bury(claim.id, code, error, used))
                log.warning(Event.BURIED, code=code)
            case Lost(code):
                log.warning(Event.CLAIM_LOST, code=code)

    def bury_refused(self, claim: Claim) -> None:
        """Move the messages that break the format to the dead; the others stay claimed. Raises MemdError."""
        refused = tuple(Guilty(identity, code, breaks_format(code)) for identity, code in claim.refused)
        self._bury_guilty(claim, refused, self._log(claim))

    def _log(self, claim: Claim) -> Any:
        """A logger with the names of the claim, its key and its bucket, made with this store's secret key."""
        named = self._resources.store.pseudonym
        return logger(key=named(claim.key.hash), bucket=named(claim.key.bucket.hash), claim=claim.id)

    def _bury_guilty(self, claim: Claim, guilty: tuple[Guilty, ...], log: Any) -> None:
        """One dead letter for each run of messages with the same code."""
        for code, group in groupby(guilty, key=lambda message: message.code):
            messages = list(group)
            identities = [message.identity for message in messages]
            self._send(verbs.bury_part(claim.id, code, messages[0].error, identities))
            log.warning(Event.BURIED, code=code, messages=len(identities))

    def _release(self, claim: Claim, retry: Retry, used: dict[str, int], log: Any) -> None:
        how = "formless" if retry.formless else "failed" if retry.costs else "paused"
        wait_s = self._wait_s(claim, retry)
        if retry.answer is not None:
            with suppress(InboxFull, NotReady):  # no room, or functions of an older version: it is paid again
                self._send(verbs.keep_answer(claim.id, retry.answer))
        end = self._send(verbs.release(claim.id, how, wait_s, retry.code, retry.error, used))
        event = Event.BURIED if end == "dead" else Event.RELEASED
        log.warning(event, code=retry.code, how=how, wait_s=round(wait_s, 2))

    def _wait_s(self, claim: Claim, retry: Retry) -> float:
        """Seconds that the key waits, at most `backoff_max_s`: without a named pause the key's own backoff.

        The backoff is 50 to 100 % of `backoff_s` * 2^tries; the jitter spreads the claims. A longer pause is enforced
        by the breaker for all keys, so a key does not wait for an endpoint that the settings no longer name.
        """
        longest_s = self._drain.backoff_max_s
        if retry.wait_s is not None:
            return min(retry.wait_s, longest_s)
        tries = claim.attempts if retry.costs else claim.delays
        ceiling_s = min(longest_s, self._drain.backoff_s * 2 ** min(tries, 30))
        return random.uniform(ceiling_s / 2, ceiling_s)  # noqa: S311  (jitter, not a secret)

    def _send(self, call: Call[Any]) -> Any:
        return send(self._resources.client, call)


def breaks_format(code: str) -> str:
    """The sentence of a letter whose content the drain refuses."""
    return f"{code}: a trusted client pushed content that breaks the format"


def _pushes(claim: Claim) -> int:
    """The number of pushes in the claim, from its sequence numbers."""
    return claim.last - claim.first + 1


def _record(stored: Stored) -> dict[str, object]:
    """The record of the claim for receipts."""
    record: dict[str, object] = {"state": "stored", "facts": stored.fact_ids}
    counts = {"refused": stored.refused, "not_kept": stored.not_kept, "project": stored.project}
    return record | {name: count for name, count in counts.items() if count}


def _told(stored: Stored) -> dict[str, Any]:
    """The fields of the log line: what was not kept, and the form of the reply where it was not as asked."""
    form = {
        "forgotten": stored.forgotten,
        "suspended": stored.suspended,
        "not_kept": stored.not_kept,
        "mended": stored.mended,
        "malformed": stored.malformed[:MOST_PLACES],
    }
    fields = {"messages": stored.messages, "facts": len(stored.fact_ids), "refused": stored.refused}
    return fields | {name: value for name, value in form.items() if value}


def _stats(claim: Claim, stored: Stored) -> dict[str, int]:
    stats = {
        "stored": _pushes(claim),
        "messages_stored": stored.messages,
        "facts_added": len(stored.fact_ids),
        "facts_confirmed": stored.confirmed,
        "facts_retired": stored.retired,
        "facts_forgotten": stored.forgotten,
        "facts_suspended": stored.suspended,
        **{f"refused:{reason}": count for reason, count in stored.refused.items()},
        **{f"redacted:{kind}": count for kind, count in stored.redacted.items()},
        **{f"not_kept:{reason}": count for reason, count in stored.not_kept.items()},
        **{f"mended:{kind}": count for kind, count in stored.mended.items()},
    }
    return {name: count for name, count in stats.items() if count}
