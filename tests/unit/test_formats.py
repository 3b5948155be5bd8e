"""What other systems wrote comes in past the gates: files that their packages made, and hostile ones."""

from __future__ import annotations

import json
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support import make_settings

from memd.client import Memd
from memd.disk.files import MAX_BYTES
from memd.errors import InboxUnavailable, Rejected
from memd.memory.hand.formats import FORMATS, ImportContents, read, read_path
from memd.memory.hand.formats.bundles import MAX_FILES
from memd.memory.hand.formats.parcels import MAX_FACTS

DATA = Path(__file__).parents[1] / "data" / "imports"


@pytest.fixture
def app(data_dir: Path) -> Memd:
    """A client whose server nobody asks."""
    return Memd(make_settings(data_dir, "unix:///nowhere/s"))


def contents(app: Memd, user: str = "ana", agent: str = "") -> list[str]:
    """What is remembered of a user."""
    return [fact["content"] for fact in app.facts(user, agent)]


def given(name: str, user: str = "ana", form: str = "auto") -> ImportContents:
    """The contents of one of the files."""
    return read(read_path(DATA / name), form, user)


@pytest.mark.parametrize(
    ("name", "form", "facts", "refused"),
    [
        (
            "langgraph_items.json", "langgraph",
            ["User is allergic to peanuts", "用户喜欢绿茶", "Works as a nurse in Lisbon", "name: Ana",
             "languages: Portuguese, German", "age: 34"],
            {"no_text": 1, "other_namespace": 1},
        ),
        ("langgraph_rows.json", "langgraph", ["Rides a red bicycle to work", "对猫毛过敏"], {}),
        (
            "redis_memories.json", "redis",
            ["User prefers window seats on long flights", "User moved from Porto to Lisbon in January 2026",
             "用户对花生过敏"],
            {"conversation_message": 1, "other_user": 1},
        ),
        (
            "memobase_profiles.json", "memobase",
            ["basic info, name: Ana", "interest, foods: likes ramen and sushi", "兴趣, 运动: 喜欢打羽毛球",
             "work, title: nurse at the Santa Maria hospital"],
            {},
        ),
        (
            "memobase_nested.json", "memobase",
            ["basic info, name: Ana", "interest, foods: likes ramen and sushi", "兴趣, 运动: 喜欢打羽毛球",
             "work, title: nurse at the Santa Maria hospital"],
            {},
        ),
        (
            "memobase_events.json", "memobase",
            ["User moved to Lisbon [mention 2026/01/05]", "User adopted a cat named Miso [mention 2026/01/05]"], {},
        ),
        (
            "deerflow_gateway.json", "deerflow",
            ["User is allergic to peanuts", "用户喜欢绿茶， 不喝咖啡", 'Use pnpm, not npm: "npm" breaks the lock file',
             "Plays the cello"],
            {"low_confidence": 1},
        ),
    ],
)  # fmt: skip
def test_what_the_packages_wrote_comes_in_once(
    app: Memd, name: str, form: str, facts: list[str], refused: dict[str, int]
) -> None:
    """Recognised, gated, with its times; a second import changes nothing; an export of it comes back the same."""
    value = read_path(DATA / name)
    found = app.import_memory("ana", value)
    (memory,) = found.memories
    assert (found.format, contents(app), memory.refused) == (form, facts, refused)
    assert {fact["origin"]["importedFrom"] for fact in app.facts("ana")} == {form}
    assert not any(fact.get("evidence") for fact in app.facts("ana"))
    again = app.import_memory("ana", value).memories[0]
    assert (again.added, again.known, again.changed) == ((), len(facts), False)
    app.import_memory("bea", app.export("ana"))
    assert app.facts("bea") == app.facts("ana")


def test_fields_keep_their_meaning(app: Memd) -> None:
    """Times, threads, categories and confidences of the other system, where memd has a place for them."""
    app.import_memory("ana", read_path(DATA / "redis_memories.json"))
    seats, move, _ = app.facts("ana")
    assert (seats["createdAt"], seats["source"], seats["category"]) == ("2026-03-01T09:30:00.000Z", "trip-7", "context")
    assert move["category"] == "event"
    app.import_memory("bea", read_path(DATA / "deerflow_gateway.json"))
    peanuts, _, pnpm, cello = app.facts("bea")
    assert (peanuts["id"], peanuts["category"], peanuts["source"]) == ("fact_00000001", "constraint", "thread-1")
    assert (pnpm["sourceError"], cello["source"], cello["category"]) == ("used npm", "manual", "context")
    summaries = app.document("bea")["user"]
    assert [summaries[name]["summary"] for name in ("workContext", "topOfMind")] == [
        "Nurse at a hospital in Lisbon.", "在准备葡萄牙语考试。",
    ]  # fmt: skip


