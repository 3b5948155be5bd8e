"""Changes of a project by hand, each after the question whether it is allowed. Pure; refusals raise Rejected.

Rights are asked of the very document that is changed, so that no role counts that was taken away meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, NoReturn

from memd.config import ApplySettings
from memd.errors import Rejected
from memd.memory import removed
from memd.memory.document import Document, Fact, archive_of, facts_of, project_of, revised
from memd.memory.facts import archive_with, archived, created_by, id_of, with_id
from memd.memory.hand import edits
from memd.memory.hand.steps import Edited, unknown_fact
from memd.memory.projects.disputes import disputed_with, without_disputes
from memd.memory.projects.members import (
    app_of,
    exists,
    founded,
    is_closed,
    standing_of,
    with_member,
    without_member,
)
from memd.memory.projects.proofs import is_of_alone
from memd.memory.projects.rights import Standing, Verb, Visibility, may
from memd.push.times import iso


class Asker(NamedTuple):
    """Who asks. `user_id` None: whoever runs memd, who may do everything. `app`: of the token that asks, if any."""

    user_id: str | None = None
    app: str | None = None

    def standing(self, document: Document) -> Standing:
        """What the asker is to a project. Raises Rejected as for a project that was never made."""
        if not exists(document) or (self.app is not None and app_of(document) not in ("", self.app)):
            refuse_unknown()
        return "owner" if self.user_id is None else standing_of(document, self.user_id, self.app)

    def owns(self, fact: Fact) -> bool:
        """Whether the asker created a fact; an operator counts as the creator of all."""
        return self.user_id is None or created_by(fact) == self.user_id

    def check(self, document: Document, verb: Verb, fact: Fact | None = None) -> None:
        """Raise Rejected where the asker may not do this: unknown for who may not even read, else forbidden."""
        standing = self.standing(document)
        visibility = _visibility(fact)
        own = fact is not None and self.owns(fact)
        if not may(standing, "read", visibility, own=own):
            refuse_unknown()
        if not may(standing, verb, visibility, own=own):
            raise Rejected("E_FORBIDDEN", "your role in this project does not allow it", "project_id")


def refuse_unknown() -> NoReturn:
    """Raise the one error for a project that there is not, and for one that is not the asker's."""
    raise Rejected("E_PROJECT_UNKNOWN", "there is no such project, or you are no member of it", "project_id")


def made(document: Document, app: str, owner: str, now: datetime) -> Edited:
    """A new project. Raises Rejected for an id that is taken, or was."""
    if exists(document):
        raise Rejected("E_PROJECT_EXISTS", "there is a project with this id", "project_id")
    if is_closed(document):
        raise Rejected("E_PROJECT_CLOSED", "a project with this id was closed; ids are never used again", "project_id")
    return Edited(revised(founded(document, app, owner, iso(now)), iso(now)), "")


def closed(document: Document, asker: Asker, now: datetime) -> Edited:
    """The grave of a project: nothing of it but that it was, so that its id is never used again."""
    asker.check(document, "close")
    grave: Document = {name: document[name] for name in ("version", "revision", "projectId", "app") if name in document}
    empty = {"user": {}, "history": {}, "facts": [], "archive": [], "ledger": {}, "grave": iso(now)}
    return Edited(revised({**grave, **empty, "removed": removed.marked(document, iso(now))}, iso(now)), "")


def with_role(document: Document, asker: Asker, user_id: str, role: str, now: datetime) -> Edited:
    """A member more, or with another role. Only an owner makes or unmakes owners."""
    asker.check(document, "members")
    _check_owners(document, asker, user_id, role)
    changed = with_member(document, user_id, role, iso(now))
    return Edited(document if changed is document else revised(changed, iso(now)), "")


def without(document: Document, asker: Asker, user_id: str, now: datetime) -> Edited:
    """A member less. Everybody may leave."""
    if asker.user_id != user_id:
        asker.check(document, "members")
        _check_owners(document, asker, user_id, "")
    else:
        asker.check(document, "read")
    changed = without_member(document, user_id)
    return Edited(document if changed is document else revised(changed, iso(now)), "")


def added(
    document: Document, asker: Asker, content: str, category: str | None, now: datetime, settings: ApplySettings
) -> Edited:
    """A fact by hand. What somebody else wrote already stays theirs, and says it now as a person's word."""
    asker.check(document, "create")
    edited = edits.add(document, content, category, now, settings)
    before = with_id(facts_of(document), edited.fact_id)
    if before is not None:
        asker.check(document, "edit", before)
    return _owned(edited, document, asker, before)


