"""Excerpts in recall: what was said and no fact rests on, found and shown beside the facts, marked and below them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.recall_support import ANA, document, fact, reader, store, turn

from memd.adapters.agent_memory import AgentMemory
from memd.context import Bucket
from memd.memory.said.changes import append
from memd.memory.said.turns import Mark, decode
from memd.recall.of_document import injection

NOW = datetime.now(UTC)
SALAZAR = "My sourdough starter is called Salazar."
MAY, JULY = "2026-05-03T10:00:00Z", "2026-07-03T10:00:00Z"


def found(data_dir: Path, query: str, **options: Any) -> list[str]:
    """What a search finds, as text."""
    return [one.fact["content"] for one in reader(data_dir).search("ana", query, **options)]


def test_what_no_fact_has_is_found_and_marked(data_dir: Path) -> None:
    """With the day on which it was said, after the facts, only for a query; never without."""
    store(data_dir, document(fact("a", "Lives in Porto")), turn("1", SALAZAR))
    app = reader(data_dir)
    hit = app.search("ana", "name of the sourdough")[0]
    assert (hit.kind, hit.confidence, hit.fact["content"]) == (
        "excerpt",
        0.7,
        "My sourdough starter is called Salazar.",
    )
    block = app.inject("ana", query="name of the sourdough")
    assert block.endswith(
        "Said (not verified):\n- [said 2026-06-03 | not verified] My sourdough starter is called Salazar.\n</memory>"
    )
    assert "Salazar" not in app.inject("ana")
    assert "Salazar" not in app.inject("ana", query="sourdough", include_said=False)
    assert app.search("ana", "sourdough", include_said=False) == []
    assert "Salazar" not in reader(data_dir, recall__excerpt_tokens=0).inject("ana", query="sourdough")


@pytest.mark.parametrize(
    ("text", "of_fact"),
    [("I live in Berlin.", "The user lives in Lisbon"), ("我住在北京市中心。", "用户住在上海")],
)
def test_an_excerpt_stands_below_a_later_fact_with_its_words(data_dir: Path, text: str, of_fact: str) -> None:
    """However sure the search is of it; one that was said later than the fact may stand above."""
    query = "where does the user live in the city?" if text.isascii() else "住在哪里？"
    store(data_dir, document(fact("new", of_fact, 0.7, saidAt=JULY)), turn("1", text, MAY))
    assert found(data_dir, query)[0] == of_fact


def test_hidden_turns_give_nothing_and_what_is_over_nothing_about_today(data_dir: Path) -> None:
    """A hidden turn is no excerpt and no context; the marks hold whatever else they would match."""
    store(
        data_dir,
        document(fact("a", "Lives in Porto")),
        turn("1", "My locker code hangs on the fridge."),
        turn("2", "My locker stands beside the pool."),
        turn("3", "My locker is painted green."),
        marks=(Mark("1", "hidden", "sensitive"), Mark("2", "over", "replaced")),
    )
    assert found(data_dir, "the locker, green or in the pool or on the fridge?") == ["My locker is painted green."]


@pytest.mark.parametrize("agent", [False, True])
def test_what_a_person_or_an_agent_corrects_is_over(data_dir: Path, agent: bool) -> None:
    """As after a replacement: the old turn is found by questions about the past alone; a category changes nothing."""
    evidence = [{"thread": "t1", "message": "1", "quote": "I live in Berlin"}]
    store(
        data_dir,
        document(fact("fact_a", "The user lives in Berlin", evidence=evidence, saidAt=MAY)),
        turn("1", "I live in Berlin. The flat is above a bakery."),
        turn("2", "My flat in Berlin has a balcony."),
        turn("3", "My flat has a cat flap."),
    )
    app = reader(data_dir)
    said = ("bakery", "balcony", "cat flap")

    def shown(query: str) -> list[str]:
        text = " ".join(found(data_dir, query))
        return [word for word in said if word in text]

    assert shown("flat") == [*said]
    if agent:
        AgentMemory(app.settings, "ana").retire("fact_a", "moved")
    else:
        app.edit_fact("ana", "fact_a", category="identity")
        assert shown("flat") == [*said]
        app.edit_fact("ana", "fact_a", content="The user lives in Lisbon")
    assert shown("the flat?") == ["cat flap"]
    assert shown("the flat before the move?") == [*said]


@pytest.mark.parametrize("where", ["facts", "archive"])
@pytest.mark.parametrize(
    ("proof", "thread", "between", "shown"),
    [("0", "t1", 0, True), ("0", "t1", 7, True), ("0", "t1", 8, False), ("0", "t2", 0, False), ("1", "t1", 0, False)],
)
def test_only_turns_near_another_one_that_proves_a_fact_give_excerpts(
    data_dir: Path, where: str, proof: str, thread: str, between: int, shown: bool
) -> None:
    """In their conversation, whether or not the fact still holds. A turn is not its own witness.

    So nothing is shown of a conversation in which the model found nothing to keep.
    """
    others = [turn(f"b{number}", "Hm.") for number in range(between)]
    made = document(fact("b", "Lives in Porto"))
    evidence = [{"thread": thread, "message": proof, "quote": "I like tea"}]
    made[where] = [*made[where], fact("a", "The user likes tea", evidence=evidence)]
    store(data_dir, made, turn("0", "I like tea.", thread=thread), *others, turn("1", SALAZAR), witnessed=False)
    assert (SALAZAR in found(data_dir, "sourdough")) is shown


def test_sentences_that_a_fact_rests_on_are_no_excerpts(data_dir: Path) -> None:
    """The others of the turn are; equal lines come once, and other speakers none."""
    evidence = [{"thread": "t1", "message": "1", "quote": "I keep bees"}]
    store(
        data_dir,
        document(fact("a", "The user keeps bees", evidence=evidence)),
        turn("1", "I keep bees. The hive stands behind the garage."),
        turn("2", "The hive stands behind the garage."),
        turn("3", "The hive of mine is yellow.", name="Ben"),
        turn("4", "The hive of yours is fine.", role="assistant"),
    )
    assert found(data_dir, "bees hive") == ["The user keeps bees", "The hive stands behind the garage."]


def test_a_fact_is_found_by_the_turns_around_it(data_dir: Path) -> None:
    """The question before it, and the rest of the message that it quotes, by a reader that may read what was said.

    Another one could try word after word; it finds facts by their own words and quotes alone.
    """
    evidence = [{"thread": "t1", "message": "2", "quote": "Since 2019"}]
    store(
        data_dir,
        document(fact("a", "The user has been vegan since 2019", evidence=evidence), fact("b", "Lives in Porto")),
        turn("1", "Do you follow any diet, by the way?", role="assistant"),
        turn("2", "Since 2019, after that documentary on dolphins."),
    )
    for query in ("which diet?", "what about dolphins?"):
        assert found(data_dir, query) == ["The user has been vegan since 2019"], query
        assert found(data_dir, query, include_said=False) == [], query
    assert found(data_dir, "since 2019?", include_said=False) == ["The user has been vegan since 2019"]


def test_a_conversation_gets_no_excerpts_of_its_own_last_turns(data_dir: Path) -> None:
    """It has them before it already; older ones and those of other conversations it gets."""
    own = [turn(f"o{number}", f"My canoe number {number} is blue.", thread="own") for number in range(22)]
    store(data_dir, document(fact("a", "Lives in Porto")), turn("x", "My canoe leaks a little."), *own)
    block = reader(data_dir).inject("ana", query="canoe", thread_id="own")
    assert len(found(data_dir, "canoe", thread_id="own")) == block.count("canoe") == 3
    assert "leaks" in block
    assert "number 1 " in block
    assert "number 2 " not in block


def test_excerpts_take_their_part_of_the_block_at_most(data_dir: Path) -> None:
    """`recall.excerpt_tokens`, and half of it whatever that says; each line is data."""
    turns = [turn(str(number), f"My garden has {number} old apple trees & shrubs.") for number in range(80)]
    proofs = [one.id for one in turns]
    facts = [fact(f"f{n}", f"Likes garden number {n}", provenBy=proofs) for n in range(5)]
    store(data_dir, document(*facts), *turns)
    few = reader(data_dir, recall__excerpt_tokens=100).inject("ana", query="garden")
    many = reader(data_dir, recall__excerpt_tokens=4000).inject("ana", query="garden", max_tokens=600)
    assert 2 <= few.count("| not verified]") <= 5
    assert 10 <= many.count("| not verified]") <= 16
    assert "&amp;" in few


def test_an_agents_reader_gets_the_excerpts_of_both_memories(data_dir: Path) -> None:
    """Equal lines once; a mark in either hides in both."""
    chef = Bucket("ana", "chef")
    store(
        data_dir, document(fact("a", "Lives in Porto")), turn("1", "My oven is broken."), turn("2", "My oven is old.")
    )
    made = document(fact("c", "Cooks"), bucket=chef)
    store(data_dir, made, turn("3", "My oven is broken."), turn("4", "My oven is red."), marks=(Mark("2", "hidden"),))
    hits = reader(data_dir).search("ana", "oven", agent_name="chef")
    assert {(hit.fact["content"], hit.agent_name) for hit in hits} == {
        ("My oven is broken.", ""),
        ("My oven is red.", "chef"),
    }
    assert Bucket("ana") == ANA


def test_a_document_in_no_store_reads_like_one_in_a_store(data_dir: Path) -> None:
    """The same block, with excerpts, around facts and marks: what `memd eval` measures is what users get."""
    made = document(fact("a", "Lives in Porto", provenBy=["1", "2"]), fact("b", "Bakes bread", 0.7, saidAt=JULY))
    turns = turn("1", SALAZAR), turn("2", "My sister bakes rye bread on Sundays.", MAY), turn("3", "I hate rye bread.")
    marks = (Mark("3", "over", "changed"),)
    store(data_dir, made, *turns, marks=marks, witnessed=False)
    change = append(turns, marks)
    assert change is not None
    app, said = reader(data_dir), decode(change.lines)
    for query in ("which bread?", "what was said before the sourdough bread", "", None):
        block = injection(made, app.settings.recall, NOW, query, said)
        assert block == app.inject("ana", query=query)
    assert "Salazar" in injection(made, app.settings.recall, NOW, "sourdough", said)
