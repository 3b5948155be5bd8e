"""The said layer: its lines, and its file, which changes inside the commit of its document."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from support import make_settings, wait_for
from support.stores import ALICE, options, ours

from memd.config import SaidSettings
from memd.context import Message
from memd.errors import ClaimLost, Conflict
from memd.inbox import rounds
from memd.inbox.connection import send
from memd.inbox.verbs import P
from memd.memory.document import SaidFile, said_file_of
from memd.memory.said.changes import Append, Rewrite, SaidChange, append, rewrite
from memd.memory.said.excerpts import GATES_VERSION
from memd.memory.said.taking import took_in, turn_hash, turns_of
from memd.memory.said.turns import NOTHING_SAID, Mark, Said, Turn, decode, encode, line_of, without
from memd.memory.store.json_store import JsonStore
from memd.memory.store.said_reader import read_said
from memd.push.times import iso
from memd.scheduler.upkeep import Upkeep

FULL = Turn(
    "i1", "t", "user", "I live in Lisbon", "2026-11-01T10:00:00.000Z", "2026-11-01T10:00:05.000Z", "ana", ((0, 16),), 3
)


def turn(number: int, thread: str = "t", text: str = "") -> Turn:
    """A turn of a thread; the odd ones are the assistant's."""
    return Turn(
        f"i{number}",
        thread,
        "assistant" if number % 2 else "user",
        text or f"turn {number}",
        at=f"2026-01-{number + 1:02}",
    )


def commit(store: JsonStore, said: SaidChange | None) -> None:
    """Commit a change of the layer."""
    loaded = store.load(ALICE)
    store.commit(ALICE, loaded, {**loaded.document, "revision": loaded.revision + 1}, ours, said=said)


def texts(store: JsonStore) -> list[str]:
    """The texts of the layer as it is read."""
    return [turn.text for turn in layer(store).turns]


def layer(store: JsonStore) -> Said:
    """The layer as it is read."""
    return store.read_said(ALICE, store.load(ALICE).document)


@pytest.fixture
def store(tmp_path: Path) -> JsonStore:
    """A store in an empty data folder."""
    return JsonStore(tmp_path / "data", options())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where Alice's files are."""
    return tmp_path / "data" / "users" / ALICE.user_id


def files_of(folder: Path) -> list[Path]:
    """The files of the layer."""
    return sorted(folder.glob("said-*"))


# --- lines -----------------------------------------------------------------------------------------------------------


def test_a_line_has_camel_case_fields_and_leaves_defaults_out() -> None:
    """The format that readers of other languages see."""
    assert line_of(FULL) == (
        b'{"id":"i1","thread":"t","role":"user","text":"I live in Lisbon","saidAt":"2026-11-01T10:00:00.000Z",'
        b'"at":"2026-11-01T10:00:05.000Z","name":"ana","excerpts":[[0,16]],"gates":3}\n'
    )
    assert line_of(turn(0)) == b'{"id":"i0","thread":"t","role":"user","text":"turn 0","at":"2026-01-01"}\n'
    assert line_of(Mark("i1", "over", "replaced")) == b'{"mark":"i1","as":"over","why":"replaced"}\n'


def test_what_is_encoded_is_decoded() -> None:
    """With marks, in any order, and whatever characters a text has."""
    odd = turn(2, text='"\\\n\r\u2028\x0b茶')
    said = decode(encode([FULL, Mark("i1", "hidden", "hide"), odd, Mark("i2", "over", at="2026-02-01")]))
    assert said.turns == (FULL, odd)
    assert (said.hidden, dict(said.over), said.damaged) == (frozenset({"i1"}), {"i2": "2026-02-01"}, 0)


def test_lines_that_cannot_be_read_are_skipped_and_counted() -> None:
    """A torn end, rubbish, and a line that lacks a field."""
    whole = line_of(FULL)
    said = decode(whole + b"\x00\x00\n{}\n[]\n\xff\n" + whole[:-9])
    assert (said.turns, said.damaged) == ((FULL,), 5)


def test_fields_of_later_versions_are_carried() -> None:
    """A rewrite keeps the lines that stay byte for byte."""
    later = line_of(FULL).replace(b"}\n", b',"mood":"good"}\n')
    kept = rewrite(without(decode(later + line_of(turn(2))), ["i2"]))
    assert (kept.lines, kept.turns, kept.since) == (later, 1, FULL.at)