def edited(
    document: Document,
    asker: Asker,
    fact_id: str,
    content: str | None,
    category: str | None,
    visibility: Visibility | None,
    now: datetime,
    settings: ApplySettings,
) -> Edited:
    """A fact in other words, of another category, or for other eyes (public or members)."""
    fact = found(document, asker, fact_id)
    asker.check(document, "edit", fact)
    if visibility not in (None, "public", "members"):
        raise Rejected("E_VISIBILITY", "visibility must be public or members; hide keeps a fact to you", "visibility")
    changed = Edited(document, fact_id)
    if content is not None or category is not None or visibility is None:
        changed = _owned(edits.edit(document, fact_id, content, category, now, settings), document, asker, fact)
    if visibility is None or _visibility(with_id(facts_of(changed.document), fact_id)) == visibility:
        return changed
    facts = [{**one, "visibility": visibility} if id_of(one) == fact_id else one for one in facts_of(changed.document)]
    if changed.document is document:
        return Edited(revised(document, iso(now), facts=facts), fact_id)
    return replace(changed, document={**changed.document, "facts": facts})


def taken_out(document: Document, asker: Asker, fact_id: str, now: datetime) -> Edited:
    """A project without a fact, for good, and without disputes with it."""
    asker.check(document, "delete", found(document, asker, fact_id))
    removal = edits.remove(document, fact_id, now)
    return Edited(without_disputes(removal.document, {id_of(fact) for fact in removal.facts}), fact_id)


def decided(document: Document, asker: Asker, fact_id: str, now: datetime, settings: ApplySettings) -> Edited:
    """A dispute ends for this fact: those that it disputes, and that dispute it, go to the archive."""
    fact = found(document, asker, fact_id)
    asker.check(document, "decide", fact)
    others = disputed_with(document, fact)
    if not others:
        raise Rejected("E_NO_DISPUTE", "no other fact of the project disputes this one", "fact_id")
    over = [
        archived(one, "replaced", iso(now), replaced_by=fact_id) for one in facts_of(document) if id_of(one) in others
    ]
    facts = [one for one in facts_of(document) if id_of(one) not in others]
    archive = archive_with(archive_of(document), over, settings.archive_cap)
    return Edited(without_disputes(revised(document, iso(now), facts=facts, archive=archive), others), fact_id)


@dataclass(frozen=True, slots=True)
class Hidden(Edited):
    """The project without a fact that its creator takes back. `fact`: as it was."""

    fact: Fact | None = None


def hidden(document: Document, asker: Asker, fact_id: str, now: datetime) -> Hidden:
    """A project without a fact that its creator alone proved, which leaves no tombstone: it may be published again."""
    fact = found(document, asker, fact_id)
    asker.check(document, "hide", fact)
    if asker.user_id is None or not is_of_alone(fact, asker.user_id):
        raise Rejected("E_NOT_YOURS_ALONE", "others have said it too, so it cannot be hidden from them", "fact_id")
    facts = [one for one in facts_of(document) if id_of(one) != fact_id]
    left = revised(document, iso(now), facts=facts, removed=removed.marked(document, iso(now)))
    return Hidden(without_disputes(left, {fact_id}), fact_id, fact=fact)


def found(document: Document, asker: Asker, fact_id: str) -> Fact:
    """A fact that the asker may read. Raises FactUnknown, alike for one that there is not.

    Who is no member is told that there is no project: otherwise the answer would tell that there is one.
    """
    standing = asker.standing(document)
    fact = with_id(facts_of(document), fact_id)
    if fact is None or not may(standing, "read", _visibility(fact), own=asker.owns(fact)):
        if not may(standing, "see_members"):
            refuse_unknown()
        raise unknown_fact()
    return fact


def _visibility(fact: Fact | None) -> Visibility:
    return "public" if fact is not None and fact.get("visibility") == "public" else "members"


def _owned(edited: Edited, document: Document, asker: Asker, before: Fact | None) -> Edited:
    """The edit with the fields of a project's fact on the fact that it wrote."""
    if edited.document is document:
        return edited
    owner = asker.user_id or (created_by(before) if before else "")
    fields = {
        "scope": "project",
        "scopeId": project_of(document),
        "visibility": _visibility(before),
        "createdBy": owner,
    }
    facts = [{**one, **fields} if id_of(one) == edited.fact_id else one for one in facts_of(edited.document)]
    return replace(edited, document={**edited.document, "facts": facts})


def _check_owners(document: Document, asker: Asker, user_id: str, role: str) -> None:
    """Only an owner makes or unmakes owners."""
    about_owner = role == "owner" or standing_of(document, user_id) == "owner"
    if about_owner and asker.standing(document) != "owner":
        raise Rejected("E_FORBIDDEN", "only an owner makes or unmakes owners", "role")


Change = Callable[[Document, datetime], Edited]
"""A change of a project at one moment."""
