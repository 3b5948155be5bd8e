"""The tokens of a request to the model, the cached part of them, and the tokens over a long thread."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date

from benchmarks.figures import Figure, Measurement, Plot, at_most
from benchmarks.load import full_document, text
from benchmarks.sizes import Size
from memd.config import ExtractionSettings
from memd.context import Bucket, Message, estimate_tokens
from memd.extraction.prompt import INSTRUCTIONS, build
from memd.extraction.protocol import Request
from memd.extraction.update import json_schema

AREA = "tokens"
DAY = date(2026, 11, 1)
TURNS = (10, 25, 50, 100, 200)


def measure(_: Size) -> Iterator[Measurement]:
    """Estimated by memd's rule (0.3 a character, 1.5 a CJK character), the conversation included."""
    five = _messages(5)
    prompt, prefix = of_request(five)
    spoken = sum(estimate_tokens(message.content) for message in five)
    yield Figure(
        AREA, "a request, 100 facts, five short turns", prompt + prefix, "tokens", target=at_most(5_400),
        note=f"{prefix:,} of them the cached prefix, {spoken:,} conversation; the established system: 27,480",
    )  # fmt: skip
    empty = estimate_tokens(build(Request(full_document(Bucket("user"), 0), five), DAY))
    yield Figure(AREA, "a request, no facts, five short turns", empty + prefix, "tokens")
    yield from _thread()


def of_request(messages: tuple[Message, ...]) -> tuple[int, int]:
    """The tokens of a request with 100 facts and these messages: those of its prompt, those of the cached prefix."""
    document = full_document(Bucket("user"))
    for number, fact in enumerate(document["facts"]):
        fact["createdAt"] = f"2026-{1 + number // 10:02d}-03T10:00:00.000Z"  # ten months, which a request names
    prefix = estimate_tokens(INSTRUCTIONS) + estimate_tokens(json.dumps(json_schema(), separators=(",", ":")))
    return estimate_tokens(build(Request(document, messages), DAY)), prefix


def _messages(count: int, start: int = 0) -> tuple[Message, ...]:
    """Alternating turns of the user and the assistant, 120 characters each."""
    roles = ("user", "assistant")
    return tuple(Message(roles[n % 2], text(120, n)) for n in range(start, start + count))  # type: ignore[arg-type]  # the two roles


def _thread() -> Iterator[Measurement]:
    """A request for every turn of a thread: the new messages and two before them, or the whole thread each time."""
    back = ExtractionSettings().context_messages
    document = full_document(Bucket("user"), 0)
    frame = estimate_tokens(build(Request(document, _messages(1)), DAY)) - estimate_tokens(_messages(1)[0].content)
    said = [estimate_tokens(message.content) for message in _messages(max(TURNS))]
    new: list[tuple[float, float]] = []
    whole: list[tuple[float, float]] = []
    for turns in TURNS:
        asked = 0
        for turn in range(turns):
            messages = _messages(1, turn)
            before = _messages(min(back, turn), max(0, turn - back))
            asked += estimate_tokens(build(Request(document, messages, before), DAY))
        new.append((turns, asked))
        whole.append((turns, sum(sum(said[: turn + 1]) + frame for turn in range(turns))))
    last, first = new[-1], new[0]
    yield Figure(
        AREA, f"a thread of {TURNS[-1]} turns, prefix not counted", last[1], "tokens",
        peer="the whole thread each time", peer_value=whole[-1][1],
    )  # fmt: skip
    yield Figure(
        AREA, f"tokens a turn, {TURNS[0]} → {TURNS[-1]} turns", (last[1] / last[0]) / (first[1] / first[0]), "×",
        target=at_most(1.05),
    )  # fmt: skip
    lines = {"new messages + 2": new, "whole thread": whole}
    yield Plot("tokens", "Tokens over a thread, a request each turn", "turns", "tokens", lines)
