"""Remembering: the life of one claim, from its messages to the one move of the inbox that ends it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

from msgspec import structs

from memd.config import Settings
from memd.context import Bucket, Message
from memd.errors import StoreUnavailable
from memd.extraction.batch import results
from memd.inbox.claim import Claim
from memd.memory import ledger
from memd.memory.apply import maintenance_due
from memd.memory.document import facts_of
from memd.memory.facts import id_of, quotes_any
from memd.memory.store.protocol import Tombstone
from memd.push.redaction import redact
from memd.workers.ask import Asking, paid_answer
from memd.workers.commit import Documents
from memd.workers.halving import Parts
from memd.workers.outcome import (
    Dead,
    Deferred,
    Lost,
    Outcome,
    Overtaken,
    PartOutcome,
    Retry,
    Skipped,
    Stored,
    judge,
    unwritable,
)
from memd.workers.resources import Resources
from memd.workers.settle import Settling, breaks_format
from memd.workers.steps import Answered, Opened, Part, Work

ALREADY_KNOWN = Skipped("already_known")


class Remembering:
    """Takes claims through their lives, many at once in one event loop."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._documents = Documents(resources)
        self._settling = Settling(resources)
        self.asking = Asking(resources)

    async def run(self, claim: Claim) -> None:
        """Load the document, choose the new messages, ask the extractor, commit the result; then settle with the inbox.

        Each verb takes the value of the verb before it; a verb that returns an outcome instead ends the part.
        A claim has one part, unless the model cannot take all of its messages together (`halving`).
        Never raises because of the claim.
        """
        parts = Parts(claim, self._resources.settings.drain.max_attempts)
        for part in parts:
            step: Opened | Work | Answered | PartOutcome
            try:
                step = await self._load(part)
                if isinstance(step, Opened):
                    step = await self._choose(step)
                if isinstance(step, Work):
                    step = await self._ask(step)
                if isinstance(step, Answered):
                    step = await self._commit(step)
            except Exception as error:  # noqa: BLE001  (whatever failed, the claim ends with an outcome)
                step = judge(error)
            parts.end(step)
        await self._settle(claim, parts.finish(), parts.spent)

    async def _load(self, part: Part) -> Opened | Dead | Lost:
        if part.claim.bad:
            return Dead(part.claim.bad, breaks_format(part.claim.bad))
        if part.claim.refused:  # first, so that the ack does not include them
            await self._resources.in_thread(self._settling.bury_refused, part.claim)
        return await self._resources.in_thread(self._documents.load, part)

    async def _choose(self, opened: Opened) -> Work | Skipped | Stored:
        chosen = choose(opened, self._resources.settings, datetime.now(UTC))
        if chosen != ALREADY_KNOWN:
            return chosen
        # The worker that stored them may have died before it synced the folder, or before its ack.
        await self._resources.in_thread(self._documents.sync, opened.part)
        return _stored_earlier(opened) if opened.part.claim.came_back else chosen

    async def _ask(self, work: Work) -> Answered | Deferred | Retry | Lost:
        if paid_answer(work) is None and not self._documents.writable:
            # Paying for an answer that cannot be stored would be wasted.
            await self._resources.in_thread(self._documents.probe, work.part)
        return await self.asking.ask(work)

    async def _commit(self, answered: Answered) -> Stored | Overtaken | Retry:
        try:
            return await self._resources.in_thread(self._documents.commit, answered)
        except StoreUnavailable as error:
            self._documents.writable = False
            return replace(unwritable(error), answer=results.keep(answered.extraction, answered.work.new))

    async def _settle(self, claim: Claim, outcome: Outcome, spent: Counter[str]) -> None:
        await self.asking.circuit.free(claim.id)
        await self._resources.in_thread(self._settling.settle, claim, outcome, spent)


def choose(opened: Opened, settings: Settings, now: datetime) -> Work | Skipped:
    """The new messages of a part, which the ledger does not hold, with context; or Skipped with the reason.

    Context is the last `context_messages` messages of the claim before the first new one.
    """
    part, loaded, tombstone = opened.part, opened.loaded, opened.loaded.tombstone
    claim = part.claim
    forgotten = {m.identity for m in claim.messages if tombstone and _is_forgotten(tombstone, claim.key.bucket, m)}
    alive = tuple(message for message in part.messages if message.identity not in forgotten)
    formerly = ledger.known_formerly(loaded.document, claim.key.thread_id, alive)
    new = ledger.fresh(loaded.known | formerly, alive)
    reason = _nothing_to_read(alive, new, settings)
    if reason is not None:
        return reason
    redacted: Counter[str] = Counter()
    return Work(
        part,
        loaded,
        new=tuple(_redacted(message, redacted) for message in new),
        before=_context(part, new, forgotten, settings.extraction.context_messages),
        taken=alive,
        maintenance=maintenance_due(loaded.document, now, settings.apply),
        redacted=dict(redacted),
    )


def _is_forgotten(tombstone: Tombstone, bucket: Bucket, message: Message) -> bool:
    return any(tombstone.holds(bucket, name) for name in (message.identity, message.former) if name)


def _nothing_to_read(alive: tuple[Message, ...], new: tuple[Message, ...], settings: Settings) -> Skipped | None:
    """The reason to skip these messages, or None."""
    roles = {message.role for message in new}
    if not alive:
        return Skipped("forgotten")
    if not new:
        return ALREADY_KNOWN
    if "user" not in roles:
        return Skipped("no_user_turn")
    if settings.filtering.require_reply and "assistant" not in roles:
        return Skipped("no_reply")
    return None


def _context(part: Part, new: tuple[Message, ...], forgotten: set[str], most: int) -> tuple[Message, ...]:
    """Up to `most` messages of the claim right before the first new one."""
    unusable = forgotten | part.guilty
    usable = [message for message in part.claim.messages if message.identity not in unusable]
    fresh = {message.identity for message in new}
    start = next(place for place, message in enumerate(usable) if message.identity in fresh)
    return tuple(_redacted(message, Counter()) for message in usable[max(0, start - most) : start])


def _redacted(message: Message, counts: Counter[str]) -> Message:
    """The message without its secrets. It keeps its identity, a hash of the original text."""
    content, secrets = redact(message.content)
    counts.update(secrets)
    return structs.replace(message, content=content) if secrets else message


def _stored_earlier(opened: Opened) -> Stored:
    """The facts that quote these messages, stored by an attempt that was never acked."""
    messages, thread = opened.part.messages, opened.part.claim.key.thread_id
    names = {name for message in messages for name in (message.id, message.identity) if name}
    quoting = (id_of(fact) for fact in facts_of(opened.loaded.document) if quotes_any(fact, thread, names))
    return Stored(len(messages), tuple(quoting))
