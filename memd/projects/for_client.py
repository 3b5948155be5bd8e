"""The projects' half of the clients: open one project, list those of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.config import Settings

if TYPE_CHECKING:
    from memd.projects.project import Project
    from memd.projects.projects_of_store import ListedProject


class OpensProjects:
    """Opens projects. Every method raises Rejected and StoreUnavailable."""

    settings: Settings

    def project(self, project_id: str, *, as_user: str | None = None, app: str | None = None) -> Project:
        """A project, as this user sees it; None: as whoever runs memd, who may do everything.

        `app`: of the token that asks, where one does: a project of another app does not exist for it.
        """
        from memd.projects import projects_of_store  # noqa: PLC0415  (an app without projects starts without their code)

        return projects_of_store.opened(self.settings, project_id, as_user, app)

    def projects(self, user_id: str | None = None, *, app: str | None = None) -> list[ListedProject]:
        """The projects of which a user is a member, by id; None: all of them. `app`: only those of this app."""
        from memd.projects import projects_of_store  # noqa: PLC0415  (an app without projects starts without their code)

        return projects_of_store.listed(self.settings, user_id, app)
