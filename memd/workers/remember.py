"""Remembering: the life of one claim, from its messages to the one move of the inbox that ends it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from msgspec import structs

from memd.config import RedactionSettings, Settings
from memd.context import Bucket, Message
from memd.errors import StoreUnavailable
from memd.extraction.batch import results
from memd.extraction.protocol import Maintenance
from memd.inbox.claim import Claim
from memd.inbox.histograms import observed
from memd.memory import ledger
from memd.memory.apply import maintenance_due
from memd.memory.facts import id_of, quotes_any
from memd.memory.projects.shared import Projects, SharedProject
from memd.memory.said import off_record
from memd.memory.said.may_keep import Kept, may_keep
from memd.memory.said.wishes import behind_wishes
from memd.memory.scoped import all_facts
from memd.memory.scoping import visible_to
from memd.memory.store.protocol import Tombstone
from memd.push.answers import without_acknowledgements
from memd.push.redaction import redact
from memd.push.signals import Patterns, with_signals
from memd.workers.ask import Asking, has_paid_answer
from memd.workers.before import within_tokens
from memd.workers.commit import Documents
from memd.workers.halving import Parts
from memd.workers.new_vectors import NewVectors
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
from memd.workers.pieces import ask_in_pieces
from memd.workers.resources import COMMITS, Resources
from memd.workers.settle import Settling, breaks_format
from memd.workers.shown import shown
from memd.workers.steps import NOTHING, Answered, ClaimPart, Opened, Unread, Work
from memd.workers.tracing import ClaimSpan

ALREADY_KNOWN = Skipped("already_known")

NOTED = frozenset({"no_user_turn", "acknowledgement", "forget_wish", "off_the_record"})
"""Reasons to skip messages that the ledger takes in all the same: nothing that comes later changes what they say."""


class Remembering:
    """Takes claims through their lives, many at once in one event loop."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._documents = Documents(resources)
        self._settling = Settling(resources)
        self._new_vectors = NewVectors(resources)
        self.asking = Asking(resources)
        self._committing = asyncio.Semaphore(COMMITS)

    async def run(self, claim: Claim) -> None:
        """Load the document, choose the new messages, ask the extractor, commit the result; then settle with the inbox.

        Each verb takes the value of the verb before it; a verb that returns an outcome instead ends the part.
        A claim has one part, unless the model cannot take all of its messages together (`halving`). Vectors of new
        facts are made last, when the claim has ended. Never raises because of the claim.
        """
        with self._resources.tracing.of(claim) as span:
            outcome = await self._live(claim, span)
        if isinstance(outcome, Stored):
            await self._new_vectors.make(claim.key.bucket)

    async def _live(self, claim: Claim, span: ClaimSpan) -> Outcome:
        parts = Parts(claim, self._resources.settings.drain.max_attempts)
        for part in parts:
            step: Opened | Work | Unread | Answered | PartOutcome
            try:
                step = await span.step("load", self._load(part))
                if isinstance(step, Opened):
                    step = await span.step("choose", self._choose(step))
                if isinstance(step, Unread):
                    step = await span.step("note", self._note(step))
                if isinstance(step, Work):
                    step = await span.step("ask", self._ask(step))
                if isinstance(step, Answered):
                    step = await span.step("commit", self._commit(step))
            except Exception as error:  # noqa: BLE001  (whatever failed, the claim ends with an outcome)
                step = judge(error)
            parts.end(step)
        outcome = self._with_paid(parts)
        span.end_with(outcome)
        await span.step("settle", self._settle(claim, outcome, parts.progress.spent))
        return outcome

    def _with_paid(self, parts: Parts) -> Outcome:
        """The claim's outcome, with the answers to pieces of a message if it is a release."""
        outcome = parts.finish()
        if not isinstance(outcome, Retry) or outcome.answer is not None:
            return outcome
        return replace(outcome, answer=parts.progress.paid_pieces(self._resources.settings.extraction.model))

    async def _load(self, part: ClaimPart) -> Opened | Dead | Lost:
        if part.claim.bad:
            return Dead(part.claim.bad, breaks_format(part.claim.bad))
        if part.claim.refused:  # first, so that the ack does not include them
            await self._resources.in_thread(self._settling.bury_refused, part.claim)
        return await self._resources.in_thread(self._documents.load, part)

    async def _choose(self, opened: Opened) -> Work | Unread | Skipped | Stored | Retry:
        chosen = choose(opened, self._resources.settings, self._resources.patterns, opened.part.claim.now)
        if chosen != ALREADY_KNOWN:
            return chosen
        if opened.deliveries.error is not None:
            return unwritable(opened.deliveries.error)
        # The worker that stored them may have died before it synced the folder, or before its ack.
        await self._resources.in_thread(self._documents.sync, opened.part)
        if not opened.part.claim.came_back:
            return chosen
        return replace(_stored_earlier(opened), project=opened.deliveries.told)

    async def _note(self, unread: Unread) -> Skipped | Overtaken | Retry:
        """Commit the messages to the ledger alone, so that no later push brings them back as new."""
        noted = await self._commit(Answered(unread.work, NOTHING))
        return Skipped(unread.reason) if isinstance(noted, Stored) else noted

    async def _ask(self, work: Work) -> Answered | Deferred | Retry | Lost:
        if not has_paid_answer(work) and not self._documents.writable:
            # Paying for an answer that cannot be stored would be wasted.
            await self._resources.in_thread(self._documents.probe, work.part)
        if work.part.failure is not None:
            return await ask_in_pieces(work, self.asking.ask, self._resources.settings.extraction.model)
        return await self.asking.ask(work)

    async def _commit(self, answered: Answered) -> Stored | Overtaken | Retry:
        started = time.monotonic()
        try:
            async with self._committing:
                stored = await self._resources.in_thread(self._documents.commit, answered)
        except StoreUnavailable as error:
            self._documents.writable = False
            return replace(unwritable(error), answer=results.keep(answered.extraction, answered.work.new))
        answered.work.part.progress.spent.update(observed("commit", time.monotonic() - started))
        if not isinstance(stored, Stored):
            return stored
        if not answered.work.projects and not answered.work.delivered:  # as most have none: no thread is woken for it
            return stored
        deliveries = await self._resources.in_thread(self._documents.deliver, answered)
        if deliveries.error is not None:  # the user's part is stored; the next claim only delivers
            return unwritable(deliveries.error)
        return replace(stored, project=deliveries.told)

    async def _settle(self, claim: Claim, outcome: Outcome, spent: Counter[str]) -> None:
        await self.asking.circuit.free(claim.id)
        await self._resources.in_thread(self._settling.settle, claim, outcome, spent)


