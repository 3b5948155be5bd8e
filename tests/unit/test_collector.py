"""What the garbage collector has to look at: next to nothing of the memories that a reader has, however many facts."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from support.recall_support import document, fact, reader, store, turn, write

from memd.client import Memd
from memd.context import Bucket
from memd.memory.packed import pack, unpack
from memd.memory.said.turns import Turn

FEW, MANY = 10, 110

NESTED: dict[str, Any] = {
    "evidence": [{"thread": "t", "message": "m", "quote": "I like tea"}],
    "subject": {"person": "Ana", "relationship": "sister"},
    "replaces": ["fact_0"],
    "origin": {"model": "m", "prompt": 3},
}


def facts(count: int) -> list[dict[str, Any]]:
    """Facts about different persons, each proven in a thread of its own."""
    return [
        fact(
            f"fact_{n}",
            f"Ana{n} likes tea number {n}",
            **NESTED | {"subject": {"person": f"Ana{n}"}, "source": f"t{n}"},
        )
        for n in range(1, count + 1)
    ]


def turns(count: int) -> list[Turn]:
    """What was said in each of these threads, and more that no fact rests on."""
    said = [(f"m{n}", f"Ana{n} had green tea with {n} biscuits yesterday.", f"t{n}") for n in range(1, count + 1)]
    return [turn(identity, text, thread=thread) for identity, text, thread in said]


def looked_at(app: Memd, user: str) -> tuple[int, int]:
    """How many objects more the collector looks at, and references that it follows, once this user's memory is read."""

    def known() -> tuple[int, int]:
        for _ in range(3):  # what holds only texts and numbers is left alone once the collector has seen it
            gc.collect()
        objects = gc.get_objects()
        return len(objects), sum(len(gc.get_referents(one)) for one in objects)

    before = known()
    app.inject(user)
    assert len({hit.kind for hit in app.search(user, "tea", limit=500)}) == 2
    after = known()
    return after[0] - before[0], after[1] - before[1]


def test_the_collector_looks_at_no_object_of_a_fact_or_turn(data_dir: Path) -> None:
    """A memory of many facts and excerpts has as many objects for the collector as one of few.

    It follows no reference to a fact or an excerpt either.
    """
    for user, count in (("first", MANY), ("few", FEW), ("many", MANY)):
        store(data_dir, document(*facts(count), bucket=Bucket(user)), *turns(count))
    app = reader(data_dir)
    gc.freeze()  # the objects of other tests
    try:
        looked_at(app, "first")
        few, many = looked_at(app, "few"), looked_at(app, "many")
    finally:
        gc.unfreeze()
    assert many[0] - few[0] < (MANY - FEW) / 10
    assert many[1] - few[1] < (MANY - FEW) / 10


def test_a_search_returns_facts_as_the_document_has_them(data_dir: Path) -> None:
    """However the reader keeps them: fields, their order, and what is nested."""
    known = facts(FEW)
    write(data_dir, document(*known, bucket=Bucket("ana")))
    found = [hit.fact for hit in reader(data_dir).search("ana", "tea")]
    derived = {"status": "active", "lastUsedAt": None}
    assert sorted(map(str, found)) == sorted(str({**one, **derived}) for one in known)


@pytest.mark.parametrize("value", [None, "", "[]", 0, 1.5, True, [], {}, [[]], {"a": [{"b": "喜欢"}]}])
def test_what_is_unpacked_is_what_was_packed(value: object) -> None:
    """Any value of JSON, of the right type or from an edit of the file."""
    assert unpack(pack({"id": "f", "x": value})) == {"id": "f", "x": value}