@pytest.mark.parametrize("place", ["deerflow", "deerflow/users/ana", "zip"])
def test_a_folder_of_fact_files_is_a_memory_for_each_agent(app: Memd, tmp_path: Path, place: str) -> None:
    """DeerFlow's folder, the whole data folder or an archive of it: the same memory as its gateway exports."""
    path = DATA / place
    if place == "zip":
        path = tmp_path / "deerflow.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted((DATA / "deerflow").rglob("*.*")):
                archive.write(file, file.relative_to(DATA))
    found = app.import_memory("ana", read_path(path))
    assert [memory.agent_name for memory in found.memories] == ["", "researcher"]
    assert contents(app, agent="researcher") == ["Wants citations in APA style"]
    app.import_memory("bea", read_path(DATA / "deerflow_gateway.json"))
    assert sorted(contents(app)) == sorted(contents(app, "bea"))
    assert app.document("ana")["user"] == app.document("bea")["user"]
    (page,) = (DATA / "deerflow").rglob("fact_00000002.md")
    assert app.import_memory("ana", read_path(page)).memories[0].known == 1


def test_a_page_says_that_it_is_one() -> None:
    """mem0, LangGraph, Redis and memobase answer in pages or cut what they return, and say it at most in a number."""
    assert "higher top_k" in given("mem0_page.json").notes[0]
    assert given("mem0_all.json").notes == ()
    assert len(given("mem0_all.json").parcels[0].facts) == 23
    page = {"count": 57, "next": "page=2", "previous": None, "results": [{"memory": "Likes cricket"}]}
    assert "1 of 57 memories" in read(page, "auto", "ana").notes[0]
    items = [{"namespace": ["a"], "key": str(n), "value": {"text": f"Fact {n}"}} for n in range(10)]
    assert "higher limit" in read(items, "auto", "ana").notes[0]
    redis = json.loads((DATA / "redis_memories.json").read_text(encoding="utf-8"))
    assert "5 of 80 memories" in read({**redis, "total": 80, "next_offset": 5}, "auto", "ana").notes[0]
    assert "max_token_size" in given("memobase_profiles.json").notes[0]


@pytest.mark.parametrize(("owners", "said"), [(["bob", "bob"], True), (["ana"], False), ([None], False)])
def test_a_name_that_may_be_mistyped_is_told(owners: list[str | None], said: bool) -> None:
    """Memories of one user who is called otherwise come in, with a sentence that says so."""
    items = [{"id": "1", "memory": "Owns a boat.", "user_id": owner} for owner in owners]
    notes = read(items, "mem0", "ana").notes
    assert any("not the one that you name" in note for note in notes) is said


def test_nobody_gets_what_is_somebody_elses() -> None:
    """Several users in one file: only what names this one, or nothing and a sentence that says so."""
    bob = given("langgraph_items.json", "bob").parcels[0]
    assert [fact["content"] for fact in bob.facts] == ["Plays chess on Sundays"]
    page = next((DATA / "deerflow").rglob("fact_00000001.md")).read_text(encoding="utf-8")
    two = {"agents/a/facts/1.md": page, "agents/a/facts/2.md": page.replace("user_id: ana", "user_id: bob")}
    folders = {f"users/{name}/agents/a/facts/{name}.md": page for name in ("ana", "bob")}
    memories = [{"conversations_memory": "x", "account_uuid": name} for name in ("a", "b")]
    for value, user in (
        (read_path(DATA / "langgraph_items.json"), "nobody"), ({"files": two}, "ana"), ({"files": folders}, "ana"),
        ({"files": {"memories.json": memories}}, "ana"),
    ):  # fmt: skip
        with pytest.raises(Rejected) as refused:
            read(value, "auto", user)
        assert refused.value.code == "E_IMPORT_OWNER"


@pytest.mark.parametrize("form", ["file", "folder"])
def test_chatgpt(form: str) -> None:
    """The newest list of what it remembered, and what it noted later; the shown branch of each conversation."""
    found = given("chatgpt" if form == "folder" else "chatgpt/conversations.json")
    (parcel,) = found.parcels
    assert found.format == "chatgpt"
    assert [(fact["content"], fact["createdAt"]) for fact in parcel.facts] == [
        ("Lives in Lisbon.", "2025-05-01"), ("用户对花生过敏。", "2025-06-11"),
        ("Works as a nurse at Santa Maria hospital.", "2025-07-02"),
        ("Has a cat named Miso.", "2026-01-01T00:06:39Z"),
    ]  # fmt: skip
    assert +parcel.refused == {"custom_instructions": 1, "taken_back": 1, "no_conversation": 1}
    assert "memd profile set" in found.notes[0]
    tea, move = found.threads
    assert tea.thread_id == "chatgpt:6775a000-0000-4000-8000-000000000001"
    assert [(message["role"], message["content"], message["id"]) for message in tea.messages] == [
        ("user", "I drink green tea every morning. What goes with it?", "u1"), ("assistant", "Plain biscuits.", "a1b"),
        ("user", "My cat is called Miso.", "u2"), ("assistant", "Noted.", "a2"),
    ]  # fmt: skip
    assert [message["content"] for message in move.messages] == ["我上个月搬到了里斯本。", "好的。"]
    assert move.messages[0]["created_at"].startswith("2025-06-15T15:06:41")


