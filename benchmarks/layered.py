"""A memory of facts, and of turns that no fact rests on: those of the labelled sets, each time with other words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import count, islice, pairwise
from pathlib import Path

from msgspec import structs

from memd.config import Settings
from memd.context import Bucket
from memd.evaluation.retrieval_sets import Labelled, Row, read
from memd.memory.document import empty_document
from memd.memory.said.changes import append
from memd.memory.said.excerpts import judged
from memd.memory.said.turns import Turn
from memd.memory.store.json_store import open_store
from memd.push.times import iso

SETS = Path(__file__).parents[1] / "evaluation" / "retrieval"
GROUPS = ("open/marta", "open/deniz", "open/wenjing")
"""Two in English, one in Chinese."""


@cache
def labelled() -> Labelled:
    """The sets."""
    return read([file for group in GROUPS for file in sorted((SETS / group).iterdir())])


def queries() -> list[str]:
    """Their questions."""
    return [question.text for question in labelled().questions]


def write(settings: Settings, bucket: Bucket, facts: int, excerpts: int) -> None:
    """Store such a memory. Half of its turns have an excerpt, each of one or several sentences; half are replies."""
    known = [_proven(fact) for group in labelled().groups.values() for fact in group]
    turns = [turn for pair in islice(_pairs(), excerpts) for turn in pair]
    made = [
        {
            **known[number % len(known)],
            "id": f"fact_{number:08x}",
            "provenBy": [turn.id for turn in turns[number::facts]],  # excerpts are beside turns that prove a fact
        }
        for number in range(facts)
    ]
    document = {**empty_document(bucket), "facts": made, "revision": 1}
    store = open_store(settings)
    change = append(turns)
    store.commit(bucket, store.load(bucket), document, lambda: True, said=change)


def _proven(fact: Row) -> Row:
    """The fact with its evidence as documents have it: by the identity of a turn of the first round."""
    proofs = [{"message": f"{proof['turn']}-0", "quote": proof.get("quote", "")} for proof in fact.get("evidence", ())]
    return {**fact, "evidence": proofs}


def _pairs() -> Iterator[tuple[Turn, Turn]]:
    """Turns of the user with an excerpt, each with its reply, without end; those of each round have other words."""
    now = iso(datetime.now(UTC))
    turns = [turn for group in labelled().turns.values() for turn in group]
    pairs = [(said, reply) for said, reply in pairwise(turns) if said.excerpts]
    for number in count():
        for said, reply in pairs:
            text = f"{said.text} We talked about it on day {number + 1} of our trip."
            yield judged(_again(said, number, now, text)), _again(reply, number, now, reply.text)


def _again(turn: Turn, number: int, now: str, text: str) -> Turn:
    return structs.replace(turn, id=f"{turn.id}-{number}", thread=f"{turn.thread}-{number}", text=text, at=now)