def test_the_turns_around_one_are_those_of_its_thread() -> None:
    """Threads are mixed in the file, as they came in."""
    said = decode(encode([turn(0), turn(9, "u"), turn(1), turn(2), turn(3)]))
    assert [one.id for one in said.before("i2", 1)] == ["i1"]
    assert [one.id for one in said.before("i2", 5)] == ["i0", "i1"]
    assert [one.id for one in said.after("i1", 9)] == ["i2", "i3"]
    assert [one.id for one in said.of_thread("u")] == ["i9"]
    assert (said.before("i9", 2), said.after("i7", 2), said.of_thread("x")) == ((), (), ())
    assert not NOTHING_SAID


def test_marks_go_with_their_turns() -> None:
    """A rewrite keeps no mark about a turn that is gone."""
    said = decode(encode([turn(0), turn(1), Mark("i0", "hidden"), Mark("i1", "over"), Mark("i5", "over")]))
    left = decode(rewrite(without(said, ["i0"])).lines)
    assert ([one.id for one in left.turns], left.hidden, set(left.over)) == (["i1"], frozenset(), {"i1"})


def test_without_anything_to_add_there_is_no_change() -> None:
    """A commit then leaves the file alone."""
    assert append(()) is None
    assert without(NOTHING_SAID, ["i1"]) is NOTHING_SAID


# --- the file --------------------------------------------------------------------------------------------------------


def test_appended_turns_are_read_back(store: JsonStore, folder: Path) -> None:
    """One file, which only grows; the document says how far it counts."""
    commit(store, append([turn(0), turn(1)]))
    (file,) = files_of(folder)
    assert file.stat().st_mode & 0o777 == 0o600
    commit(store, None)
    commit(store, append([turn(2)], [Mark("i0", "over")]))
    assert files_of(folder) == [file]
    assert texts(store) == ["turn 0", "turn 1", "turn 2"]
    assert layer(store).over == {"i0": ""}
    assert said_file_of(store.load(ALICE).document) == SaidFile(file.name, file.stat().st_size, 3, "2026-01-01")


def test_a_refused_commit_adds_nothing(store: JsonStore) -> None:
    """The claim was lost, or another writer was faster."""
    commit(store, append([turn(0)]))
    stale = store.load(ALICE)
    commit(store, append([turn(1)]))
    with pytest.raises(Conflict):
        store.commit(ALICE, stale, stale.document, ours, said=append([turn(2)]))
    newer = store.load(ALICE)
    with pytest.raises(ClaimLost):
        store.commit(ALICE, newer, newer.document, lambda: False, said=append([turn(2)]))
    assert texts(store) == ["turn 0", "turn 1"]


def test_what_a_killed_commit_left_is_cut_off(store: JsonStore, folder: Path) -> None:
    """Bytes after the end are not read, and the next append takes their place."""
    commit(store, append([turn(0)]))
    (file,) = files_of(folder)
    with file.open("ab") as left:
        left.write(line_of(turn(1)) * 3)
    assert texts(store) == ["turn 0"]
    commit(store, append([turn(2)]))
    assert texts(store) == ["turn 0", "turn 2"]
    assert file.read_bytes() == encode([turn(0), turn(2)])


def test_a_tail_lost_in_a_power_cut_costs_those_lines(store: JsonStore, folder: Path) -> None:
    """The file is shorter than the document says, and ends within a line."""
    commit(store, append([turn(0), turn(1)]))
    (file,) = files_of(folder)
    os.truncate(file, file.stat().st_size - 5)
    assert texts(store) == ["turn 0"]
    commit(store, append([turn(2)]))
    assert texts(store) == ["turn 0", "turn 2"]


def test_a_rewrite_makes_a_new_file_and_removes_the_old(store: JsonStore, folder: Path) -> None:
    """Without any line no file is left."""
    commit(store, append([turn(0), turn(1)]))
    (old,) = files_of(folder)
    (folder / "said-0123456789abcdef.jsonl").write_text("left by a crash")
    commit(store, rewrite(without(layer(store), ["i0"])))
    (new,) = files_of(folder)
    assert new != old
    assert texts(store) == ["turn 1"]
    commit(store, rewrite(NOTHING_SAID))
    assert files_of(folder) == []
    assert "said" not in store.load(ALICE).document


