"""Categories and lengths: what other systems call a category counts, and four Chinese characters are a sentence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.errors import Rejected
from memd.extraction.update import Evidence, NewFact, Update
from memd.memory.apply import Origin, apply
from memd.memory.categories import category_named
from memd.memory.document import Document, empty_document
from memd.memory.gates.uploads import is_upload_event
from memd.memory.hand import edits, notes
from memd.memory.hand.formats import read
from memd.memory.hand.imports import merge
from memd.recall.search import check

NOW = datetime(2026, 11, 20, tzinfo=UTC)
SETTINGS = ApplySettings()
EMPTY = empty_document(Bucket("ana"))


def stored(content: str, category: str, quote: str = "", document: Document = EMPTY) -> Document:
    """The document after a model's fact, which the user said in the same words."""
    fact = NewFact(content, category, 0.9, "user", "durable", "descriptive", (Evidence(0, quote or content),))
    turns = identify("t", [Message("user", quote or content, id="m")])
    return apply(document, Update(new_facts=(fact,)), turns, turns, Origin("t", NOW, "m", "1"), SETTINGS).document


@pytest.mark.parametrize(
    ("content", "category", "expected"),
    [
        ("The user plays the violin well", "skill", "knowledge"),
        ("The user runs every morning", "Habit", "behavior"),
        ("The user is 34 years old", "fact", "identity"),
        ("用户叫王小明", "fact", "identity"),
        ("The project uses pnpm", "fact", "context"),
        ("The user likes tea", "mood", "context"),
    ],
)
def test_aliases_count_at_every_door(content: str, category: str, expected: str) -> None:
    """The model, a person, an agent and an import; an unknown name is refused where somebody can mend it."""
    found = [stored(content, category)["facts"][0]["category"]]
    facts = [{"content": content, "category": category, "confidence": 0.9}]
    (parcel,) = read({"facts": facts}, "deerflow", "ana").parcels
    found.append(merge(EMPTY, parcel, "ana", NOW, SETTINGS).document["facts"][0]["category"])
    if category != "mood":
        doors: tuple[Any, ...] = (edits.add, notes.save)
        found += [door(EMPTY, content, category, NOW, SETTINGS).document["facts"][0]["category"] for door in doors]
    else:
        with pytest.raises(Rejected):
            edits.add(EMPTY, content, category, NOW, SETTINGS)
    assert set(found) == {expected}


def test_a_search_takes_aliases() -> None:
    """As the doors that store do."""
    assert check("tea", 5, categories=["skill", "preference"]).filters.categories == {
        "skill",
        "knowledge",
        "preference",
    }


@pytest.mark.parametrize(("content", "count"), [("用户吃素", 1), ("素食", 1), ("素", 0), ("veg", 0)])
def test_short_chinese_facts_pass(content: str, count: int) -> None:
    """One Chinese character is worth three letters."""
    assert len(stored(content, "preference", quote=f"{content}，我一直都这样")["facts"]) == count


def test_upload_events_of_a_document_go_with_the_next_update() -> None:
    """Facts to the archive, sentences of summaries altogether; a person's own fact stays."""
    held = [
        {"id": f"fact_0000000{n}", "content": "The user is uploading a PDF", "category": "context", "source": source}
        for n, source in enumerate(("t", "manual"))
    ]
    focus = {"summary": "Learns Go. The user uploaded a file called plan.pdf.", "updatedAt": "2026-01-01T00:00:00Z"}
    before = {**EMPTY, "facts": held, "user": {**EMPTY["user"], "topOfMind": focus}}

    after = stored("The user likes green tea", "preference", document=before)
    assert [fact["id"] for fact in after["facts"]][:1] == ["fact_00000001"]
    assert [(entry["id"], entry["archiveReason"]) for entry in after["archive"]] == [("fact_00000000", "expired")]
    assert after["user"]["topOfMind"]["summary"] == "Learns Go."


DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("row", [*map(json.loads, (DATA / "aliased_facts.jsonl").read_text("utf-8").splitlines())])
def test_the_alias_fact_means_identity_only_where_it_says_who_the_user_is(row: dict[str, str]) -> None:
    """Name, origin, home, work and family; not what the user is doing, plans or uses."""
    assert category_named("fact", SETTINGS.categories, row["content"]) == row["category"]


@pytest.mark.parametrize("row", [*map(json.loads, (DATA / "uploads.jsonl").read_text("utf-8").splitlines())])
def test_what_is_handed_to_the_assistant_is_an_upload(row: dict[str, str]) -> None:
    """What goes to somebody else, or is a habit, is something the user did."""
    assert is_upload_event(row["content"]) is (row["label"] == "drop")
