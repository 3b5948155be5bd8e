"""The fields of queries and bodies of operations on projects. `user_id` is who asks: their role decides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from memd.http.fields import (
    BY,
    MEMBER,
    SINCE,
    UNTIL,
    Category,
    Content,
    Fields,
    Moment,
    ProjectId,
    Rows,
    UserId,
    names_schema,
    values_schema,
)
from memd.http.paging import PlaceCursor
from memd.inbox.keys import MAX_LIMIT as MAX_ROWS
from memd.memory.listing import By, ListFilters
from memd.memory.profiles import PROJECT_FIELDS
from memd.memory.projects.rights import Role

ProjectProfileName = Annotated[str, WithJsonSchema(names_schema(PROJECT_FIELDS))]


class MyProjects(Fields):
    """The user whose projects are listed."""

    user_id: UserId


class OneProject(Fields):
    """A project, and who asks."""

    user_id: UserId
    project_id: ProjectId


class NewProject(OneProject):
    """A project to make: `user_id` is its first owner."""


class MemberRole(OneProject):
    """A member with a role."""

    member: UserId
    role: Role = Field(description="Each includes the rights of those after it: owner, admin, editor, viewer.")


class OneMember(OneProject):
    """A member to remove."""

    member: UserId


class ProjectFacts(OneProject):
    """The facts of a project to list."""

    category: str | None = Field(None, max_length=100, description="Only facts of this category; aliases count.")
    status: Literal["active", "superseded", "archived", "all"] = Field(
        "active", description="superseded: archived for another fact in its place. archived: for any other reason."
    )
    member: UserId | None = Field(None, description=MEMBER)
    since: Moment | None = Field(None, description=SINCE)
    until: Moment | None = Field(None, description=UNTIL)
    by: By = Field("learned", description=BY)
    after: PlaceCursor = ""
    limit: Rows = MAX_ROWS

    @property
    def filters(self) -> ListFilters:
        """The filters, as the library takes them."""
        return ListFilters(
            categories=() if self.category is None else (self.category,),
            status=self.status,
            member=self.member,
            since=self.since,
            until=self.until,
            by=self.by,
        )


class ProjectPeriod(OneProject):
    """A part of a project's timeline."""

    since: Moment | None = Field(None, description="Only what was said at this time or later.")
    until: Moment | None = Field(None, description="Only what was said before this time.")
    after: PlaceCursor = ""
    limit: Rows = MAX_ROWS


class NewProjectFact(OneProject):
    """A fact to add to a project by hand."""

    content: Content
    category: Category | None = None


class ProjectFactEdit(OneProject):
    """The new content, category or visibility of a fact."""

    content: Content | None = None
    category: Category | None = None
    visibility: Literal["members", "public"] | None = Field(
        None, description="public: any token of the project's app may read it."
    )


class ProjectProfileSet(OneProject):
    """A field of a project's profile to set."""

    model_config = ConfigDict(**Fields.model_config, json_schema_extra=values_schema(PROJECT_FIELDS))

    field: ProjectProfileName = Field(description="docs/editing.md says what each takes.")
    value: str | list[str] = Field(description="A text; a list of texts where the field is a list.")


class ProjectProfileUnset(OneProject):
    """A field of a project's profile to take out."""

    field: ProjectProfileName