def choose(opened: Opened, settings: Settings, patterns: Patterns, now: datetime) -> Work | Unread | Skipped:
    """The new messages of a part, which the ledger does not hold, with context; or the reason to skip the part.

    Context is the last `context_messages` messages before the first new one, of the claim or of the said layer. A bare
    "yes" is new only with its question directly before it.
    """
    part, loaded, tombstone = opened.part, opened.loaded, opened.loaded.tombstone
    claim = part.claim
    forgotten = {m.identity for m in claim.messages if tombstone and _is_forgotten(tombstone, claim.key.bucket, m)}
    alive = tuple(message for message in part.messages if message.identity not in forgotten)
    name = ledger.name_of(claim.key.thread_id, claim.key.user_id, shared=settings.store.shared)
    formerly = ledger.known_formerly(loaded.document, name, alive)
    new = ledger.fresh(loaded.known | formerly, alive)
    if not new:
        return ALREADY_KNOWN if alive else Skipped("forgotten")
    kept = _asked(opened, forgotten, new, name)
    usable = [*opened.earlier, *(m for m in claim.messages if m.identity not in forgotten | part.guilty)]
    told = without_acknowledgements(new, usable)
    said = tuple(_readable(told, kept, knows=any(all_facts(loaded.document))))
    usable = [message for message in usable if message.identity not in kept.no_quotes]
    reason = _nothing_to_read(new, said, kept, settings)
    redacted: Counter[str] = Counter()
    heard = with_signals(said or new, usable, patterns)
    clean = {message.identity: _redacted(message, redacted, settings.redaction) for message in heard}
    work = Work(
        part,
        loaded,
        new=tuple(clean.values()),
        before=_context(usable, said or new, settings),
        taken=alive,
        said=tuple(
            clean.get(m.identity) or _redacted(m, Counter(), settings.redaction)
            for m in new
            if m.identity not in kept.not_kept
        ),
        kept=kept,
        maintenance=maintenance_due(loaded.document, now, settings.apply),
        redacted=dict(redacted),
        delivered=opened.deliveries.delivered,
    )
    if reason is None:
        document = visible_to(loaded.document, name, work.new)
        facts = shown(document, claim.key.thread_id, work.new, work.before, work.maintenance)
        return replace(work, shown=facts, projects=_projects(opened.projects, work))
    return Unread(replace(work, maintenance=Maintenance()), reason) if reason in NOTED else Skipped(reason)


