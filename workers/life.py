"""The life of one claim: load, extract, apply, store, ack. `Life.run` is the story; the rest are its verbs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import redis
import structlog

from memd import inbox
from memd.claim import Claim
from memd.config import Settings
from memd.connection import send
from memd.context import Message
from memd.errors import (
    ClaimLost,
    Conflict,
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
from memd.extraction import endpoint
from memd.extraction.protocol import Extraction, Extractor, Request, Usage
from memd.memory import ledger
from memd.memory.apply import Applied, Origin, apply
from memd.memory.facts import quotes_any
from memd.memory.store import Loaded, Store
from workers.gate import Gate
from workers.outcome import Dead, Lost, Outcome, Retry, Skipped, Stored

T = TypeVar("T")

ROUNDS = 5
"""How often a commit starts again because another writer was faster, before the claim is given back."""


@dataclass(frozen=True, slots=True)
class Work:
    """What of a claim the extractor has to read: the new messages, and known ones before them for context."""

    new: tuple[Message, ...]
    before: tuple[Message, ...]


class Life:
    """Works on claims, one `run` each, many at once. Blocking steps run in `threads`; the loop waits for models."""

    def __init__(
        self, settings: Settings, client: redis.Redis, store: Store, extractor: Extractor, threads: Executor
    ) -> None:
        self._settings = settings
        self._client = client
        self._store = store
        self._extractor = extractor
        self._threads = threads
        self._calls: dict[str, asyncio.Future[Extraction]] = {}
        self._handing_back = False
        self.gate = Gate(client, endpoint(settings.extraction), self._in_thread)
        self._log = logger()

    async def run(self, claim: Claim) -> None:
        """Bring one claim to its end: stored, skipped, given back or dead. Never raises for the claim's sake."""
        outcome = await self._attempt(claim)
        await self.gate.free(claim.id)
        await self._in_thread(self._settle, claim, outcome)

    def hand_back(self) -> None:
        """End all model calls now; their claims are given back at no cost."""
        self._handing_back = True
        for call in self._calls.values():
            call.cancel()

    def lose(self, claim_id: str) -> None:
        """End the model call of a claim that is not ours any more."""
        if call := self._calls.get(claim_id):
            call.cancel()

    async def _attempt(self, claim: Claim) -> Outcome:
        if claim.bad:
            return Dead(claim.bad, f"{claim.bad}: what a trusted client pushed does not hold what it must")
        try:
            return await self._remember(claim)
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

    async def _remember(self, claim: Claim) -> Outcome:
        """Extract and store what the document does not know yet."""
        for _ in range(ROUNDS):
            loaded = await self._in_thread(self._store.load, claim.key.bucket)
            work = self._choose(claim, loaded)
            if isinstance(work, Skipped):
                if work.reason != "already_known":
                    return work
                # Maybe by a worker that died before its folder was synced, or before its ack.
                await self._in_thread(self._store.sync, claim.key.bucket)
                return _stored_earlier(claim, loaded) if claim.came_back else work
            extraction = await self._extract(claim, loaded, work)
            if extraction is None:
                return (
                    Retry("stopping", "the worker stops", costs=False, backoff=False) if self._handing_back else Lost()
                )
            stored = await self._in_thread(self._commit, claim, loaded, work, extraction)
            if stored is not None:
                return stored
        return Retry("conflict", "other writers were faster each time", costs=False)

    def _choose(self, claim: Claim, loaded: Loaded) -> Work | Skipped:
        """The messages the ledger does not hold, and why the rest of the claim may be let go when there are none."""
        new = ledger.unknown(loaded.document, claim.key.thread_id, claim.messages)
        if not new:
            return Skipped("already_known")
        roles = {message.role for message in new}
        if "user" not in roles:
            return Skipped("no_user_turn")
        if self._settings.filtering.require_reply and "assistant" not in roles:
            return Skipped("no_reply")
        fresh = {message.identity for message in new}
        start = next(i for i, message in enumerate(claim.messages) if message.identity in fresh)
        back = self._settings.extraction.context_messages
        return Work(new, claim.messages[max(0, start - back) : start])

    async def _extract(self, claim: Claim, loaded: Loaded, work: Work) -> Extraction | None:
        """Ask the extractor; None when the call was ended because we stop or the claim was lost."""
        if self._handing_back:
            return None
        request = Request(loaded.document, work.new, work.before, self._settings.extraction.deadline_s)
        call = asyncio.ensure_future(self.gate.call(claim.id, lambda: self._extractor.extract(request)))
        self._calls[claim.id] = call
        try:
            return await call
        except asyncio.CancelledError:
            if call.cancelled():
                return None
            raise
        finally:
            del self._calls[claim.id]

    def _commit(self, claim: Claim, loaded: Loaded, work: Work, extraction: Extraction) -> Stored | None:
        """Apply and store; None when another writer took some of these messages in meanwhile."""
        origin = Origin(claim.key.thread_id, datetime.now(UTC), extraction.model, extraction.prompt_version)
        for _ in range(ROUNDS):
            applied = apply(loaded.document, extraction.update, work.new, claim.messages, origin, self._settings.apply)
            try:
                self._store.commit(claim.key.bucket, loaded, applied.document, lambda: self._still_ours(claim))
            except Conflict:  # the document moved on: what was extracted still holds unless the messages were taken in
                loaded = self._store.load(claim.key.bucket)
                if ledger.unknown(loaded.document, claim.key.thread_id, work.new) != work.new:
                    return None
                continue
            return _stored(work, applied, extraction)
        return None

    def _still_ours(self, claim: Claim) -> bool:
        return send(self._client, inbox.extend([claim.id]))[0]

    def _settle(self, claim: Claim, outcome: Outcome) -> None:
        """Turn an outcome into its one move. When the inbox is out of reach, the lease brings the claim back."""
        log = self._log.bind(key=claim.key.hash, bucket=claim.key.bucket.hash, claim=claim.id)
        try:
            self._move(claim, outcome, log)
        except MemdError as error:  # the claim stays claimed until its lease ends; the ledger makes a repeat harmless
            log.warning(Event.CLAIM_LOST, code=type(error).__name__)

    def _move(self, claim: Claim, outcome: Outcome, log: structlog.typing.FilteringBoundLogger) -> None:
        match outcome:
            case Stored():
                # Acked last: the document is durable, and only its ledger decides what is taken in.
                send(self._client, inbox.ack(claim.id, _record(outcome), _stats(claim, outcome)))
                log.info(
                    Event.STORED,
                    messages=outcome.messages,
                    facts=len(outcome.fact_ids),
                    refused=outcome.refused,
                )
            case Skipped(reason):
                count = claim.last - claim.first + 1
                record = {"state": "skipped", "reason": reason}
                send(self._client, inbox.ack(claim.id, record, {"skipped": count, f"skipped:{reason}": count}))
                log.info(Event.SKIPPED, reason=reason)
            case Retry():
                how = "failed" if outcome.costs else "paused"
                wait_s = self._backoff_s(claim, outcome)
                end = send(self._client, inbox.release(claim.id, how, wait_s, outcome.code, outcome.error))
                event = Event.BURIED if end == "dead" else Event.RELEASED
                log.warning(event, code=outcome.code, how=how, wait_s=round(wait_s, 2))
            case Dead(code, error):
                send(self._client, inbox.bury(claim.id, code, error))
                log.warning(Event.BURIED, code=code)
            case Lost(code):
                log.warning(Event.CLAIM_LOST, code=code)

    def _backoff_s(self, claim: Claim, retry: Retry) -> float:
        """Doubling with jitter: after n tries half to all of backoff_s * 2^n, at least what the endpoint asked for."""
        if not retry.backoff:
            return retry.wait_s
        drain = self._settings.drain
        tries = claim.attempts if retry.costs else claim.delays
        ceiling = min(drain.backoff_max_s, drain.backoff_s * 2 ** min(tries, 30))
        return max(retry.wait_s, random.uniform(ceiling / 2, ceiling))  # noqa: S311  (jitter, not a secret)

    async def _in_thread(self, step: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, step, *arguments)