def test_a_reader_of_the_older_document_gets_the_newer_layer(store: JsonStore) -> None:
    """The file that its document names was replaced since."""
    commit(store, append([turn(0), turn(1)]))
    older = store.load(ALICE).document
    commit(store, rewrite(without(layer(store), ["i0"])))
    assert [one.id for one in store.read_said(ALICE, older).turns] == ["i1"]


@pytest.mark.parametrize("damage", ["gone", "link", "second name", "pipe", "folder"])
def test_a_file_that_is_none_is_read_as_empty_and_begun_anew(store: JsonStore, folder: Path, damage: str) -> None:
    """What is behind a link is not the store's; nothing is written there."""
    commit(store, append([turn(0)]))
    (file,) = files_of(folder)
    other = folder / "other"
    file.rename(other)
    if damage == "link":
        file.symlink_to(other)
    elif damage == "second name":
        os.link(other, file)
    elif damage == "pipe":
        os.mkfifo(file)
    elif damage == "folder":
        file.mkdir()
    assert texts(store) == []
    commit(store, append([turn(1)]))
    assert texts(store) == ["turn 1"]
    assert not os.path.lexists(file)
    assert other.read_bytes() == line_of(turn(0))


@pytest.mark.parametrize("name", ["../memory.json", "said-1.jsonl", "", None, 7])
def test_a_document_names_only_a_said_file_of_its_folder(store: JsonStore, name: object) -> None:
    """Edited by hand, the field reads as absent."""
    document = {**store.load(ALICE).document, "said": {"file": name, "bytes": 10}}
    assert said_file_of(document).file == ""
    assert store.read_said(ALICE, document) is not None


# --- bounds and days -------------------------------------------------------------------------------------------------

LIMITS = SaidSettings(max_turns=20, max_bytes=16_384)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def many(count: int, first: int = 0, text: str = "x") -> list[Turn]:
    """Turns of two threads, all of the day before."""
    return [
        Turn(f"n{number}", "tu"[number % 2], "user", text, at="2026-02-28T00:00:00Z")
        for number in range(first, first + count)
    ]


@pytest.mark.parametrize(("held", "new", "text", "kept"), [(18, 3, "x", 15), (0, 25, "x", 15), (5, 2, "x" * 2600, 4)])
def test_the_oldest_go_down_to_three_quarters(held: int, new: int, text: str, kept: int) -> None:
    """Whatever their thread; the layer is read only then."""
    old = decode(encode([*many(held, text=text), Mark("n0", "over"), Mark("n17", "over")]))
    file = SaidFile("f", len(encode(old.turns)), held)
    change = took_in(file, lambda: old, many(new, held, text), LIMITS, NOW)
    assert isinstance(change, Rewrite)
    left = decode(change.lines)
    assert [turn.id for turn in left.turns] == [f"n{number}" for number in range(held + new - kept, held + new)]
    assert set(left.over) <= {turn.id for turn in left.turns}
    assert (change.turns, len(change.lines) <= LIMITS.max_bytes) == (kept, True)


def test_up_to_the_bounds_nothing_is_read() -> None:
    """An append knows the size of the layer from its document."""
    change = took_in(SaidFile("f", 100, 17), lambda: pytest.fail("read"), many(3), LIMITS, NOW)
    assert isinstance(change, Append)
    assert change.turns == 3


def test_a_removed_turn_is_not_taken_in_again() -> None:
    """The document keeps its hash."""
    messages = [Message("user", "a", identity="i1"), Message("user", "b", identity="i2", name="Bo")]
    kept = turns_of(messages, "t", {turn_hash("i1")})
    assert kept == [Turn("i2", "t", "user", "b", name="Bo")]


def test_turns_past_their_days_are_not_shown(store: JsonStore, tmp_path: Path) -> None:
    """Whether or not they are removed from the disk by now; what came at an unknown time stays."""
    old, unknown, young = (Turn(name, "t", "user", name, at=at) for name, at in OLD.items())
    commit(store, append([old, unknown, young], [Mark("old", "over")]))
    document = store.load(ALICE).document
    for days, texts_left in ((30, ["unknown", "young"]), (90, ["old", "unknown", "young"])):
        settings = make_settings(tmp_path, None, said={"days": days})
        assert [turn.id for turn in read_said(store, ALICE, document, settings, NOW).turns] == texts_left
    off = make_settings(tmp_path, None, said={"enabled": False})
    assert read_said(store, ALICE, document, off, NOW) is NOTHING_SAID


