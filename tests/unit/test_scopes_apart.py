"""Scopes apart: facts of other scopes change nothing of what an update does, whatever it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from support.recall_support import fact

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.extraction.protocol import Maintenance
from memd.extraction.update import (
    ConfirmedFact,
    Evidence,
    ForgottenFact,
    MergedFact,
    NewFact,
    RetiredFact,
    ReviewedFact,
    Update,
)
from memd.memory import scoped
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import Document, Fact, archive_of, empty_document, facts_of
from memd.memory.facts import SCOPED, scope_of
from memd.push.times import iso

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
SMALL = ApplySettings(max_facts=6, session_facts=True, near_duplicate=0.8, keep_refused=5)
QUOTES = (
    "I drink green tea daily",
    "我每天早上都喝绿茶",
    "no more green tea for me please",
    "please call me captain here",
)
MESSAGES = tuple(
    structs.replace(message, said_at=iso(NOW), order=number)
    for number, message in enumerate(identify("t1", [Message("user", text) for text in QUOTES]), 1)
)
CONTENTS = (
    "The user drinks green tea daily", "The user drinks green tea every day", "The user does not drink green tea",
    "用户每天早上都喝绿茶", "用户不喝绿茶",
    "The user wants to be called captain", "The user drinks 3 cups of green tea",
)  # fmt: skip
SCOPES: tuple[dict[str, Any], ...] = (
    {},
    {"scope": "session", "scopeId": "t1"},
    {"scope": "session", "scopeId": "t2"},
    {"scope": "project", "scopeId": "atlas", "visibility": "owner_only"},
)
ENDS: tuple[dict[str, Any], ...] = (
    {},
    {"validUntil": "2026-11-23T18:00:00.000Z"},
    {"validUntil": "2026-11-20T00:00:00.000Z"},
)


@st.composite
def held(draw: st.DrawFn, fields: dict[str, Any], prefix: str) -> list[Fact]:
    """Facts of one scope."""
    chosen = draw(
        st.lists(
            st.tuples(st.sampled_from(CONTENTS), st.sampled_from(ENDS)), max_size=7, unique_by=lambda pair: pair[0]
        )
    )
    created: dict[str, Any] = {"createdAt": "2026-11-22T00:00:00Z", "source": "t0"}
    return [
        fact(f"fact_{prefix}{number:07x}", content, **created, **end, **fields)
        for number, (content, end) in enumerate(chosen)
    ]


IDS = st.builds("fact_{}{:07x}".format, st.sampled_from("abcd"), st.integers(0, 6)) | st.just("abcd")
QUOTED = st.integers(0, 3).map(lambda number: (number, QUOTES[number]))
NEW = st.builds(
    lambda content, scope, durability, quoted, replaced: NewFact(
        content, "preference", 0.9, scope, durability, "descriptive", (Evidence(*quoted),), replaces=tuple(replaced)
    ),
    st.sampled_from(CONTENTS),
    st.sampled_from(["user", "thread", "project"]),
    st.sampled_from(["durable", "temporary"]),
    QUOTED,
    st.lists(IDS, max_size=2),
)
UPDATES = st.builds(
    lambda new, confirmed, retired, forgotten, reviewed, merged: Update(
        {}, tuple(new), tuple(confirmed), tuple(retired), tuple(forgotten), tuple(reviewed), tuple(merged)
    ),
    st.lists(NEW, max_size=4),
    st.lists(st.builds(ConfirmedFact, IDS, QUOTED.map(lambda quoted: quoted[1])), max_size=2),
    st.lists(st.builds(RetiredFact, IDS, st.just("over"), QUOTED.map(lambda quoted: quoted[1])), max_size=2),
    st.lists(st.builds(ForgottenFact, IDS, QUOTED.map(lambda quoted: quoted[1])), max_size=1),
    st.lists(st.builds(ReviewedFact, IDS, st.sampled_from(["keep", "retire"])), max_size=2),
    st.lists(st.builds(MergedFact, st.sampled_from(CONTENTS), st.tuples(IDS, IDS)), max_size=1),
)


def holding(own: list[Fact], apart: list[Fact]) -> Document:
    made: Document = {**empty_document(Bucket("ana")), "facts": own}
    return {**made, SCOPED: apart} if apart else made


def run(document: Document, update: Update) -> Applied:
    origin = Origin("t1", NOW, "m", "1")
    asked = Maintenance({"fact_a0000000": "ended"}, ("preference", "context"))
    return apply(document, update, MESSAGES, MESSAGES, origin, SMALL, maintenance=asked)


def told(facts: list[Fact]) -> list[dict[str, Any]]:
    """What facts say, without ids: those of new ones depend on the ids in use."""
    return [
        {name: value for name, value in one.items() if name not in ("id", "replaces", "replacedBy")} for one in facts
    ]


def counts(applied: Applied) -> tuple[int, int, int]:
    return len(applied.added), len(applied.confirmed), len(applied.retired)


@given(held(SCOPES[0], "a"), held(SCOPES[1], "b"), held(SCOPES[2], "c"), held(SCOPES[3], "d"), UPDATES)
def test_facts_of_other_scopes_change_nothing(
    own: list[Fact], session: list[Fact], other: list[Fact], private: list[Fact], update: Update
) -> None:
    """What lasts, and what the thread has, become what they would without the facts of another thread and a project."""
    alone = run(holding(own, session), update)
    among = run(holding(own, [*session, *other, *private]), update)
    assert told(list(facts_of(among.document))) == told(list(facts_of(alone.document)))
    ours = [one for one in scoped.facts_of(among.document) if scope_of(one).id == "t1"]
    assert told(ours) == told(scoped.facts_of(alone.document))
    assert [refusal.reason for refusal in among.refusals] == [refusal.reason for refusal in alone.refusals]
    assert counts(among) == counts(alone)


@given(held(SCOPES[0], "a"), held(SCOPES[1], "b"), held(SCOPES[2], "c"), held(SCOPES[3], "d"), UPDATES)
def test_an_update_changes_nothing_of_other_scopes(
    own: list[Fact], session: list[Fact], other: list[Fact], private: list[Fact], update: Update
) -> None:
    """Facts of another thread and of a project stay byte for byte, but for those that are over or now hold for good."""
    after = run(holding(own, [*session, *other, *private]), update)
    left = {one["id"]: one for one in scoped.facts_of(after.document)}
    gone = {one["id"]: one for one in archive_of(after.document)}
    for one in (*other, *private):
        if one["id"] in left:
            same = left[one["id"]] if "validUntil" in one else {**left[one["id"]], "validUntil": ""}
            assert orjson.dumps(same) == orjson.dumps(one if "validUntil" in one else {**one, "validUntil": ""})
        elif one["id"] in gone:
            entry = gone[one["id"]]
            assert (entry["archiveReason"], scope_of(entry)) in {
                ("expired", scope_of(one)),
                ("replaced", scope_of(one)),
            }
            assert entry["archiveReason"] == "expired" or scope_of(one).kind == "session"
        else:
            assert after.forgotten


@given(held(SCOPES[0], "a"), held(SCOPES[1], "b"), UPDATES)
def test_a_session_changes_nothing_that_lasts(own: list[Fact], session: list[Fact], update: Update) -> None:
    """An update of which all new facts hold in the conversation only adds nothing to what lasts."""
    here = structs.replace(
        update,
        new_facts=tuple(structs.replace(new, scope="thread") for new in update.new_facts),
        confirmed_facts=(), retired_facts=(), forgotten_facts=(), reviewed_facts=(), merged_facts=(),
    )  # fmt: skip
    with_them = run(holding(own, session), here)
    without = run(holding(own, session), structs.replace(here, new_facts=()))
    assert facts_of(with_them.document) == facts_of(without.document)
