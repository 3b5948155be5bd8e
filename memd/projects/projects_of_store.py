"""Opens projects, and lists them."""

from __future__ import annotations

from typing import NamedTuple

from memd.config import Settings
from memd.context import of_project
from memd.errors import DocumentDamaged, DocumentTooNew
from memd.identifiers import check_identifier
from memd.memory.document import facts_of, saved_at
from memd.memory.projects.members import app_of, exists, members_of
from memd.memory.store.json_store import open_store
from memd.projects.project import Project
from memd.projects.project_changes import Asker


class ListedProject(NamedTuple):
    """A project in a list. `role`: of the user who asked; "" where nobody in particular did."""

    project_id: str
    app: str
    role: str
    members: int
    facts: int
    changed_at: str


def opened(settings: Settings, project_id: str, as_user: str | None, app: str | None) -> Project:
    """A project for an asker. Raises Rejected."""
    user = None if as_user is None else check_identifier("user_id", as_user)
    return Project(settings, open_store(settings), project_id, Asker(user, app))


def listed(settings: Settings, user_id: str | None, app: str | None) -> list[ListedProject]:
    """The projects of a user, or all; damaged ones are left out (`memd doctor` and `memd audit` name them)."""
    store = open_store(settings)
    found: list[ListedProject] = []
    for project_id in sorted(store.projects()):
        try:
            document = store.peek(of_project(project_id)).document
        except (DocumentDamaged, DocumentTooNew):
            continue
        members = members_of(document)
        if not exists(document) or (app is not None and app_of(document) not in ("", app)):
            continue
        if user_id is not None and user_id not in members:
            continue
        role = members[user_id].role if user_id is not None else ""
        facts = len(facts_of(document))
        found.append(ListedProject(project_id, app_of(document), role, len(members), facts, saved_at(document)))
    return found
