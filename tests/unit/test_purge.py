"""Removal reaches every copy: whatever a document or its folder holds of a removed fact goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec import to_builtins
from support import make_settings
from support.recall_support import document, fact, write
from support.stores import options

from memd.client import Memd
from memd.config import ApplySettings
from memd.context import Bucket, Message, identity_of_id
from memd.memory.document import SECTIONS, Document
from memd.memory.facts import QUOTE_GONE
from memd.memory.hand import edits
from memd.memory.hand.editing import Editing
from memd.memory.purge import NO_TEXT, TEXTS
from memd.memory.removed import turn_hashes
from memd.memory.said.changes import append
from memd.memory.said.removal import remove_turns
from memd.memory.said.taking import turn_hash, turns_of
from memd.memory.said.turns import Mark, Turn, decode, encode
from memd.memory.store.json_store import JsonStore
from memd.ops.audit import audit
from memd.recall.why import why, why_text

CANARY = "Zyxmoor77"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
SAID = f"User has a cabin in {CANARY}"


@pytest.fixture
def app(data_dir: Path) -> Memd:
    """A client whose server is never called."""
    return Memd(make_settings(data_dir, "unix:///nowhere/s"))


def full() -> Document:
    """A document with every field that a writer of memd makes, and the canary in each text of them."""
    everything: dict[str, Any] = {
        "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z", "source": "t",
        "scope": "session", "scopeId": "t",
        "lastConfirmedAt": "2026-01-01T00:00:00Z", "reviewedAt": "2026-01-01T00:00:00Z", "confirmations": 2,
        "validUntil": "2030-01-01T00:00:00Z", "origin": {"model": "m", "prompt": "p"},
        "evidence": [{"thread": "t", "message": "m", "quote": f"I have a cabin in {CANARY}"}],
    }  # fmt: skip
    of_others = {
        **everything,
        "sourceError": f"Assumed {CANARY}",
        "backstory": f"Said on the way to {CANARY}",
        "subject": {"person": "Bo", "relationship": "friend"},
    }
    archived: dict[str, Any] = {"archivedAt": "2026-02-01T00:00:00Z", "archiveNote": f"No cabin in {CANARY} any more"}
    said = f"Works as a nurse. Often drives to {CANARY} at weekends. Speaks Czech."
    summaries: dict[str, Any] = dict.fromkeys(SECTIONS, said)
    made = document(
        fact("fact_1", SAID, **everything),
        fact("fact_2", "User likes green tea", **of_others),
        fact("fact_4", f"User owns cabins in {CANARY} and Oslo", replaces=["fact_3", "fact_5"]),
        **summaries,
    )
    for name, section in SECTIONS.items():
        made[section][name]["versions"] = [{"summary": said, "updatedAt": "2025-12-01T00:00:00Z"}]
    made["archive"] = [
        fact("fact_1", f"User has a hut in {CANARY}", archiveReason="edited", **everything, **archived),
        fact("fact_6", "User drinks black tea", archiveReason="retired", archivedBy="agent", **of_others, **archived),
    ]
    wish = {"fact": "fact_2", "wanted": "retired", "why": "manual", "at": "2026-01-01T00:00:00Z", "source": "t"}
    made["withheld"] = [{**wish, "note": f"The cabin in {CANARY} was sold", "by": "fact_4", "proofs": ["i1"]}]
    made["doubtful"] = [
        fact(
            "fact_7",
            f"Anyone may use the cabin in {CANARY}",
            doubtfulAt="2026-02-01T00:00:00Z",
            doubtfulWhy="authority",
        )
        | of_others,
        fact("fact_8", "Never wants to be asked", doubtfulAt="2026-02-01T00:00:00Z", doubtfulWhy="authority"),
    ]
    why: dict[str, Any] = {"refusedAt": "2026-02-01T00:00:00Z", "refusedWhy": "low_confidence"}
    made["refused"] = [fact("fact_9", f"Sells the cabin in {CANARY}", **why) | of_others]
    made["ledger"] = {"t": ["i1"]}
    return made


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The path and the value of each text of a document."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from texts(entry, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for entry in value:
            yield from texts(entry, path)
    elif isinstance(value, str):
        yield path, value


def test_every_field_with_text_is_in_the_registry() -> None:
    """A new field must be added to `TEXTS`, or to `NO_TEXT` when it holds none."""
    paths = {path for path, _ in texts(full())}
    known = {*TEXTS, *NO_TEXT}
    assert {path for path in paths if not any(path == one or path.startswith(f"{one}.") for one in known)} == set()


def test_a_canary_in_every_copy_is_gone_after_the_removal(app: Memd, data_dir: Path) -> None:
    """Versions, quotes, asides, notes, all six summaries, merges, the previous version, and damaged files set aside."""
    made = full()
    made["archive"].append(fact("fact_1", SAID, archiveReason="merged", replacedBy="fact_4"))
    write(data_dir, made)
    app.edit_fact("ana", "fact_2", category="goal")
    folder = data_dir / "users" / "ana"
    (folder / "memory.json.corrupt-1").write_text(CANARY)
    assert CANARY in (folder / "memory.prev.json").read_text()

    app.remove_fact("ana", "fact_1")

    assert [file.name for file in folder.iterdir() if CANARY.lower() in file.read_text().lower()] == []
    left = app.document("ana")
    assert [one["content"] for one in left["facts"]] == ["User likes green tea"]
    assert {left[section][name]["summary"] for name, section in SECTIONS.items()} == {"Works as a nurse. Speaks Czech."}


@pytest.mark.parametrize("damage", [b"{", b""])
def test_damage_after_a_removal_brings_nothing_back(app: Memd, data_dir: Path, damage: bytes) -> None:
    """The last good version is a copy of the one without the fact, and it has the tombstone."""
    write(data_dir, full())
    app.edit_fact("ana", "fact_2", category="goal")
    app.remove_fact("ana", "fact_1")
    file = data_dir / "users" / "ana" / "memory.json"
    removed = app.document("ana")["removed"]
    file.write_bytes(damage + file.read_bytes()[1:])

    left = JsonStore(data_dir, options()).load(Bucket("ana")).document
    assert [one["id"] for one in left["facts"]] == ["fact_2", "fact_4"]
    assert left["removed"] == removed


def test_an_ordinary_edit_keeps_the_previous_version(app: Memd, data_dir: Path) -> None:
    """Only a removal replaces it."""
    fact_id = app.add_fact("ana", "Likes tea")
    app.edit_fact("ana", fact_id, content="Likes coffee")
    assert b"Likes tea" in (data_dir / "users" / "ana" / "memory.prev.json").read_bytes()
    previous = orjson.loads((data_dir / "users" / "ana" / "memory.prev.json").read_bytes())
    assert [one["content"] for one in previous["facts"]] == ["Likes tea"]


def test_the_merge_goes_with_a_source_and_the_sources_with_a_merge() -> None:
    """But not what another source of the merge said."""
    made = document(fact("m", "Likes tea and chess", replaces=["a", "b"]), fact("c", "Has a cat"))
    archived: dict[str, Any] = {"archiveReason": "merged", "replacedBy": "m"}
    made["archive"] = [fact("a", "Likes tea", **archived), fact("b", "Plays chess", **archived)]
    after = edits.remove(made, "a", NOW).document
    assert [one["id"] for one in (*after["facts"], *after["archive"])] == ["c", "b"]
    after = edits.remove(made, "m", NOW).document
    assert [one["id"] for one in (*after["facts"], *after["archive"])] == ["c"]


@pytest.mark.parametrize(
    ("removed", "sentence", "goes"),
    [
        ("Lives in Berlin", "Has a flat in Berlin.", True),
        ("Lives in Berlin", "Works as a nurse.", False),
        ("Lives in Berlin", "Lives with two cats.", False),
        ("Sister Ana was born in 1990", "The sister, Ana, is from 1990.", True),
        ("Sister Ana was born in 1990", "Plans a trip with Ana.", False),
        ("Sister Ana was born in 1990", "Was born in Lyon.", False),
        ("Allergic to peanuts", "Is allergic to peanuts and avoids nuts.", True),
        ("Allergic to peanuts", "Likes peanuts.", False),
        ("Weighs 82.5 kg", "Body weight is about 82.5 kg.", True),
        ("Weighs 82.5 kg", "Lifts 60 kg.", False),
        ("用户对花生过敏", "对花生过敏，随身带药。", True),
        ("用户对花生过敏", "喜欢喝绿茶。", False),
        ("用户住在北京", "住在北京。", True),
        ("用户住在北京", "在上海工作。", False),
        ("Works for Siemens", "Likes tea in the morning.", False),
    ],
)
def test_which_sentences_of_a_summary_go(removed: str, sentence: str, goes: bool) -> None:
    """Those that have all names and numbers of the fact, or most of its words; the others around them stay."""
    before, after = "Speaks Czech. ", " Studies law."
    made = document(fact("gone", removed), workContext=f"{before}{sentence}{after}")
    text = edits.remove(made, "gone", NOW).document["user"]["workContext"]["summary"]
    assert (sentence not in text) is goes
    assert text.startswith("Speaks Czech.")
    assert text.endswith("Studies law.")


def test_a_name_that_another_fact_has_takes_no_sentence_along() -> None:
    """What is still known of a name stays in the summaries."""
    facts = (fact("gone", "Hates the parks of Berlin"), fact("kept", "Lives in Berlin"))
    made = document(*facts, workContext="Lives in Berlin. Hates parks in Berlin.")
    text = edits.remove(made, "gone", NOW).document["user"]["workContext"]["summary"]
    assert text == "Lives in Berlin."


def test_a_fact_that_shares_the_quote_of_a_removed_one_stays_and_names_its_turn() -> None:
    """The quote goes, as it tells of the removed fact; `memd why` and the audit say so, and a removal finds the turn.

    Active, archived and scoped facts alike; a quote that does not overlap stays.
    """
    both = {"thread": "t", "message": "m", "quote": "I am a nurse in Porto"}
    other = {"thread": "t", "message": "n", "quote": "Nurses earn little"}
    made = document(
        fact("a", "User lives in Porto", evidence=[both]),
        fact("b", "User works as a nurse", evidence=[both]),
        fact("c", "User is a nurse who earns little", evidence=[both, other]),
    )
    made["archive"] = [fact("d", "User trains as a nurse", archiveReason="retired", evidence=[both])]
    made["scoped"] = [fact("e", "User is on night shift", scope="session", scopeId="t", evidence=[both])]
    left = edits.remove(made, "a", NOW).document
    kept = [*left["facts"], *left["archive"], *left["scoped"]]
    turn = identity_of_id("t", "m")
    assert [(one["id"], one["evidence"], one["provenBy"]) for one in kept] == [
        ("b", [], [turn]), ("c", [other], [turn]), ("d", [], [turn]), ("e", [], [turn]),
    ]  # fmt: skip
    assert f"no quote proves it: {QUOTE_GONE}" in why_text(why(left, "b"))
    found = [one for one in audit(left, NOW, ApplySettings()) if one.rule == "unevidenced" and one.fact_id == "b"]
    assert [one.detail for one in found] == [f"no quote: {QUOTE_GONE}"]
    assert turn_hash(turn) in turn_hashes(edits.remove(left, "b", NOW).document)


# --- what was said ---------------------------------------------------------------------------------------------------

TURNS = [
    Turn("i1", "t", "user", f"We bought a cabin in {CANARY}", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    Turn("i2", "t", "assistant", f"A cabin in {CANARY}, how nice."),
    Turn("i3", "t", "user", "Yes, at last."),
    Turn("i4", "t", "user", "I work as a nurse."),
]


def told(data_dir: Path, agent: str = "") -> JsonStore:
    """A memory with the full document, and a said layer with the canary; the third turn only confirmed it."""
    store, bucket = JsonStore(data_dir, options()), Bucket("ana", agent)
    made = full() | {"agentName": agent}
    made["facts"][0]["provenBy"] = ["i1", "i3"]
    loaded = store.load(bucket)
    store.commit(bucket, loaded, {**loaded.document, **made, "revision": 1}, lambda: True, said=append(TURNS))
    return store


def said_by(store: JsonStore, agent: str = "") -> list[str]:
    """The identities of the turns in a memory's layer."""
    bucket = Bucket("ana", agent)
    return [turn.id for turn in store.read_said(bucket, store.load(bucket).document).turns]


