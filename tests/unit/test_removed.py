"""Removal is about one person: a removed fact of the daughter is neither removed nor refused for the user, and back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memd.config import ApplySettings
from memd.context import Bucket, Message, digest, identify
from memd.errors import Rejected
from memd.extraction.update import Evidence, NewFact, Subject, Update
from memd.memory.apply import Origin, apply
from memd.memory.document import Document, Fact, empty_document
from memd.memory.facts import id_of, person_of
from memd.memory.hand import edits, imports, notes
from memd.memory.hand.formats import Parcel, read
from memd.memory.text import normal_key

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SETTINGS = ApplySettings()
SAID = identify("t1", [Message("user", "I like tea, and so does Mia. 我们都喜欢喝绿茶。", id="m1")])
TEA = "Likes tea."
PERSONS = ("", "mia", "rosa")


def fact(person: str, content: str = TEA) -> Fact:
    """A fact about this person; "": the user."""
    made: Fact = {"id": f"fact_{person or 'user'}", "content": content, "category": "preference", "confidence": 0.9}
    return {**made, "subject": {"person": person.title(), "relationship": "daughter"}} if person else made


def memory(*facts: Fact) -> Document:
    """A memory with these facts."""
    return {**empty_document(Bucket("ana")), "facts": list(facts)}


def by_an_older_version(document: Document, content: str) -> Document:
    """The document with a tombstone that names nobody."""
    entry = {"hash": digest("removed", normal_key(content)), "removedAt": "2026-01-01T00:00:00Z", "threads": []}
    return {**document, "removed": [entry]}


def exported(document: Document) -> Parcel:
    """The parcel of this user's own memory."""
    (parcel,) = read(document, "auto", "ana").parcels
    return parcel


def refusals(document: Document, person: str, content: str) -> list[str]:
    """The reasons why an extracted fact about this person stays out."""
    subject = Subject(person.title(), "daughter") if person else None
    proof = (Evidence(0, "I like tea"),)
    wanted = NewFact(content, "preference", 0.9, "user", "durable", "descriptive", proof, subject=subject)
    applied = apply(document, Update(new_facts=(wanted,)), SAID, SAID, Origin("t1", NOW, "model", "1"), SETTINGS)
    return [refusal.reason for refusal in applied.refusals]


@pytest.mark.parametrize("content", [TEA, "喜欢喝绿茶。"])
@pytest.mark.parametrize("gone", PERSONS)
def test_removing_a_fact_of_one_person_leaves_the_same_words_of_the_others(gone: str, content: str) -> None:
    """Theirs stay, and stay wanted; only the removed one is refused."""
    document = memory(*(fact(person, content) for person in PERSONS))
    document = edits.remove(document, f"fact_{gone or 'user'}", NOW).document
    assert [person_of(kept) for kept in document["facts"]] == [person for person in PERSONS if person != gone]
    bare = {**document, "facts": []}
    assert {person: refusals(bare, person, content) for person in PERSONS} == {
        person: ["removed"] if person == gone else [] for person in PERSONS
    }


def test_a_version_in_the_archive_goes_only_with_its_own_person() -> None:
    """The archive is parted by person, as the facts are."""
    document = memory(fact("mia"))
    document["archive"] = [fact("mia"), {**fact(""), "id": "fact_old"}]
    left = edits.remove(document, "fact_mia", NOW).document
    assert list(map(id_of, left["archive"])) == ["fact_old"]


def test_an_agent_may_note_of_the_user_what_was_removed_of_the_daughter() -> None:
    """Not what was removed of the user."""
    document = edits.remove(memory(fact("mia")), "fact_mia", NOW).document
    noted = notes.save(document, TEA, None, NOW, SETTINGS)
    document = edits.remove(noted.document, noted.fact_id, NOW).document
    with pytest.raises(Rejected, match="E_FACT_REMOVED"):
        notes.save(document, TEA, None, NOW, SETTINGS)


def test_a_person_lifts_only_the_tombstone_of_the_person_named() -> None:
    """Adding the user's fact again leaves the daughter's removed."""
    document = edits.remove(memory(fact(""), fact("mia")), "fact_user", NOW).document
    document = edits.remove(document, "fact_mia", NOW).document
    document = edits.add(document, TEA, None, NOW, SETTINGS).document
    assert (refusals(document, "", TEA), refusals(document, "mia", TEA)) == ([], ["removed"])


@pytest.mark.parametrize("gone", PERSONS)
def test_an_import_asks_for_the_person_too(gone: str) -> None:
    """Of an export with the same words of three persons, those removed here stay out."""
    export = memory(*map(fact, PERSONS))
    document = edits.remove(memory(fact(gone)), f"fact_{gone or 'user'}", NOW).document
    merged = imports.merge(document, exported(export), "ana", NOW, SETTINGS)
    assert [person_of(kept) for kept in merged.document["facts"]] == [person for person in PERSONS if person != gone]
    assert merged.refused == {"removed": 1}
    back = imports.merge(memory(fact("")), exported({**document, "facts": []}), "ana", NOW, SETTINGS).document
    assert refusals({**back, "facts": []}, gone, TEA) == ([] if gone == "" else ["removed"])


@pytest.mark.parametrize("person", PERSONS)
def test_a_tombstone_of_an_older_version_holds_for_everybody(person: str) -> None:
    """It does not say about whom the fact was, so it stays removed for all; a person's word lifts it."""
    document = by_an_older_version(memory(), TEA)
    assert refusals(document, person, TEA) == ["removed"]
    assert refusals(edits.add(document, TEA, None, NOW, SETTINGS).document, person, TEA) == []