def test_claude(app: Memd) -> None:
    """Its memory becomes the summaries and facts, its conversations threads; orders among the facts stay out."""
    found = given("claude")
    (parcel,) = found.parcels
    assert (found.format, len(found.threads)) == ("claude", 1)
    assert {name: entry["summary"] for name, entry in parcel.summaries.items()} == {
        "workContext": "Ana is a nurse at Santa Maria hospital in Lisbon.",
        "personalContext": "安娜住在里斯本，养了一只猫。",
        "topOfMind": "Ana prepares for a Portuguese exam.",
        "recentMonths": "Ana moved from Porto.",
        "earlierContext": "Ana studied in Coimbra.",
    }
    assert +parcel.refused == {"project_memory": 1, "no_conversation": 1}
    assert [(message["role"], message["content"]) for message in found.threads[0].messages] == [
        ("user", "I keep three orchids on my balcony."), ("assistant", "Lovely."), ("user", "我对猫毛过敏。"),
    ]  # fmt: skip
    memory = app.import_memory("ana", read_path(DATA / "claude/memories.json")).memories[0]
    assert contents(app) == ["Birthday is on 17 March", "Keeps three orchids", "喜欢园艺", "Rui: Lives in Braga"]
    assert (memory.summaries, memory.refused["instruction"]) == (5, 1)
    long = {"conversations_memory": "**Work context**\n\n" + "\n\n".join(["A sentence of some length. " * 20] * 5)}
    parcel = read([long], "auto", "ana").parcels[0]
    assert len(parcel.summaries["workContext"]["summary"]) < 1_500
    assert +parcel.refused == {"summary_shortened": 1}


def test_without_the_server_nothing_is_imported_or_only_the_memory(app: Memd) -> None:
    """The conversations go first, so that nothing comes in by halves; without them no server is asked."""
    value = read_path(DATA / "claude")
    with pytest.raises(InboxUnavailable):
        app.import_memory("ana", value)
    assert contents(app) == []
    found = app.import_memory("ana", value, conversations=False)
    assert (found.threads, len(contents(app))) == (0, 4)


def test_conversations_are_pushed_once(memd: Memd) -> None:
    """A dry run counts them; the second import of the same file finds every message pending already."""
    value = read_path(DATA / "chatgpt")
    would = memd.import_memory("ana", value, dry_run=True)
    assert (would.threads, would.messages, would.tokens > 20) == (2, 6, True)
    assert memd.pending(user_id="ana").keys == ()
    for _ in range(2):
        assert memd.import_memory("ana", value, agent_name="coach").threads == 2
        keys = memd.pending(user_id="ana").keys
        assert sorted((key.agent_name, key.turns) for key in keys) == [("coach", 2), ("coach", 4)]


def test_a_long_conversation_is_pushed_in_parts(memd: Memd) -> None:
    """More messages than a push may have, and one longer than a message may be: none is left out."""
    texts = [f"Message number {number}" for number in range(1_200)] + ["long " * 40_000]
    messages = [{"uuid": f"m{n}", "sender": "human", "text": text, "content": []} for n, text in enumerate(texts)]
    found = memd.import_memory("ana", [{"uuid": "c1", "chat_messages": messages}])
    (key,) = memd.pending(user_id="ana").keys
    assert (found.messages, key.turns) == (1_201, 1_201)


