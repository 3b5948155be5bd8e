"""Reading notes: what a search found is noted apart from the documents, fades, is bounded, and goes with its user."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from support.recall_support import document, fact, reader, write

from memd.context import Bucket
from memd.memory.store.protocol import HALF_LIFE_S
from memd.memory.store.reading_notes import FOLD_BYTES, MAX_BYTES, MAX_TOUCHED, ReadingNoteFiles

ANA = Bucket("ana")
NOW = 1_790_000_000.0


@pytest.fixture
def notes(data_dir: Path) -> ReadingNoteFiles:
    """The reading notes of this test's folder."""
    return ReadingNoteFiles(data_dir, shared=False)


def only_file(data_dir: Path) -> Path:
    [file] = [file for file in (data_dir / "heat").rglob("*") if file.is_file()]
    return file


def test_an_access_is_worth_half_after_thirty_days(notes: ReadingNoteFiles) -> None:
    """Each counts one when it happens; a fact that was never found is cold."""
    notes.note(ANA, ["a", "b"], NOW - HALF_LIFE_S)
    notes.note(ANA, ["a"], NOW)

    found = notes.read(ANA, NOW)
    assert (found.heat("a"), found.heat("b"), found.heat("c")) == (1.5, 0.5, 0.0)
    assert (found.by_fact["a"].last, found.by_fact["a"].count) == (NOW, 2)
    assert notes.read(ANA, NOW + HALF_LIFE_S).heat("a") == 0.75
    assert notes.read(Bucket("bob"), NOW).heat("a") == 0.0


def test_a_search_notes_what_it_answered_and_leaves_the_document(data_dir: Path, notes: ReadingNoteFiles) -> None:
    """For each memory apart; inject notes nothing."""
    write(data_dir, document(fact("a", "Likes tea"), fact("b", "Lives in Porto")))
    write(data_dir, document(fact("c", "Green tea at work"), bucket=Bucket("ana", "chef")))
    app = reader(data_dir)
    before = app.document("ana")
    app.inject("ana", query="tea")
    assert not (data_dir / "heat").exists()
    app.search("ana", "tea", agent_name="chef")

    assert notes.read(ANA, NOW).by_fact.keys() == {"a"}
    assert notes.read(Bucket("ana", "chef"), NOW).by_fact.keys() == {"c"}
    assert app.document("ana") == before
    assert {oct(path.stat().st_mode & 0o777) for path in (data_dir / "heat").rglob("*")} == {"0o700", "0o600"}


def test_the_file_is_folded_and_nothing_is_lost_by_it(data_dir: Path, notes: ReadingNoteFiles) -> None:
    """However often it is asked for, it stays small and says the same."""
    names = [f"fact_{number:08}" for number in range(40)]
    for number in range(300):
        notes.note(ANA, names, NOW + number)
        assert only_file(data_dir).stat().st_size < FOLD_BYTES + 600

    found = notes.read(ANA, NOW + 300)
    assert {name: access.count for name, access in found.by_fact.items()} == dict.fromkeys(names, 300)
    assert found.heat(names[0]) == pytest.approx(300, rel=0.01)


def test_of_very_many_facts_the_hottest_are_kept(data_dir: Path, notes: ReadingNoteFiles) -> None:
    """Long names and all, the file is bounded."""
    for number in range(60):
        notes.note(ANA, ["hot", *(f"{number}-{place:050}" for place in range(40))], NOW + number)
    assert only_file(data_dir).stat().st_size < FOLD_BYTES + 3_000
    assert notes.read(ANA, NOW + 60).by_fact["hot"].count == 60


def test_what_is_no_line_counts_for_nothing(data_dir: Path, notes: ReadingNoteFiles) -> None:
    """Torn by a crash, or written by a hand."""
    notes.note(ANA, ["a", "no id", "", "x" * 65], NOW)
    with only_file(data_dir).open("ab") as file:
        file.write(b"= 1\n= x 1 1 b\nnan c\n-5 d\n\n\xff\xfe\n1e300 e\n179000")
    notes.note(ANA, ["torn with the line before"], NOW)
    notes.note(ANA, ["f"] * 100, NOW)

    found = notes.read(ANA, NOW).by_fact
    assert (found["a"].count, found.keys() & set("bcde")) == (1, set())
    assert found.keys() - {"a"} <= {"f"}
    notes.note(ANA, ["f"] * 100, NOW)
    assert notes.read(ANA, NOW).by_fact["f"].count % MAX_TOUCHED == 0


def test_a_folder_that_cannot_be_written_costs_no_answer(data_dir: Path, notes: ReadingNoteFiles) -> None:
    """The search answers; the access is not noted."""
    write(data_dir, document(fact("a", "Likes tea")))
    (data_dir / "heat").write_text("not a folder")
    assert [one.fact["id"] for one in reader(data_dir).search("ana", "tea")] == ["a"]
    assert notes.note(ANA, ["a"], NOW) is False
    assert notes.read(ANA, NOW).by_fact == {}


def test_a_file_that_cannot_be_folded_stops_growing(data_dir: Path, notes: ReadingNoteFiles) -> None:
    """Here because something else has the name of its temp file."""
    notes.note(ANA, ["a"], NOW)
    file = only_file(data_dir)
    file.with_suffix(".tmp").mkdir()
    for number in range(MAX_BYTES // 2_000 + 50):
        notes.note(ANA, [f"{number}-{place:045}" for place in range(MAX_TOUCHED)], NOW)
    assert file.stat().st_size < MAX_BYTES + 3_000


def test_many_at_once_lose_nothing(notes: ReadingNoteFiles) -> None:
    """All that is said to be noted counts, however often the file is folded meanwhile."""
    names = [f"fact_{number:08}" for number in range(20)]
    noted: list[bool] = []

    def search() -> None:
        noted.extend([notes.note(ANA, names, NOW + number) for number in range(200)])

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = {name: access.count for name, access in notes.read(ANA, NOW).by_fact.items()}
    assert counts == dict.fromkeys(names, sum(noted))
    assert sum(noted) > 100


def test_a_forgotten_user_leaves_no_heat(data_dir: Path, notes: ReadingNoteFiles) -> None:
    """All of it, or that of one agent; a search that was on its way does not bring it back."""
    write(data_dir, document(fact("a", "Likes tea")))
    write(data_dir, document(fact("c", "Likes tea"), bucket=Bucket("ana", "chef")))
    write(data_dir, document(fact("b", "Likes tea"), bucket=Bucket("bob")))
    app = reader(data_dir)
    for user in ("ana", "bob"):
        app.search(user, "tea", agent_name="chef")
        app.search(user, "tea")
    assert len(notes.read(Bucket("ana", "chef"), NOW).by_fact) == 1

    app.forget("ana", agent_name="chef")
    assert (len(notes.read(Bucket("ana", "chef"), NOW).by_fact), len(notes.read(ANA, NOW).by_fact)) == (0, 1)
    app.forget("ana")
    notes.forget("ana", None)  # once more does no harm
    assert notes.read(ANA, NOW).by_fact == {}
    assert notes.read(Bucket("bob"), NOW).by_fact.keys() == {"b"}
    assert len(list((data_dir / "heat").iterdir())) == 1


def test_with_a_shared_store_heat_is_shared(data_dir: Path) -> None:
    """Facts are everybody's, and so is what was found; forgetting one user leaves it."""
    shared = ReadingNoteFiles(data_dir, shared=True)
    shared.note(ANA, ["a"], NOW)
    shared.forget("ana", None)
    assert shared.read(Bucket("bob"), NOW).heat("a") == 1.0
