"""In memory: the life of a context without a server, a daemon or a file, at a time that the caller sets.

It takes a worker's steps: filter, choose the new messages, ask the extractor, apply. It also does the inbox's part
between a push and a claim (merging pushes, halving claims that are too long), for one user at a time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from itertools import count
from operator import add
from typing import Any, Protocol

from memd.config import Settings
from memd.context import Context, Key, Message, estimate_tokens
from memd.errors import ExtractionFailed
from memd.extraction.protocol import Extraction, Request, Usage
from memd.inbox.claim import Claim, taken_in, unnamed
from memd.memory import ledger
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import Document, SaidFile, ledger_of, revision_of, with_said_file
from memd.memory.said.changes import Rewrite
from memd.memory.said.turns import NOTHING_SAID, Said, decode, encode
from memd.memory.store.protocol import Loaded
from memd.memory.to_forget import ToForget
from memd.push.answers import MAX_TOKENS
from memd.push.filtering import to_context
from memd.push.signals import Patterns
from memd.push.validation import RawPush, check_push
from memd.workers.halving import Parts
from memd.workers.keeping import Keeping
from memd.workers.outcome import Skipped, Stored, judge
from memd.workers.pieces import ask_in_pieces
from memd.workers.progress import MOST, PER_CLAIM
from memd.workers.remember import choose
from memd.workers.repair import repaired
from memd.workers.steps import NOTHING, Answered, ClaimPart, Opened, Unread, Work

_FILE = f"said-{0:016}.jsonl"
"""A name for what was said, which is in no file here."""


class Answers(Protocol):
    """A source of replies: a model, or saved replies. A request has the same `name` in every run."""

    async def answer(self, name: str, request: Request) -> Extraction:
        """Return the reply to one request. Raises ExtractionFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, with its reply or the failure, and the result of applying the reply."""

    name: str
    request: Request
    extraction: Extraction | None
    failure: ExtractionFailed | None
    applied: Applied | None
    redacted: dict[str, int]
    seconds: float

    @property
    def part(self) -> str:
        """The last part of the name: which request of its session it is."""
        return self.name.rpartition(".")[2]


@dataclass(slots=True)
class Remembered:
    """The result of a context. `skipped`: the reason why no request was made; empty if one was."""

    before: Document
    after: Document
    dropped: dict[str, int]
    asked: list[Asked] = field(default_factory=list)
    skipped: str = ""
    said: Said = NOTHING_SAID
    """What the said layer holds afterwards of this context."""


class InMemory:
    """Remembers contexts, one after the other."""

    def __init__(self, settings: Settings, patterns: Patterns, answers: Answers, order: int = 0) -> None:
        """`order`: that of the last message which the documents know; those to come are later."""
        self._settings = settings
        self._patterns = patterns
        self._answers = answers
        self._orders = count(order + 1)

    def context(self, key: Key, pushes: Iterable[Sequence[dict[str, Any]]], *, user_name: str | None = None) -> Context:
        """These pushes, filtered and merged as the inbox merges them. Raises Rejected."""
        merged: dict[str, Message] = {}
        dropped: Counter[str] = Counter()
        cut: Counter[str] = Counter()
        for messages in pushes:
            push = {
                "thread_id": key.thread_id,
                "user_id": key.user_id,
                "user_name": user_name,
                "messages": list(messages),
            }
            context = self.context_of(check_push(push, self._settings.client))
            merged |= {message.identity: message for message in context.messages}
            dropped.update(context.dropped)
            cut.update(context.cut)
        return Context(key, tuple(merged.values()), dropped=dict(dropped), cut=dict(cut), user_name=user_name)

    def context_of(self, push: RawPush) -> Context:
        """One push, filtered. Raises Rejected."""
        return to_context(push)

    async def remember(self, context: Context, document: Document, now: datetime, name: str) -> Remembered:
        """The document after this context. `name` names its requests: `name.1`, `name.2` ..."""
        result = Remembered(document, document, context.dropped)
        names = {context.key.user_id, context.user_name or context.key.user_id}
        arrived = (taken_in(message, now, next(self._orders)) for message in context.messages)
        said = tuple(map(unnamed(names), arrived))
        if not said:
            result.skipped = "nothing_left"
        requests = (f"{name}.{number}" for number in count(1))
        for messages in _claims(said, self._settings.drain.claim_tokens):
            # As on the last attempt: a refused part is halved at once, and a reply that is no update is repaired once.
            formless = dict.fromkeys((message.identity for message in messages), MOST - PER_CLAIM)
            attempts = self._settings.drain.max_attempts
            parts = Parts(Claim("", context.key, messages, attempts - 1, 0, 0, 0, formless=formless), attempts)
            for part in parts:
                parts.end(await self._step(part, result, now, requests))
        return result

    async def _step(self, part: ClaimPart, result: Remembered, now: datetime, names: Iterator[str]) -> Any:
        work = choose(Opened(part, _loaded(result.after, part)), self._settings, self._patterns, now)
        if isinstance(work, Unread):
            result.skipped = work.reason
            self._commit(Answered(work.work, NOTHING), result, now)
            return Skipped(work.reason)
        if isinstance(work, Skipped):
            result.skipped = work.reason
            return work
        calls: list[Asked] = []

        async def ask(work: Work) -> Answered:
            return await repaired(work, lambda work: self._ask(work, now, next(names), calls))

        try:
            if part.failure is None:
                answered = await ask(work)
            else:
                answered = await ask_in_pieces(work, ask, self._settings.extraction.model)
                calls = [_together(calls, self._request(work, now), answered.extraction)]
        except ExtractionFailed as failure:  # this part ends here and stores nothing
            result.asked += calls
            return judge(failure)
        applied = self._commit(answered, result, now)
        result.asked += [*calls[:-1], replace(calls[-1], applied=applied)]
        return Stored(len(work.new), applied.added)

    def _request(self, work: Work, now: datetime) -> Request:
        return work.request(self._settings, now)

    async def _ask(self, work: Work, now: datetime, name: str, calls: list[Asked]) -> Answered:
        """Make one request and note it. Raises ExtractionFailed."""
        started, request = time.perf_counter(), self._request(work, now)
        try:
            extraction = await self._answers.answer(name, request)
        except ExtractionFailed as failure:  # raised again for the part that it ends
            calls.append(Asked(name, request, None, failure, None, work.redacted, time.perf_counter() - started))
            raise
        calls.append(Asked(name, request, extraction, None, None, work.redacted, time.perf_counter() - started))
        return Answered(work, extraction)

    def _commit(self, answered: Answered, result: Remembered, now: datetime) -> Applied:
        """Apply a reply, and keep what was said with it."""
        work = answered.work
        held = b"".join((*result.said.lines, encode(result.said.marks)))
        file = SaidFile(_FILE, len(held), len(result.said.turns)) if held else SaidFile()
        loaded = replace(work.loaded, document=with_said_file(work.loaded.document, file))
        keeping = Keeping(self._settings, lambda _: result.said, work.part.claim.key.thread_id)
        applied = self._apply(answered, now, keeping.asked(work, loaded))
        kept = keeping.change(work, loaded, applied)
        if (change := kept.said) is not None:
            result.said = decode(change.lines if isinstance(change, Rewrite) else held + change.lines)
        applied = replace(applied, document=kept.document)
        result.after = applied.document
        return applied

    def _apply(self, answered: Answered, now: datetime, asked: ToForget) -> Applied:
        work, extraction = answered.work, answered.extraction
        thread, model, version = work.part.claim.key.thread_id, extraction.model, extraction.prompt_version
        origin = Origin(
            thread, now, model, version, asked=asked, before=work.before, zone=self._settings.extraction.zone
        )
        return apply(
            work.loaded.document,
            extraction.update,
            work.new,
            work.taken,
            origin,
            self._settings.apply,
            maintenance=work.maintenance,
        )


def _together(calls: Sequence[Asked], request: Request, extraction: Extraction) -> Asked:
    """The requests for the pieces of a message as one request for the whole message."""
    usage = reduce(add, (call.extraction.usage for call in calls if call.extraction), Usage())
    seconds = sum(call.seconds for call in calls)
    return replace(
        calls[-1], request=request, extraction=replace(extraction, usage=usage), failure=None, seconds=seconds
    )


def _loaded(document: Document, part: ClaimPart) -> Loaded:
    """The document as a store would load it for this part."""
    identities = {part.claim.key.thread_id: [message.identity for message in part.messages]}
    return Loaded(document, revision_of(document), None, ledger.known(ledger_of(document), identities))


def _claims(messages: Sequence[Message], cap: int) -> Iterator[tuple[Message, ...]]:
    """Split the messages into claims of up to `cap` tokens, oldest first, as memd/inbox/lua/claim.lua does."""
    claim: list[Message] = []
    size = 0
    for message in messages:
        tokens = estimate_tokens(message.content)
        answers = tokens <= MAX_TOKENS and message.role == "user" and claim and claim[-1].role == "assistant"
        if claim and size + tokens > cap and not answers:
            yield tuple(claim)
            claim, size = [], 0
        claim.append(message)
        size += tokens
    if claim:
        yield tuple(claim)
