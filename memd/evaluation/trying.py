"""Trying: runs one conversation through the real parts, in memory, and tells what each part did with it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import Any

import msgspec
import orjson

from memd.config import Settings
from memd.context import Bucket, Message, Role
from memd.evaluation.in_memory import Asked, InMemory, Remembered
from memd.evaluation.judging import refused_text, rule_of
from memd.evaluation.measuring import live
from memd.evaluation.report import usd
from memd.extraction import chosen
from memd.extraction.prompt import INSTRUCTIONS, build
from memd.extraction.protocol import MALFORMED
from memd.memory.apply import Refusal
from memd.memory.document import Document, agent_of, empty_document, user_of
from memd.memory.facts import by_id, category_of, confidence_of, content_of, id_of
from memd.memory.parsing import parse
from memd.memory.said.may_keep import may_keep
from memd.push.filtering import Examined, examine
from memd.push.redaction import redact
from memd.push.signals import Patterns, load_patterns
from memd.push.strict_json import parse_json
from memd.push.validation import RawPush, check_push

NAME = "try"
"""The user and the thread of a conversation without `user_id` or `thread_id`."""

Story = dict[str, Any]


def read_push(raw: bytes, settings: Settings) -> RawPush:
    """Parse a push in the wire format, or a list of messages. Raises Rejected."""
    value = parse_json(raw)
    if isinstance(value, list):
        value = {"messages": value}
    if isinstance(value, dict):
        value = {"user_id": settings.client.default_user or NAME, "thread_id": NAME, **value}
    return check_push(value, settings.client)


def read_memory(raw: bytes, push: RawPush) -> Document:
    """Parse a memory document of any user. Raises DocumentDamaged."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:  # `parse` reports the place
        value = {}
    owner = user_of(value) if isinstance(value, dict) else ""
    return parse(raw, Bucket(owner, agent_of(value)) if owner else push.key.bucket)


def tell(push: RawPush, document: Document | None, settings: Settings, now: datetime) -> Story:
    """The story of a conversation. Raises Rejected, ConfigError."""
    patterns = load_patterns(settings.signals.folder)
    before = empty_document(push.key.bucket) if document is None else document
    done = asyncio.run(_remembered(push, before, settings, patterns, now))
    return {
        "extractor": chosen(settings.extraction),
        "turns": _turns(push, settings, patterns),
        "skipped": done.skipped,
        "requests": [_request(asked, settings) for asked in done.asked],
        "memory": done.after,
    }


async def _remembered(
    push: RawPush, document: Document, settings: Settings, patterns: Patterns, now: datetime
) -> Remembered:
    async with live(settings) as answers:
        memory = InMemory(settings, patterns, answers, _last_order(document))
        return await memory.remember(memory.context_of(push), document, now, NAME)


def _last_order(part: Any) -> int:
    """The highest order of a message that a document, or a part of it, names."""
    if isinstance(part, dict):
        order = part.get("order")
        own = order if type(order) is int else 0
        return max(own, *map(_last_order, part.values()), 0)
    return max(map(_last_order, part), default=0) if isinstance(part, list) else 0


def _turns(push: RawPush, settings: Settings, patterns: Patterns) -> list[Story]:
    """Each turn as filtering leaves it, with what the drain finds in it: signals, and wishes not to keep it."""
    turns: list[Story] = []
    said: str | None = None
    whole = examine(push)
    asked = may_keep([_message(place, one, push) for place, one in enumerate(whole) if one.dropped is None]).not_kept
    for place, examined in enumerate(whole):
        kept = examined.dropped is None
        heard = patterns.evidence(examined.turn.text, said) if kept and examined.turn.kind == "user" else {}
        turns.append({**_turn(examined, heard, settings), "not_kept": asked.get(str(place))})
        if kept:
            said = None if examined.turn.kind == "user" else f"{said or ''}\n{examined.turn.text}".strip()
    return turns


def _message(place: int, examined: Examined, push: RawPush) -> Message:
    turn = examined.turn
    own = turn.name in {None, "", push.key.user_id, push.user_name}
    role: Role = "user" if turn.kind == "user" else "assistant"
    return Message(role, turn.text, identity=str(place), name=None if own else turn.name)


def _turn(examined: Examined, signals: dict[str, str], settings: Settings) -> Story:
    text, secrets = redact(examined.turn.text, pii=settings.redaction.pii)
    return {
        "role": examined.turn.kind,
        "text": text,
        "dropped": examined.dropped,
        "cut": examined.cut,
        "redacted": dict(secrets),
        "signals": signals,
    }


def _request(asked: Asked, settings: Settings) -> Story:
    story: Story = {
        "system": INSTRUCTIONS,
        "prompt": build(asked.request, asked.request.today),
        "seconds": round(asked.seconds, 3),
        "failure": str(asked.failure or ""),
        "exit_code": asked.failure.exit_code if asked.failure else 0,
    }
    if asked.extraction is None or asked.applied is None:
        return story
    extraction, applied = asked.extraction, asked.applied
    known, after = by_id(asked.request.document), by_id(applied.document)
    return story | {
        "model": extraction.model,
        "usage": asdict(extraction.usage),
        "usd": usd({extraction.model: extraction.usage}, settings.extraction.prices),
        "proposed": msgspec.to_builtins(extraction.update),
        "added": [_fact(after[fact_id]) for fact_id in applied.added if fact_id in after],
        "confirmed": [_fact(after[fact_id]) for fact_id in applied.confirmed],
        "retired": [_fact(known[fact_id]) for fact_id in applied.retired if fact_id in known],
        "forgotten": [_fact(fact) for fact in applied.forgotten],
        "suspended": [_fact(known[fact_id]) for fact_id in applied.suspended if fact_id in known],
        "summaries": sorted(extraction.update.summaries),
        "refused": [
            *(_refusal(refusal, asked) for refusal in applied.refusals),
            *({"reason": MALFORMED, "rule": "", "part": place, "text": ""} for place in extraction.malformed),
        ],
        "mended": dict(extraction.mended),
    }


def _fact(fact: dict[str, Any]) -> Story:
    return {
        "id": id_of(fact),
        "content": content_of(fact),
        "category": category_of(fact),
        "confidence": confidence_of(fact),
    }


def _refusal(refusal: Refusal, asked: Asked) -> Story:
    text = refused_text(refusal, asked)
    return {"reason": refusal.reason, "rule": rule_of(refusal, asked), "part": refusal.part, "text": text}