OLD = {"old": "2026-01-10T00:00:00.000Z", "unknown": "", "young": "2026-02-10T00:00:00.000Z"}


# --- the daily upkeep ------------------------------------------------------------------------------------------------


def kept_long(tmp_path: Path, store: JsonStore) -> None:
    """A user who says nothing any more, with a turn past its days, and a file that a killed commit left."""
    now = iso(datetime.now(UTC))
    later = line_of(Turn("new", "t", "user", "I live in Porto.", at=now)).replace(b"}\n", b',"mood":"good"}\n')
    old = line_of(Turn("old", "t", "user", "I live in Oslo.", at=OLD["old"]))
    loaded = store.load(ALICE)
    change = Append(old + later, 2, OLD["old"], 0)
    store.commit(ALICE, loaded, {**loaded.document, "revision": 1}, ours, said=change)
    (tmp_path / "data" / "users" / ALICE.user_id / "said-0123456789abcdef.jsonl").write_text("left")


def test_the_upkeep_reaches_idle_users_and_judges_anew(
    store: JsonStore, folder: Path, tmp_path: Path, client: redis.Redis, server_url: str
) -> None:
    """What is past its days goes from the disk, and other turns get the excerpts of the present gates."""
    kept_long(tmp_path, store)
    upkeep = Upkeep(make_settings(tmp_path / "data", server_url), store)
    upkeep.run()
    (turn,) = layer(store).turns
    assert (turn.id, turn.gates, turn.excerpts) == ("new", GATES_VERSION, ((0, 16),))
    (file,) = files_of(folder)
    assert b'"mood":"good"' in file.read_bytes()
    revision = store.load(ALICE).revision
    client.delete(*client.keys(f"{P}:round:*"))
    upkeep.run()
    assert store.load(ALICE).revision == revision, "there was nothing left to do"


def test_one_of_all_schedulers_does_the_upkeep_once_a_day(
    store: JsonStore, tmp_path: Path, client: redis.Redis, server_url: str
) -> None:
    """One that keeps being killed does not read all memories at each start; what was cut short is done later."""
    kept_long(tmp_path, store)
    upkeep = Upkeep(make_settings(tmp_path / "data", server_url), store)
    assert send(client, rounds.take(upkeep.round_name, 600_000)), "another scheduler is at it, or died at it"
    upkeep.run()
    assert len(layer(store).turns) == 2
    client.delete(*client.keys(f"{P}:round:*"))  # its time is over
    upkeep.run()
    assert len(layer(store).turns) == 1
    [name] = client.keys(f"{P}:round:*")
    assert client.pttl(name) > 80_000_000
    shorter = Upkeep(make_settings(tmp_path / "data", server_url, said={"days": 1}), store)
    assert send(client, rounds.take(shorter.round_name, 1)), "other settings wait for no day to pass"


def test_switched_off_the_upkeep_removes_the_files(
    store: JsonStore, folder: Path, tmp_path: Path, client: redis.Redis, server_url: str
) -> None:
    """A round begins with the scheduler."""
    kept_long(tmp_path, store)
    upkeep = Upkeep(make_settings(tmp_path / "data", server_url, said={"enabled": False}), store)
    upkeep.tick()
    wait_for(lambda: not files_of(folder), "the files are removed")
    wait_for(lambda: "said" not in store.load(ALICE).document, "the document names none")


def test_forgetting_takes_the_identities_of_turns(store: JsonStore, folder: Path) -> None:
    """Also of those that the ledger no longer has: nothing that is pushed or imported later brings them back."""
    commit(store, append([turn(0)]))
    assert store.erase(ALICE.user_id, None).identities == {"i0"}
    assert not folder.exists()


def test_a_reader_beside_rewrites_always_finds_a_whole_layer(store: JsonStore, folder: Path) -> None:
    """And a forgetting beside commits leaves no file, whichever comes first."""
    commit(store, append([turn(0), turn(1)]))

    def rewrites() -> None:
        for _ in range(30):
            with suppress(Conflict):
                commit(store, rewrite(layer(store)))

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(rewrites)
        while not writing.done():
            assert texts(store) == ["turn 0", "turn 1"]
        writing.result()
        writing = pool.submit(rewrites)
        store.erase(ALICE.user_id, None)
        writing.result()
    store.erase(ALICE.user_id, None)
    assert files_of(folder) == []
