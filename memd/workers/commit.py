"""The documents of claims: read for each part, and replaced under the bucket's lock while the claim is still ours."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from memd.context import Key, Message
from memd.errors import Conflict
from memd.events import Event, logger
from memd.extraction.protocol import MALFORMED, TOO_MANY
from memd.extraction.update import Update
from memd.forget import Forgetting
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.memory import ledger
from memd.memory.apply import Applied, Origin, apply
from memd.memory.facts import by_id
from memd.memory.projects.outbox import without_entries
from memd.memory.said import off_record
from memd.memory.store.protocol import Identities, Loaded, Wish
from memd.memory.store.said_reader import read_said
from memd.memory.to_forget import ToForget
from memd.push.times import iso
from memd.workers.before import TAIL_BYTES, earlier, may_stand_before
from memd.workers.delivering import Deliveries, Delivering
from memd.workers.keeping import Keeping, Written
from memd.workers.outcome import Lost, Overtaken, Stored
from memd.workers.resources import Resources
from memd.workers.steps import Answered, ClaimPart, Opened, Work

ROUNDS = 5
"""How often an update is applied again because another writer was faster."""


class Documents:
    """The store's operations for claims. Every method blocks."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._settings = resources.settings
        self._store = resources.store
        self._delivering = Delivering(resources.store, resources.settings)
        self.writable = False
        """Whether the store took a write since its last failure. False at the start, so that a probe runs first."""

    def load(self, part: ClaimPart) -> Opened | Lost:
        """The bucket's document, and the part's messages that it already knows.

        Lost after an interrupted forgetting, which is completed first and removes the claim as well.
        Raises StoreUnavailable, DocumentDamaged.
        """
        key = part.claim.key
        loaded = self._store.load(key.bucket, _identities(self._places(key), part.messages))
        if loaded.tombstone is not None and loaded.tombstone.open:
            self._finish_forgetting(loaded.tombstone.open)
            return Lost("forgotten")
        deliveries = self._delivering.deliver(key.bucket, loaded, part.claim.now)
        if deliveries.private:  # they are facts of the document by now
            loaded = self._store.load(key.bucket, _identities(self._places(key), part.messages))
        projects = self._delivering.projects_of(key.user_id, key.thread_id, part.messages)
        return Opened(part, loaded, self._earlier(part, loaded), projects, deliveries)

    def probe(self, part: ClaimPart) -> None:
        """Find out whether the store takes writes. Raises StoreUnavailable."""
        self._store.probe(part.claim.key.bucket)
        self.writable = True

    def sync(self, part: ClaimPart) -> None:
        """Make the bucket's document durable, whoever wrote it. Raises StoreUnavailable."""
        self._store.sync(part.claim.key.bucket)

    def deliver(self, answered: Answered) -> Deliveries:
        """Deliver what the document has for projects, once it is committed. Raises StoreUnavailable."""
        claim = answered.work.part.claim
        return self._delivering.deliver(claim.key.bucket, self._store.load(claim.key.bucket), claim.now)

    def commit(self, answered: Answered) -> Stored | Overtaken:
        """Apply the extraction and store the result.

        When another writer was faster, the update still holds and is applied to the newer document, unless that
        writer has taken some of the same messages, or anything of the user was forgotten meanwhile.
        Raises ClaimLost, StoreUnavailable, InboxUnavailable.
        """
        work = answered.work
        key, loaded = work.part.claim.key, work.loaded
        asked = _identities(self._places(key), work.taken)
        taken = _identities((self._ledger_name(key),), work.taken)
        for _ in range(ROUNDS):
            loaded = replace(loaded, document=without_entries(loaded.document, work.delivered))
            keeping = Keeping(self._settings, partial(self._store.read_said, key.bucket), self._ledger_name(key))
            applied = self._apply(answered, loaded, keeping.asked(work, loaded))
            try:
                kept = self._noted(work, keeping.change(work, loaded, applied))
                self._store.commit(key.bucket, loaded, kept.document, lambda: self._still_ours(work), taken, kept.said)
            except Conflict:
                loaded = self._store.load(key.bucket, asked)
                forgotten = loaded.generation != work.loaded.generation
                if forgotten or ledger.fresh(loaded.known, work.new) != work.new:
                    return Overtaken()
            else:
                return _stored(answered, applied, kept.not_kept)
        return Overtaken()

    def _apply(self, answered: Answered, loaded: Loaded, asked: ToForget) -> Applied:
        work, extraction = answered.work, answered.extraction
        key, now = work.part.claim.key, work.part.claim.now
        model, version, name = extraction.model, extraction.prompt_version, self._ledger_name(key)
        zone = self._settings.extraction.zone
        origin = Origin(key.thread_id, now, model, version, name, asked, work.before, zone)
        return apply(
            loaded.document,
            extraction.update,
            work.new,
            work.taken,
            origin,
            self._settings.apply,
            maintenance=work.maintenance,
            recent_use=self._recent_use(work.part, loaded, extraction.update),
            projects=work.projects,
        )

    def _noted(self, work: Work, written: Written) -> Written:
        """The same with the thread's present state, on or off the record, in its document."""
        if not work.part.ends_claim:
            return written
        name, now = self._ledger_name(work.part.claim.key), iso(work.part.claim.now)
        return replace(written, document=off_record.noted(written.document, name, now, is_off=work.kept.is_off))

    def _earlier(self, part: ClaimPart, loaded: Loaded) -> tuple[Message, ...]:
        """What was said before a claim that begins with a new message. Raises StoreUnavailable."""
        claim, most = part.claim, self._settings.extraction.context_messages
        if not most or not may_stand_before(loaded.document, self._places(claim.key), claim.messages, loaded.known):
            return ()
        said = read_said(
            self._store, claim.key.bucket, loaded.document, self._settings, claim.now, last_bytes=TAIL_BYTES
        )
        return earlier(said, self._ledger_name(claim.key), claim.messages[0])[-most:]

    def _ledger_name(self, key: Key) -> str:
        return ledger.name_of(key.thread_id, key.user_id, shared=self._settings.store.shared)

    def _places(self, key: Key) -> tuple[str, ...]:
        return ledger.places(self._ledger_name(key))

    def _recent_use(self, part: ClaimPart, loaded: Loaded, update: Update) -> dict[str, float]:
        """Recent reads of each fact, where the memory may be too full; empty otherwise."""
        facts = by_id(loaded.document)
        if len(facts) + len(update.new_facts) <= self._settings.apply.max_facts:
            return {}
        accesses = self._store.reading_notes.read(part.claim.key.bucket, time.time())
        return {fact_id: accesses.heat(fact_id) for fact_id in facts}

    def _still_ours(self, work: Work) -> bool:
        """Called under the locks: no other worker has the claim."""
        return send(self._resources.client, verbs.extend([work.part.claim.id]))[0]

    def _finish_forgetting(self, wishes: Iterable[Wish]) -> None:
        for wish in wishes:
            Forgetting(self._settings, self._resources.client, self._store).finish(wish)
        logger().info(Event.FORGOTTEN)


def _identities(names: Iterable[str], messages: Sequence[Message]) -> Identities:
    identities = [message.identity for message in messages]
    return dict.fromkeys(names, identities)


def _stored(answered: Answered, applied: Applied, not_kept: dict[str, int]) -> Stored:
    work, extraction = answered.work, answered.extraction
    refused = Counter(refusal.reason for refusal in applied.refusals)
    refused.update({MALFORMED: len(extraction.malformed), TOO_MANY: extraction.over})
    return Stored(
        messages=len(work.new),
        fact_ids=applied.added,
        confirmed=len(applied.confirmed),
        retired=len(applied.retired),
        forgotten=len(applied.forgotten),
        suspended=len(applied.suspended),
        refused=dict(+refused),
        redacted=work.redacted,
        not_kept=not_kept,
        mended=dict(extraction.mended),
        malformed=extraction.malformed,
    )
