"""Lists of facts: one table of filters for every door, and what doors show that no document stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recall_support import document, fact, reader, write

from memd.context import Bucket
from memd.errors import Rejected
from memd.memory.facts import archived
from memd.memory.listing import FactFilter, as_listed, as_stored, checked_filters, status_of
from memd.memory.store.protocol import NO_ACCESSES

ARCHIVE = [
    fact(reason, f"Was {reason}", archivedAt="2026-05-01T00:00:00Z", archiveReason=reason)
    for reason in ("replaced", "merged", "edited", "retired", "evicted", "expired", "stale", "of a person's own")
]
MEMORY = {
    **document(
        fact(
            "old", "Likes tea", category="preference", createdAt="2026-01-05T00:00:00Z", saidAt="2025-12-24T00:00:00Z"
        ),
        fact(
            "new",
            "Plays go",
            createdAt="2026-02-01T00:00:00Z",
            updatedAt="2026-03-01T00:00:00Z",
            scope="session",
            scopeId="t",
        ),
        fact("team", "Ships on Friday", category="decision", scope="project", scopeId="p", createdBy="bob"),
        fact("thread", "Is in a hurry", scope="session", scopeId="t", category="behavior", createdAt="soon"),
    ),
    "archive": ARCHIVE,
}


def listed(**filters: Any) -> list[str]:
    return [found["id"] for found in checked_filters(**filters).listed(MEMORY)]


def test_the_status_follows_from_where_a_fact_is_kept() -> None:
    """Superseded by another fact: replaced, merged, edited. Archived: all other reasons, also unknown ones."""
    assert {status_of(one) for one in MEMORY["facts"]} == {"active"}
    assert [one["archiveReason"] for one in ARCHIVE if status_of(one) == "superseded"] == [
        "replaced",
        "merged",
        "edited",
    ]
    assert listed() == listed(status="active") == ["old", "new", "team", "thread"]
    assert listed(status="superseded") == ["replaced", "merged", "edited"]
    assert listed(status="archived") == ["retired", "evicted", "expired", "stale", "of a person's own"]
    assert listed(status="all") == [*listed(), *(one["id"] for one in ARCHIVE)]
    assert status_of(archived(fact("x", "y"), "edited", "2026-01-01T00:00:00Z")) == "superseded"


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"categories": ["preference"]}, ["old"]),
        ({"categories": ["habit", "decision"]}, ["team", "thread"]),
        ({"categories": ["Habit"]}, ["thread"]),
        ({"categories": ["fact"]}, ["new"]),
        ({"scopes": ["user"]}, ["old"]),
        ({"scopes": ["session"]}, ["new", "thread"]),
        ({"scopes": ["project", "user"]}, ["old", "team"]),
        ({"member": "bob"}, ["team"]),
        ({"member": "eve"}, []),
        ({"since": "2026-02-01"}, ["new"]),
        ({"until": "2026-03-01T00:00:00Z"}, ["old"]),
        ({"since": "2026-01-01", "until": "2027-01-01"}, ["old", "new"]),
        ({"since": "2026-01-01", "by": "said"}, ["new"]),
        ({"until": "2026-01-01", "by": "said"}, ["old"]),
        ({"scopes": ["session"], "since": "2026-01-01"}, ["new"]),
    ],
)
def test_each_filter(filters: dict[str, Any], expected: list[str]) -> None:
    """Other names of categories and scopes count; a fact without a readable time is in no period."""
    assert listed(**filters) == expected


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ({"categories": "goal"}, "E_CATEGORIES"),
        ({"categories": [7]}, "E_CATEGORIES"),
        ({"scopes": ["team"]}, "E_SCOPES"),
        ({"scopes": "user"}, "E_SCOPES"),
        ({"status": "gone"}, "E_STATUS"),
        ({"member": 7}, "E_MEMBER"),
        ({"since": "soon"}, "E_SINCE"),
        ({"until": 7}, "E_UNTIL"),
        ({"by": "day"}, "E_BY"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(filters: dict[str, Any], code: str) -> None:
    """With a code, in the library and so at every door."""
    with pytest.raises(Rejected) as refused:
        checked_filters(**filters)
    assert refused.value.code == code


VALUES = st.none() | st.text(max_size=5) | st.integers() | st.lists(st.text(max_size=3), max_size=2)


@given(
    st.dictionaries(
        st.sampled_from(["id", "category", "scope", "createdBy", "createdAt", "saidAt", "updatedAt", "archiveReason"]),
        VALUES,
    )
)
def test_whatever_a_hand_wrote_is_listed_or_not(fields: dict[str, Any]) -> None:
    """No filter fails on a field of the wrong type."""
    filters = checked_filters(
        categories=["goal"], scopes=["user"], member="bob", since="2026-01-01", until="2027-01-01", status="all"
    )
    filters.takes({"content": "x", **fields})
    assert as_listed({"content": "x", **fields}, NO_ACCESSES)["lastUsedAt"] is None


def test_a_fact_says_when_it_was_last_found_and_a_list_changes_nothing(data_dir: Path) -> None:
    """A search shows the time before it, list and `why` the last one; the document stores neither."""
    write(data_dir, MEMORY)
    app = reader(data_dir)
    assert [one["lastUsedAt"] for one in app.facts("ana", status="all")] == [None] * 12
    [found] = app.search("ana", "tea")
    assert (found.fact["status"], found.fact["lastUsedAt"]) == ("active", None)
    first = {one["id"]: one["lastUsedAt"] for one in app.facts("ana")}
    assert first["old"] is not None
    assert {first[name] for name in ("new", "team", "thread")} == {None}
    assert app.search("ana", "tea")[0].fact["lastUsedAt"] == first["old"]
    for _ in range(3):
        app.archived("ana")
        assert len(app.facts("ana")) == 4
    account = app.why("ana", "old")
    assert (account["status"], account["lastUsedAt"]) == ("active", app.facts("ana")[0]["lastUsedAt"])
    [notes] = [file.read_text() for file in (data_dir / "heat").rglob("*") if file.is_file()]
    assert len(notes.splitlines()) == 2
    assert not {"status", "lastUsedAt"} & {name for one in app.document("ana")["facts"] for name in one}


def test_an_agents_search_reads_the_notes_of_both_memories(data_dir: Path) -> None:
    """Each fact has the time of its own memory."""
    write(data_dir, document(fact("a", "Likes tea")))
    write(data_dir, document(fact("c", "Green tea at work"), bucket=Bucket("ana", "chef")))
    app = reader(data_dir)
    app.search("ana", "tea")
    used = {one.fact["id"]: one.fact["lastUsedAt"] for one in app.search("ana", "tea", agent_name="chef")}
    assert used["c"] is None
    assert used["a"] is not None


def test_a_list_that_is_imported_stores_no_status(data_dir: Path) -> None:
    """What a door shows of a fact is not part of it."""
    write(data_dir, MEMORY)
    app = reader(data_dir)
    app.search("ana", "tea")
    shown = {"userId": "ana", "facts": app.facts("ana"), "archive": app.archived("ana")}
    app.import_memory("bob", json.loads(json.dumps(shown)))
    stored = app.document("bob")
    assert len(stored["facts"]) == 4
    assert len(stored["archive"]) == 8
    assert not {"status", "lastUsedAt"} & {name for one in (*stored["facts"], *stored["archive"]) for name in one}
    assert as_stored(as_listed(ARCHIVE[0], NO_ACCESSES)) == ARCHIVE[0]


def test_every_filter_that_is_unset_takes_all() -> None:
    """The default of every door."""
    assert checked_filters() == FactFilter()
