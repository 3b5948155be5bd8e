"""Remembering: what of a claim is new goes to the extractor, and what it says goes into the document, once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Any, TypeVar

import redis
from msgspec import structs

from memd.config import Settings
from memd.context import Message
from memd.errors import Conflict, ContentRefused, ContentTooLong, ExtractionFailed
from memd.events import Event, logger
from memd.extraction import endpoint
from memd.extraction.batch import results
from memd.extraction.protocol import Batches, Extraction, Extractor, Request
from memd.extraction.update import Asked
from memd.forget import Forgetting
from memd.inbox import verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.memory import ledger
from memd.memory.apply import Applied, Origin, apply, asked
from memd.memory.facts import quotes_any
from memd.memory.store.heat import HeatFiles
from memd.memory.store.json_store import Loaded, Store
from memd.memory.store.tombstone import Tombstone, Tombstones, Wish
from memd.push.redaction import redact
from workers.batch.batching import Batching
from workers.gate import Gate
from workers.halving import Halving
from workers.outcome import Dead, Deferred, Lost, Outcome, Retry, Skipped, Stored
from workers.spending import Spending

T = TypeVar("T")

ROUNDS = 5
"""How often a commit starts again because another writer was faster, before the claim is given back."""


@dataclass(frozen=True, slots=True)
class Work:
    """What of a claim the extractor has to read: the new messages, and known ones before them for context."""

    new: tuple[Message, ...]
    before: tuple[Message, ...]
    taken: tuple[Message, ...]
    """What the ledger is to hold afterwards: these, the known ones among them."""

    generation: int
    """Of the user's tombstone when this was chosen: nothing is written once more was forgotten."""

    about: Asked
    """What the extractor is asked of the document itself."""

    redacted: dict[str, int]
    """Secrets that were cut out of the new messages, by kind: neither the extractor nor the document sees them."""


