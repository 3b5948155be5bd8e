"""Subjects: a new fact has one only where its sentence is about that person."""

from __future__ import annotations

from memd.extraction.update import NewFact
from memd.memory.relationships import is_former
from memd.memory.text import aside, fold, one_line
from memd.memory.whom import is_idle


def subject_fields(fact: NewFact) -> dict[str, str] | None:
    """The `subject` that a document keeps; None for the user's facts, whomever else they mention.

    "The user left Eva" with "ex-wife" keeps it: it tells what Eva is to the user since.
    """
    if fact.subject is None or not (person := aside(fact.subject.person)):
        return None
    relationship = aside(fact.subject.relationship)
    if is_idle(one_line(fact.content), person) and not is_former(relationship):
        return None
    return {"person": person, "relationship": relationship}


def person_named(fact: NewFact) -> str:
    """The person of that subject, folded; "" for the user."""
    subject = subject_fields(fact)
    return fold(subject["person"]) if subject else ""