def _projects(projects: Projects, work: Work) -> Projects:
    """The projects of the new messages, each with its facts that are shown.

    A project of which the ledger knows every message already is none of them: the request has no number for it.
    """
    thread_id = work.part.claim.key.thread_id
    named = {message.project for message in work.new}

    def chosen(shared: SharedProject) -> SharedProject:
        document = {"facts": list(shared.facts)}
        return shared._replace(ids=shown(document, thread_id, work.new, work.before, Maintenance()))

    return {project_id: chosen(shared) for project_id, shared in projects.items() if project_id in named}


def _readable(messages: Iterable[Message], kept: Kept, *, knows: bool) -> Iterator[Message]:
    """Those that the extractor may see, without what is off the record.

    `knows`: whether the memory has facts, of which the extractor then tells which a wish to forget means.
    """
    for message in messages:
        if message.identity in kept.rests:
            yield structs.replace(message, content=kept.rests[message.identity])
        elif message.identity not in kept.no_quotes or (
            message.identity in kept.asking and (knows or behind_wishes(message.content))
        ):
            yield message


def _asked(opened: Opened, forgotten: Collection[str], new: Sequence[Message], name: str) -> Kept:
    """What the user asks not to keep, of the claim and the turns before it. `name`: the thread's in the ledger."""
    messages = [*opened.earlier, *(m for m in opened.part.claim.messages if m.identity not in forgotten)]
    if not off_record.is_off(opened.loaded.document, name):
        return may_keep(messages)
    fresh = {message.identity for message in new}
    return may_keep(messages, next(place for place, m in enumerate(messages) if m.identity in fresh))


def _is_forgotten(tombstone: Tombstone, bucket: Bucket, message: Message) -> bool:
    return any(tombstone.holds(bucket, name) for name in (message.identity, *message.former))


def _nothing_to_read(new: tuple[Message, ...], said: tuple[Message, ...], kept: Kept, settings: Settings) -> str | None:
    """The reason to skip these new messages, or None. `said`: those that say something and may be read."""
    roles = {message.role for message in said}
    if "user" not in roles:
        unread = (message for message in new if message.role == "user" and message.identity in kept.no_quotes)
        if asked_not_to := next(unread, None):
            return kept.not_kept[asked_not_to.identity]
        return "acknowledgement" if any(message.role == "user" for message in new) else "no_user_turn"
    if settings.filtering.require_reply and "assistant" not in roles:
        return "forget_wish" if any(message.identity in kept.asking for message in said) else "no_reply"
    return None


def _context(usable: Sequence[Message], new: Sequence[Message], settings: Settings) -> tuple[Message, ...]:
    """Up to `extraction.context_messages` right before the first new one; none where no new one is usable."""
    fresh = {message.identity for message in new}
    start = next((place for place, message in enumerate(usable) if message.identity in fresh), 0)
    last = usable[max(0, start - settings.extraction.context_messages) : start]
    return within_tokens([_redacted(message, Counter(), settings.redaction) for message in last])


def _redacted(message: Message, counts: Counter[str], settings: RedactionSettings) -> Message:
    """The message without its secrets. It keeps its identity, a hash of the original text."""
    content, secrets = redact(message.content, pii=settings.pii)
    counts.update(secrets)
    return structs.replace(message, content=content) if secrets else message


def _stored_earlier(opened: Opened) -> Stored:
    """The facts that quote these messages, stored by an attempt that was never acked."""
    messages, thread = opened.part.messages, opened.part.claim.key.thread_id
    names = {name for message in messages for name in (message.id, message.identity) if name}
    quoting = (id_of(fact) for fact in all_facts(opened.loaded.document) if quotes_any(fact, thread, names))
    return Stored(len(messages), tuple(quoting))