def _stored(work: Work, applied: Applied, extraction: Extraction) -> Stored:
    return Stored(
        messages=len(work.new),
        fact_ids=applied.added,
        confirmed=len(applied.confirmed),
        retired=len(applied.retired),
        refused=dict(Counter(refusal.reason for refusal in applied.refusals)),
        usage=extraction.usage,
    )


def _stored_earlier(claim: Claim, loaded: Loaded) -> Stored:
    """What an attempt that was never acked has stored: the facts that quote the claim's messages."""
    names = {name for message in claim.messages for name in (message.id, message.identity) if name}
    found = (fact["id"] for fact in loaded.document["facts"] if quotes_any(fact, claim.key.thread_id, names))
    return Stored(len(claim.messages), tuple(found), 0, 0, {}, usage=None)


def _record(stored: Stored) -> dict[str, object]:
    record: dict[str, object] = {"state": "stored", "facts": stored.fact_ids}
    if stored.refused:
        record["refused"] = stored.refused
    return record


def _stats(claim: Claim, stored: Stored) -> dict[str, int]:
    usage = stored.usage or Usage()
    stats = {
        "stored": claim.last - claim.first + 1,
        "messages_stored": stored.messages,
        "facts_added": len(stored.fact_ids),
        "facts_confirmed": stored.confirmed,
        "facts_retired": stored.retired,
        "model_calls": int(stored.usage is not None),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        **{f"refused:{reason}": count for reason, count in stored.refused.items()},
    }
    return {name: count for name, count in stats.items() if count}
