"""Re-extraction: what the model of the settings, with today's prompt, makes of everything a memory has kept as said.

The turns go through the steps of a claim again, in memory and in their order, from an empty document on. Nothing is
written: the result is compared with the memory as it is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from memd.config import Settings
from memd.context import Bucket, Context, Key, Message, identity_of_id
from memd.errors import ExtractionFailed, ModelUnavailable
from memd.evaluation.in_memory import InMemory
from memd.evaluation.measuring import live
from memd.evaluation.report import usd
from memd.extraction.protocol import Usage
from memd.memory.document import Document, empty_document, facts_of
from memd.memory.duplicates import Contents
from memd.memory.facts import category_of, confidence_of, content_of, evidence_of, id_of, person_of
from memd.memory.said.turns import Said, Turn
from memd.memory.store.json_store import open_store
from memd.memory.store.said_reader import read_said
from memd.push.signals import load_patterns
from memd.push.times import moment

PAUSE = timedelta(hours=1)
"""Turns of a thread that arrived within this time of each other are read together, as one conversation."""

NEAR = 0.6
"""Similarity (see `memory.duplicates`) from which two facts say the same in other words."""

Diff = dict[str, Any]


@dataclass(slots=True)
class Again:
    """The memory made anew so far, and what it cost."""

    document: Document
    requests: int = 0
    used: dict[str, Usage] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    outage: ExtractionFailed | None = None
    """The endpoint's failure, which ended the run."""


@dataclass(frozen=True, slots=True)
class SaidMemory:
    """A memory, and the conversations that its said layer holds."""

    bucket: Bucket
    document: Document
    said: Said
    conversations: tuple[Context, ...]


def read_kept(settings: Settings, bucket: Bucket, now: datetime) -> SaidMemory:
    """The memory of a bucket with what was said. Raises StoreUnavailable, DocumentDamaged, ConfigError."""
    store = open_store(settings)
    document = store.load(bucket).document
    said = read_said(store, bucket, document, settings, now)
    return SaidMemory(bucket, document, said, tuple(_conversations(said, bucket)))


async def extract_again(
    kept: SaidMemory, settings: Settings, again: Again, now: datetime, progress: Callable[[], None]
) -> None:
    """Extract all conversations, each at its own time; `again` is filled as they end. Raises ConfigError."""
    async with live(settings) as answers:
        memory = InMemory(settings, load_patterns(settings.signals.folder), answers)
        for number, context in enumerate(kept.conversations):
            at = moment(context.messages[-1].at) or now
            done = await memory.remember(context, again.document, at, f"again.{number}")
            again.document = done.after
            for asked in done.asked:
                again.requests += 1
                failure, extraction = asked.failure, asked.extraction
                if usage := extraction.usage if extraction else failure.usage if failure else None:
                    model = extraction.model if extraction else settings.extraction.model
                    again.used[model] = again.used.get(model, Usage()) + usage
                if asked.applied:
                    again.refused.update(refusal.reason for refusal in asked.applied.refusals)
                if isinstance(failure, ModelUnavailable):
                    again.outage = failure
                    return
                if failure is not None:
                    again.failures[failure.code] += 1
            progress()


def compared(kept: SaidMemory, again: Again, settings: Settings) -> Diff:
    """The memory as it is, beside the memory made anew. Facts that rest on other words than those kept are counted."""
    turns = kept.said.by_id
    facts = [fact for fact in facts_of(kept.document) if any(name in turns for name in _proofs(fact))]
    left = {id_of(fact): fact for fact in facts}
    known = Contents(facts, NEAR)
    same, reworded, added = 0, [], []
    for fact in facts_of(again.document):
        content, person = content_of(fact), person_of(fact)
        exact = known.same(content, person)
        found = exact or known.near(content, person)
        if found is None:
            added.append(_shown(fact))
            continue
        old = left.pop(found)
        known.drop(found)
        same += exact is not None
        if exact is None:
            reworded.append({"now": _shown(old), "again": _shown(fact)})
    total = sum(again.used.values(), start=Usage())
    return {
        "turns": len(kept.said.turns),
        "conversations": len(kept.conversations),
        "requests": again.requests,
        "same": same,
        "added": added,
        "gone": [_shown(fact) for fact in left.values()],
        "reworded": reworded,
        "not_compared": len(facts_of(kept.document)) - len(facts),
        "refused": dict(sorted(again.refused.items())),
        "failures": dict(sorted(again.failures.items())),
        "tokens": asdict(total),
        "usd": usd(again.used, settings.extraction.prices),
        "outage": again.outage.code if again.outage else None,
    }


def run(kept: SaidMemory, settings: Settings, progress: Callable[[], None]) -> tuple[Diff, int]:
    """The diff, and the exit code of the outage that ended it before its end, else 0. Raises ConfigError."""
    again = Again(empty_document(kept.bucket))
    asyncio.run(extract_again(kept, settings, again, datetime.now(UTC), progress))
    return compared(kept, again, settings), again.outage.exit_code if again.outage else 0


def _conversations(said: Said, bucket: Bucket) -> Iterator[Context]:
    """The turns as contexts, in the order in which they were taken in."""
    together: list[Turn] = []
    for turn in said.turns:
        if together and not _goes_on(together[-1], turn):
            yield _context(together, bucket)
            together = []
        together.append(turn)
    if together:
        yield _context(together, bucket)


def _goes_on(last: Turn, turn: Turn) -> bool:
    before, at = moment(last.at), moment(turn.at)
    return turn.thread == last.thread and (before is None or at is None or at - before <= PAUSE)


def _context(turns: Sequence[Turn], bucket: Bucket) -> Context:
    messages = (
        Message(
            turn.role,
            turn.text,
            identity=turn.id,
            name=turn.name or None,
            at=turn.at,
            said_at=turn.said_at,
            order=order,
        )
        for order, turn in enumerate(turns)
    )
    return Context(Key(turns[0].thread, bucket.user_id, bucket.agent_name), tuple(messages))


def _proofs(fact: dict[str, Any]) -> Iterator[str]:
    """The identities that a fact's evidence may name: each message by its id or its identity."""
    for entry in evidence_of(fact):
        name = str(entry.get("message"))
        yield name
        yield identity_of_id(str(entry.get("thread")), name)


def _shown(fact: dict[str, Any]) -> Diff:
    return {
        "id": id_of(fact),
        "content": content_of(fact),
        "category": category_of(fact),
        "confidence": confidence_of(fact),
    }