class Remembering:
    """Brings claims as far as the store, many at once. Blocking steps run in `threads`; the loop waits for models."""

    def __init__(
        self,
        settings: Settings,
        client: redis.Redis,
        store: Store,
        extractor: Extractor,
        threads: Executor,
        batches: Batches | None = None,
    ) -> None:
        self._settings = settings
        self._client = client
        self._store = store
        self._extractor = extractor
        self._threads = threads
        self._tombstones = Tombstones(settings.data_dir)
        self._heat = HeatFiles(settings)
        self._calls: dict[str, asyncio.Future[Any]] = {}
        self._handing_back = False
        self.spending = Spending()
        self.gate = Gate(client, endpoint(settings.extraction), self.in_thread)
        self._batching = Batching(settings, batches, self.gate)
        self._log = logger()

    async def aclose(self) -> None:
        """Let go of the endpoints."""
        await self._batching.aclose()
        await self._extractor.aclose()

    def hand_back(self) -> None:
        """End all model calls now; their claims are given back at no cost."""
        self._handing_back = True
        for call in self._calls.values():
            call.cancel()

    def lose(self, claim_id: str) -> None:
        """End the model call of a claim that is not ours any more."""
        if call := self._calls.get(claim_id):
            call.cancel()

    async def in_thread(self, step: Callable[..., T], *arguments: object) -> T:
        """Run a blocking step beside the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, step, *arguments)

    async def run(self, claim: Claim) -> Outcome:
        """Extract and store; what the model cannot take is halved until the guilty messages are alone.

        Raises what the extractor, the store and the inbox raise; then nothing of the part in hand was stored.
        """
        try:
            return await self._part(claim, claim.messages, frozenset())
        except ContentTooLong as error:  # no other attempt would be shorter
            failure: ContentTooLong | ContentRefused = error
        except ContentRefused as error:
            if claim.attempts + 1 < self._settings.drain.max_attempts:
                raise
            failure = error
        return await self._halve(claim, failure)

    async def _halve(self, claim: Claim, failure: ContentTooLong | ContentRefused) -> Outcome:
        """Store all but the guilty messages; when nothing could be stored, the claim is dead as a whole."""

        async def store(part: Sequence[Message]) -> Outcome:
            return await self._part(claim, part, frozenset(halving.guilty))

        halving = Halving(store)
        halved = await halving.run(claim.messages, failure)
        if halved.ended_by is not None:  # the claim comes back, and its ledger knows what was stored of it
            return halved.ended_by
        stored = [part for part in halved.parts if isinstance(part, Stored)]
        if not stored:
            return halved.parts[0] if not halved.guilty else Dead(failure.code, str(failure))
        self._log.warning(Event.HALVED, claim=claim.id, code=failure.code, guilty=len(halved.guilty))
        return replace(reduce(add, stored), guilty=halved.guilty)

    async def _part(self, claim: Claim, part: Sequence[Message], avoid: frozenset[str]) -> Outcome:
        """Extract and store what the document does not know yet of some of the claim's messages.

        `avoid`: identities that must not even give context.
        """
        for _ in range(ROUNDS):
            grave, loaded = await self.in_thread(self._load, claim)
            if loaded is None:
                return Lost("forgotten")
            work = self._choose(claim, loaded, part, avoid, grave)
            if isinstance(work, Skipped):
                if work.reason != "already_known":
                    return work
                # Maybe by a worker that died before its folder was synced, or before its ack.
                await self.in_thread(self._store.sync, claim.key.bucket)
                return _stored_earlier(claim, loaded, part) if claim.came_back else work
            extraction = self._answered(claim, work)
            if extraction is None and self._batching.wants(claim) and len(part) == len(claim.messages):
                deferred = await self._defer(claim, loaded, work)
                if deferred is not None:
                    return deferred
            if extraction is None:
                extraction = await self._extract(claim, loaded, work)
            if extraction is None:
                return _stopping() if self._handing_back else Lost()
            stored = await self.in_thread(self._commit, claim, loaded, work, extraction)
            if stored is not None:
                return stored
        return Retry("conflict", "other writers were faster each time", costs=False)

    def _load(self, claim: Claim) -> tuple[Tombstone | None, Loaded | None]:
        """The user's tombstone and the bucket's document.

        No document where a forgetting was cut short: it is finished first, and takes the claim along.
        """
        grave = self._tombstones.find(claim.key.user_id)
        if grave is not None and grave.open:
            self._finish_forgetting(grave.open)
            return grave, None
        return grave, self._store.load(claim.key.bucket)

    def _finish_forgetting(self, wishes: Iterable[Wish]) -> None:
        for wish in wishes:
            Forgetting(self._settings, self._client, self._store).finish(wish)
        self._log.info(Event.FORGOTTEN)

    def _choose(
        self, claim: Claim, loaded: Loaded, part: Sequence[Message], avoid: frozenset[str], grave: Tombstone | None
    ) -> Work | Skipped:
        """The messages the ledger does not hold, and why the rest may be let go when there are none."""
        bucket = claim.key.bucket
        gone = {m.identity for m in claim.messages if grave is not None and grave.holds(bucket, m.identity)}
        alive = tuple(message for message in part if message.identity not in gone)
        if not alive:
            return Skipped("forgotten")
        new = ledger.unknown(loaded.document, claim.key.thread_id, alive)
        if not new:
            return Skipped("already_known")
        roles = {message.role for message in new}
        if "user" not in roles:
            return Skipped("no_user_turn")
        if self._settings.filtering.require_reply and "assistant" not in roles:
            return Skipped("no_reply")
        fresh = {message.identity for message in new}
        useful = [message for message in claim.messages if message.identity not in gone | avoid]
        start = next(place for place, message in enumerate(useful) if message.identity in fresh)
        back = self._settings.extraction.context_messages
        cut: Counter[str] = Counter()
        before = tuple(_redacted(message, Counter()) for message in useful[max(0, start - back) : start])
        generation = grave.generation if grave else 0
        about = asked(loaded.document, datetime.now(UTC), self._settings.apply)
        return Work(tuple(_redacted(message, cut) for message in new), before, alive, generation, about, dict(cut))

    def _answered(self, claim: Claim, work: Work) -> Extraction | None:
        """What a batch has answered, if that is about just these messages; raises as a call does."""
        if claim.answer is None or not results.fits(claim.answer, work.new):
            return None
        try:
            extraction = results.read(claim.answer, work.new)
        except ExtractionFailed as error:
            if error.usage is not None:
                self.spending.add(claim.id, self._settings.extraction.model, error.usage, batch=True)
            raise
        self.spending.add(claim.id, extraction.model, extraction.usage, batch=True)
        return extraction

    async def _defer(self, claim: Claim, loaded: Loaded, work: Work) -> Outcome | None:
        """Put the request into a batch; None when it has to be asked for alone."""
        if self._handing_back:
            return _stopping()
        request = Request(loaded.document, work.new, work.before, about=work.about)
        joined = self._batching.join(claim.id, request)
        self._calls[claim.id] = joined
        try:
            batch = await joined
        except asyncio.CancelledError:
            if joined.cancelled():
                return _stopping() if self._handing_back else Lost()
            raise
        finally:
            del self._calls[claim.id]
        return None if batch is None else Deferred(batch, results.asked(work.new, self._settings.extraction.model))

    async def _extract(self, claim: Claim, loaded: Loaded, work: Work) -> Extraction | None:
        """Ask the extractor; None when the call was ended because we stop or the claim was lost."""
        if self._handing_back:
            return None
        deadline_s = self._settings.extraction.deadline_s
        request = Request(loaded.document, work.new, work.before, deadline_s, work.about)
        call = asyncio.ensure_future(self.gate.call(claim.id, lambda: self._extractor.extract(request)))
        self._calls[claim.id] = call
        try:
            extraction = await call
        except asyncio.CancelledError:
            if call.cancelled():
                return None
            raise
        except ExtractionFailed as error:
            if error.usage is not None:
                self.spending.add(claim.id, self._settings.extraction.model, error.usage)
            raise
        else:
            self.spending.add(claim.id, extraction.model, extraction.usage)
            return extraction
        finally:
            del self._calls[claim.id]

    def _commit(self, claim: Claim, loaded: Loaded, work: Work, extraction: Extraction) -> Stored | None:
        """Apply and store; None when another writer took some of these messages in meanwhile."""
        origin = Origin(claim.key.thread_id, datetime.now(UTC), extraction.model, extraction.prompt_version)
        for _ in range(ROUNDS):
            applied = apply(
                loaded.document,
                extraction.update,
                work.new,
                work.taken,
                origin,
                self._settings.apply,
                about=work.about,
                heat=self._heat_of(claim, loaded),
            )
            try:
                self._store.commit(claim.key.bucket, loaded, applied.document, lambda: self._still_ours(claim, work))
            except Conflict:  # the document moved on: what was extracted still holds unless the messages were taken in
                loaded = self._store.load(claim.key.bucket)
                if ledger.unknown(loaded.document, claim.key.thread_id, work.new) != work.new:
                    return None
                continue
            return _stored(work, applied)
        return None

    def _heat_of(self, claim: Claim, loaded: Loaded) -> dict[str, float]:
        """How much each fact was read lately; only where eviction asks for it."""
        if self._settings.apply.eviction != "hybrid":
            return {}
        heat = self._heat.read(claim.key.bucket, time.time())
        return {fact["id"]: heat.heat(fact["id"]) for fact in loaded.document["facts"]}

    def _still_ours(self, claim: Claim, work: Work) -> bool:
        """Asked under the lock: nobody has rescued the claim, and nobody has forgotten anything of the user since."""
        if self._tombstones.generation(claim.key.user_id) != work.generation:
            return False
        return send(self._client, verbs.extend([claim.id]))[0]


def _stopping() -> Retry:
    return Retry("stopping", "the worker stops", costs=False, backoff=False)


def _redacted(message: Message, counts: Counter[str]) -> Message:
    """The message without its secrets. Its identity is that of the whole text, as it was when it came."""
    content, found = redact(message.content)
    counts.update(found)
    return structs.replace(message, content=content) if found else message


def _stored(work: Work, applied: Applied) -> Stored:
    return Stored(
        messages=len(work.new),
        fact_ids=applied.added,
        confirmed=len(applied.confirmed),
        retired=len(applied.retired),
        refused=dict(Counter(refusal.reason for refusal in applied.refusals)),
        redacted=work.redacted,
    )


def _stored_earlier(claim: Claim, loaded: Loaded, part: Sequence[Message]) -> Stored:
    """What an attempt that was never acked has stored: the facts that quote these messages."""
    names = {name for message in part for name in (message.id, message.identity) if name}
    found = (fact["id"] for fact in loaded.document["facts"] if quotes_any(fact, claim.key.thread_id, names))
    return Stored(len(part), tuple(found), 0, 0, {})