@pytest.mark.parametrize(
    ("name", "raw", "code"),
    [
        ("x.json", b" " * (MAX_BYTES + 1), "E_IMPORT_SIZE"),
        ("x.json", b"[" * 100_000, "E_IMPORT_JSON"),
        ("x.json", b"[" * 600 + b"]" * 600, "E_IMPORT_JSON"),
        ("x.json", b'{"facts": [{"content": "\xff\xfe"}]}', "E_IMPORT_JSON"),
        ("x.json", b"", "E_IMPORT_JSON"),
        ("x.json", b'"PK"', "E_IMPORT_FORMAT"),
        ("x.json", b'[{"namespace": 7, "value": {}}]', "E_IMPORT_SHAPE"),
        ("x.json", b'[{"mapping": {}}, 7]', "E_IMPORT_SHAPE"),
        ("x.json", b'{"profiles": [{"attributes": {}}, null]}', "E_IMPORT_SHAPE"),
        ("x.md", b"no front matter", "E_IMPORT_SHAPE"),
        ("x.md", b"---\nid: a\n---\n\n# Title\n", "E_IMPORT_SHAPE"),
        ("x.md", b"---\n\xff\n---\n\n# T\n\nA fact\n", "E_IMPORT_UTF8"),
        ("x.md", b"---\n" + b"[" * 5_000 + b"\n---\nA fact\n", "E_IMPORT_YAML"),
        ("x.md", b"---\n" + b"a: b\n" * 5_000 + b"\n---\nA fact\n", "E_IMPORT_SHAPE"),
        ("x.md", b"---\n- a\n---\nA fact\n", "E_IMPORT_SHAPE"),
        ("x.zip", b"PK\x03\x04 and nothing else", "E_IMPORT_ZIP"),
    ],
)
def test_what_is_broken_is_one_sentence(tmp_path: Path, name: str, raw: bytes, code: str) -> None:
    """Size, nesting, bytes that are no text, wrong types: a code, and no word of the file."""
    file = tmp_path / name
    file.write_bytes(raw)
    with pytest.raises(Rejected) as refused:
        read(read_path(file), "auto", "ana")
    assert refused.value.code == code


def test_bounds_hold_before_anything_is_read(tmp_path: Path) -> None:
    """An archive that grows, too many files, links out of the folder, a pipe, too many facts, an endless path."""
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.json", b" " * (MAX_BYTES // 2))
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.joinpath("memory.json").symlink_to(DATA / "deerflow_gateway.json")
    assert read_path(folder) == {"files": {}}
    for value, code in (
        (lambda: read_path(bomb), "E_IMPORT_JSON"),
        (lambda: read_path(Path("/dev/zero")), "E_IMPORT_SIZE"),
        (lambda: [{"memory": "x"}] * (MAX_FACTS + 1), "E_IMPORT_FACTS"),
        (lambda: {"files": dict.fromkeys(map(str, range(MAX_FILES + 1)), "")}, "E_IMPORT_FILES"),
        (lambda: {"files": {"agents/a/facts/" * 100_000: ""}}, "E_IMPORT_FILES"),
    ):
        with pytest.raises(Rejected) as refused:
            read(value(), "auto", "ana")
        assert refused.value.code == code


WRONG: list[Any] = [None, True, 7, 0.5, "text", [], [[]], [None], {}, {"a": None}, [{"b": [1]}], {"c": {"d": {}}}]


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if path.name != "README.md"))
def test_any_field_of_the_wrong_type_is_read_or_refused(name: str) -> None:
    """Each value of each file in turn becomes something else: parcels or a code come of it, never another error."""
    value = read_path(DATA / name)
    form = read(value, "auto", "ana").format
    for number, place in enumerate(_places(value)):
        for wrong in (WRONG[number % len(WRONG)], WRONG[(number * 7 + 3) % len(WRONG)]):
            for asked in (form, "auto"):
                with suppress(Rejected):
                    read(_with(value, place, wrong), asked, "ana")
    for wrong in WRONG:
        files = {"files": dict.fromkeys(("memory.json", "conversations.json", "memories.json"), wrong)}
        for asked in FORMATS:
            for hostile in (files, wrong):
                with suppress(Rejected):
                    read(hostile, asked, "ana")


def _places(value: Any) -> list[tuple[Any, ...]]:
    """The paths to all values."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for name, inner in entries for path in ((name,), *((name, *rest) for rest in _places(inner)))]


def _with(value: Any, place: tuple[Any, ...], wrong: Any) -> Any:
    """The value with something else at this place."""
    if not place:
        return wrong
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[place[0]] = _with(value[place[0]], place[1:], wrong)
    return copied


def test_hostile_text_costs_bounded_time() -> None:
    """A megabyte that invites a regex to start over at each character is read in a moment of processor time."""
    for text in (" " * 10**6, "\ue200" * 10**6, "1. [" * 250_000, "**" * 500_000, "- [" * 300_000, "\n" * 10**6):
        content = {"content_type": "text", "parts": [text + "x"]}
        asked = {"id": "u", "author": {"role": "user"}, "content": content}
        listed = {"content": {"content_type": "model_editable_context", "model_set_context": text}, "author": {}}
        nodes = {"a": {"message": asked, "parent": "b"}, "b": {"message": listed, "parent": None}}
        began = time.process_time()
        read([{"mapping": nodes, "current_node": "a", "conversation_id": "c"}], "auto", "ana")
        read([{"conversations_memory": text, "memory_files": [{"path": "people/", "content": text}]}], "auto", "ana")
        assert time.process_time() - began < 10