def test_every_field_of_a_turn_is_in_the_registry() -> None:
    """Those of marks too."""
    turn = to_builtins(Turn("i", "t", "user", "x", "s", "a", "n", ((0, 1),), 1))
    paths = {path for path, _ in texts({"turns": [turn], "marks": [to_builtins(Mark("i", "over", "w", "a"))]})}
    assert paths <= {*TEXTS, *NO_TEXT}


def test_a_removal_takes_what_was_said_in_all_memories_of_the_user(app: Memd, data_dir: Path) -> None:
    """The turns that proved or confirmed the fact, and in every memory those of both roles with its names."""
    store = told(data_dir)
    told(data_dir, "chef")
    editing = Editing(app.settings)
    listed = editing.remove(Bucket("ana"), "fact_1", dry_run=True).turns
    assert [(agent, turn.id) for agent, turn in listed] == [
        ("chef", "i1"), ("chef", "i2"), ("chef", "i3"), ("", "i1"), ("", "i2"), ("", "i3"),
    ]  # fmt: skip
    assert said_by(store) == said_by(store, "chef") == ["i1", "i2", "i3", "i4"]

    assert editing.remove(Bucket("ana"), "fact_1").turns == listed
    assert said_by(store) == said_by(store, "chef") == ["i4"]
    assert not any(CANARY in path.read_text() for path in data_dir.rglob("said-*"))
    for agent in ("", "chef"):
        document = store.load(Bucket("ana", agent)).document
        assert {turn_hash(name) for name in ("i1", "i2", "i3")} <= turn_hashes(document)
    assert [one["id"] for one in app.facts("ana", "chef")] == ["fact_1", "fact_2", "fact_4"]


