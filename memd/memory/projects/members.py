"""The members of a project, as its document keeps them. Pure; whether somebody may change them is asked elsewhere.

`members: {user id: {role, since}}`, `app`: the app that the project belongs to ("": any), `grave`: when it was closed.
"""

from __future__ import annotations

from typing import NamedTuple

from memd.errors import Rejected
from memd.memory.document import Document
from memd.memory.projects.rights import ROLES, Role, Standing

MAX_MEMBERS = 1_000


class ProjectMember(NamedTuple):
    """A member: the role, and since when (ISO 8601)."""

    role: Role
    since: str


def founded(document: Document, app: str, owner: str, now: str) -> Document:
    """The document of a new project with its first owner."""
    return {**document, "app": app, "members": {owner: {"role": "owner", "since": now}}}


def exists(document: Document) -> bool:
    """Whether the project was made, and not closed since."""
    return "members" in document and not is_closed(document)


def is_closed(document: Document) -> bool:
    """Whether only its grave is left: its id is never used again."""
    return "grave" in document


def app_of(document: Document) -> str:
    """The app that the project belongs to; "" for any."""
    app = document.get("app")
    return app if isinstance(app, str) else ""


def members_of(document: Document) -> dict[str, ProjectMember]:
    """The members by user id, the one who joined first at the beginning; entries broken by hand are left out."""
    entries = document.get("members")
    if not isinstance(entries, dict) or is_closed(document):
        return {}
    return {
        user: ProjectMember(entry["role"], str(entry.get("since") or ""))
        for user, entry in entries.items()
        if isinstance(entry, dict) and entry.get("role") in ROLES
    }


def standing_of(document: Document, user_id: str, app: str | None = None) -> Standing:
    """What somebody is to a project. `app`: of the token that asks; None: no token asks, any app will do.

    Who comes by another app is a stranger, whatever their role.
    """
    if not exists(document):
        return "stranger"
    ours = app_of(document)
    if app is not None and ours and app != ours:
        return "stranger"
    member = members_of(document).get(user_id)
    return member.role if member else "app"


def with_member(document: Document, user_id: str, role: str, now: str) -> Document:
    """The document with a member who has this role; the same object when nothing changes.

    Raises Rejected: for an unknown role, too many members, or where no owner would be left.
    """
    known = members_of(document)
    if role not in ROLES:
        raise Rejected("E_ROLE", f"role must be one of {', '.join(ROLES)}", "role")
    if user_id not in known and len(known) >= MAX_MEMBERS:
        raise Rejected("E_MEMBERS_COUNT", f"a project has at most {MAX_MEMBERS} members", "user_id", MAX_MEMBERS)
    before = known.get(user_id)
    if before is not None and before.role == role:
        return document
    _keep_an_owner(known, user_id, role)
    entry = {"role": role, "since": before.since if before else now}
    return {**document, "members": {**document.get("members", {}), user_id: entry}}


def without_member(document: Document, user_id: str) -> Document:
    """The document without a member; the same object when there is no such member. Raises Rejected as `with_member`."""
    known = members_of(document)
    if user_id not in known:
        return document
    _keep_an_owner(known, user_id, "")
    return left(document, user_id)


def left(document: Document, user_id: str) -> Document:
    """The document without a member who is forgotten, even the last owner."""
    entries = document.get("members")
    if not isinstance(entries, dict) or user_id not in entries:
        return document
    return {**document, "members": {user: entry for user, entry in entries.items() if user != user_id}}


def _keep_an_owner(known: dict[str, ProjectMember], user_id: str, role: str) -> None:
    before = known.get(user_id)
    owners = [user for user, member in known.items() if member.role == "owner"]
    if before is not None and before.role == "owner" and role != "owner" and owners == [user_id]:
        raise Rejected("E_LAST_OWNER", "a project needs an owner: make somebody else one first", "user_id")
