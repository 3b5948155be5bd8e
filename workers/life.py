"""The life of one claim: it is remembered, and its outcome becomes exactly one move of the inbox."""

from __future__ import annotations

import random
from concurrent.futures import Executor
from itertools import groupby

import redis
import structlog

from memd.config import Settings
from memd.errors import (
    ClaimLost,
    ContentRefused,
    ContentTooLong,
    DocumentDamaged,
    InboxFull,
    InboxUnavailable,
    MemdError,
    ModelUnavailable,
    StoreUnavailable,
)
from memd.events import Event, logger
from memd.extraction import address
from memd.extraction.protocol import Batches, Extractor
from memd.inbox import batches, verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.memory.store.json_store import Store
from workers.outcome import Dead, Deferred, Lost, Outcome, Retry, Skipped, Stored
from workers.remember import Remembering


class Life:
    """Lives through claims, one `run` each, many at once."""

    def __init__(
        self,
        settings: Settings,
        client: redis.Redis,
        store: Store,
        extractor: Extractor,
        threads: Executor,
        by_batch: Batches | None = None,
    ) -> None:
        self._settings = settings
        self._client = client
        self._remembering = Remembering(settings, client, store, extractor, threads, by_batch)
        self.in_thread = self._remembering.in_thread
        self.aclose = self._remembering.aclose
        self.gate = self._remembering.gate
        self.hand_back = self._remembering.hand_back
        self.lose = self._remembering.lose
        self._log = logger()

    async def run(self, claim: Claim) -> None:
        """Bring one claim to its end: stored, skipped, given back or dead. Never raises for the claim's sake."""
        outcome = await self._attempt(claim)
        await self.gate.free(claim.id)
        await self.in_thread(self._settle, claim, outcome)

    async def _attempt(self, claim: Claim) -> Outcome:
        if claim.bad:
            return Dead(claim.bad, f"{claim.bad}: what a trusted client pushed does not hold what it must")
        try:
            return await self._remembering.run(claim)
        except ClaimLost:  # another worker has the claim now
            return Lost()
        except (
            InboxUnavailable,
            InboxFull,
        ):  # nothing was written; the lease runs out and the claim comes back
            return Lost("inbox_unavailable")
        except ModelUnavailable as error:
            pause = error.retry_after_s
            return Retry(error.code, str(error), costs=False, wait_s=pause or 0, backoff=pause is None)
        except (ContentRefused, ContentTooLong) as error:
            return Retry(error.code, str(error), costs=True)
        except (
            StoreUnavailable,
            DocumentDamaged,
        ) as error:  # the document is as it was; the claim waits for a mending hand
            return Retry(type(error).__name__, str(error), costs=False)
        except Exception as error:  # noqa: BLE001  (whatever it was, the claim goes back and pays an attempt)
            self._log.error(Event.RELEASED, code="internal", exc_info=error)
            return Retry("E_INTERNAL", f"E_INTERNAL: {type(error).__name__}", costs=True)

    def _settle(self, claim: Claim, outcome: Outcome) -> None:
        """Turn an outcome into its one move. When the inbox is out of reach, the lease brings the claim back."""
        log = self._log.bind(key=claim.key.hash, bucket=claim.key.bucket.hash, claim=claim.id)
        spent = self._remembering.spending.take(claim.id)
        try:
            self._move(claim, outcome, spent, log)
        except MemdError as error:  # the claim stays claimed until its lease ends; the ledger makes a repeat harmless
            log.warning(Event.CLAIM_LOST, code=type(error).__name__)

    def _move(
        self, claim: Claim, outcome: Outcome, spent: dict[str, int], log: structlog.typing.FilteringBoundLogger
    ) -> None:
        match outcome:
            case Stored():
                for code, guilty in groupby(outcome.guilty, key=lambda one: one.code):
                    letter = list(guilty)
                    identities = [one.identity for one in letter]
                    send(self._client, verbs.bury_part(claim.id, code, letter[0].error, identities))
                    log.warning(Event.BURIED, code=code, messages=len(identities))
                # Acked last: the document is durable, and only its ledger decides what is taken in.
                send(self._client, verbs.ack(claim.id, _record(outcome), _stats(claim, outcome) | spent))
                log.info(
                    Event.STORED,
                    messages=outcome.messages,
                    facts=len(outcome.fact_ids),
                    refused=outcome.refused,
                )
            case Skipped(reason):
                count = claim.last - claim.first + 1
                record = {"state": "skipped", "reason": reason}
                stats = {"skipped": count, f"skipped:{reason}": count, **spent}
                send(self._client, verbs.ack(claim.id, record, stats))
                log.info(Event.SKIPPED, reason=reason)
            case Retry():
                how = "failed" if outcome.costs else "paused"
                wait_s = self._backoff_s(claim, outcome)
                end = send(self._client, verbs.release(claim.id, how, wait_s, outcome.code, outcome.error, spent))
                event = Event.BURIED if end == "dead" else Event.RELEASED
                log.warning(event, code=outcome.code, how=how, wait_s=round(wait_s, 2))
            case Deferred(batch, asked):
                send(self._client, batches.defer(claim.id, batch, address(self._settings.extraction), asked))
                log.info(Event.DEFERRED, batch=batch)
            case Dead(code, error):
                send(self._client, verbs.bury(claim.id, code, error, spent))
                log.warning(Event.BURIED, code=code)
            case Lost(code):
                log.warning(Event.CLAIM_LOST, code=code)

    def _backoff_s(self, claim: Claim, retry: Retry) -> float:
        """Doubling with jitter: after n tries half to all of backoff_s * 2^n, at least what the endpoint asked for."""
        if not retry.backoff:
            # The breaker holds all keys back, however long; this one need not be away for longer than its own backoff.
            return min(retry.wait_s, self._settings.drain.backoff_max_s)
        drain = self._settings.drain
        tries = claim.attempts if retry.costs else claim.delays
        ceiling = min(drain.backoff_max_s, drain.backoff_s * 2 ** min(tries, 30))
        return max(retry.wait_s, random.uniform(ceiling / 2, ceiling))  # noqa: S311  (jitter, not a secret)


def _record(stored: Stored) -> dict[str, object]:
    record: dict[str, object] = {"state": "stored", "facts": stored.fact_ids}
    if stored.refused:
        record["refused"] = stored.refused
    return record


def _stats(claim: Claim, stored: Stored) -> dict[str, int]:
    stats = {
        "stored": claim.last - claim.first + 1,
        "messages_stored": stored.messages,
        "facts_added": len(stored.fact_ids),
        "facts_confirmed": stored.confirmed,
        "facts_retired": stored.retired,
        **{f"refused:{reason}": count for reason, count in stored.refused.items()},
        **{f"redacted:{kind}": count for kind, count in stored.redacted.items()},
    }
    return {name: count for name, count in stats.items() if count}