def test_what_was_removed_is_not_kept_again_under_another_identity(app: Memd, data_dir: Path) -> None:
    """Neither its sentence nor the quote, whatever stands beside it; the other words of its turn and a bare yes are."""
    store = told(data_dir)
    Editing(app.settings).remove(Bucket("ana"), "fact_1")
    removed = turn_hashes(store.load(Bucket("ana")).document)
    again = [
        f"We bought a cabin in {CANARY}.",
        f"As I said: hello!\nwe bought a CABIN in {CANARY.lower()}  ",
        "Yes, at last.",
        "I work as a nurse.",
    ]
    kept = turns_of([Message("user", text, identity=f"n{place}") for place, text in enumerate(again)], "t", removed)
    assert [turn.text for turn in kept] == again[2:]


@pytest.mark.parametrize(
    ("content", "text", "goes"),
    [
        ("User is allergic to peanuts", "I have been allergic to peanuts since I was five.", True),
        ("User is allergic to peanuts", "My sister is allergic to cats.", False),
        ("用户喜欢绿茶", "我一直喜欢绿茶。", True),
        ("用户喜欢绿茶", "我喜欢跑步。", False),
        ("User lives in Berlin since 2019", "I moved to Berlin in 2021", False),
        ("User lives in Berlin since 2019", "2019 was the year of Berlin", True),
    ],
)
def test_which_turns_say_the_same(content: str, text: str, goes: bool) -> None:
    """All names and numbers, or, without any, most of the words."""
    said = decode(encode([Turn("i1", "t", "user", text)]))
    assert bool(remove_turns(said, [fact("fact_1", content)]).turns) is goes
