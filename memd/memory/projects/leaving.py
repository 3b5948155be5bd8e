"""Leaving: takes a forgotten user's words out of a project. Pure.

A fact that only they proved goes, archived ones too, and leaves a tombstone without its text; one that others proved as
well stays with the others' evidence.
"""

from __future__ import annotations

from memd.memory import removed
from memd.memory.document import Document, Fact, archive_of, facts_of, revised
from memd.memory.facts import created_by, evidence_of, id_of
from memd.memory.projects.disputes import without_disputes
from memd.memory.projects.members import left, members_of
from memd.memory.projects.proofs import speakers_of


def names_user(document: Document, user_id: str) -> bool:
    """Whether a project has anything of a user: membership, facts, quotes."""
    every = (*facts_of(document), *archive_of(document))
    return user_id in members_of(document) or any(user_id in speakers_of(fact) for fact in every)


def without_user(document: Document, user_id: str, now: str) -> Document:
    """The project without a user and their words; the same object when there is nothing of them."""
    if not names_user(document, user_id):
        return document
    gone: list[Fact] = []
    kept: dict[str, list[Fact]] = {"facts": [], "archive": []}
    for name, facts in (("facts", facts_of(document)), ("archive", archive_of(document))):
        for fact in facts:
            rest = _without(fact, user_id)
            if rest is None:
                gone.append(fact)
            else:
                kept[name].append(rest)
    ended = {id_of(fact) for fact in gone}
    rest = without_disputes({**document, "facts": kept["facts"]}, ended)
    tombstones = removed.buried(document, gone, now) if gone else [*document.get("removed", ())]
    return revised(
        left(rest, user_id), now, archive=kept["archive"], removed=removed.marked({**rest, "removed": tombstones}, now)
    )


def _without(fact: Fact, user_id: str) -> Fact | None:
    """A fact without a user's words; None when nothing proves it any more."""
    if user_id not in speakers_of(fact):
        return fact
    others = [entry for entry in evidence_of(fact) if entry.get("by") != user_id]
    if not others:
        return None
    creator = created_by(fact)
    return {**fact, "evidence": others, "createdBy": str(others[0].get("by")) if creator == user_id else creator}
