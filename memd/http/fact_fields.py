"""The fields of queries and bodies of operations that tell where facts come from, and what became of them."""

from __future__ import annotations

from pydantic import Field

from memd.http.fields import (
    BY,
    MEMBER,
    SINCE,
    UNTIL,
    Moment,
    OneMemory,
    ProjectId,
    Rows,
    ThreadId,
    UserId,
)
from memd.http.paging import PlaceCursor
from memd.inbox.keys import MAX_LIMIT as MAX_ROWS
from memd.memory.facts import ArchiveReason, ScopeKind
from memd.memory.listing import ArchiveFilters, By


class FactPlace(OneMemory):
    """A fact's memory, and the place where it holds."""

    thread_id: ThreadId | None = Field(None, description="The conversation of a fact that holds only there.")
    project_id: ProjectId | None = Field(None, description="The project of a fact that holds only there.")


class ArchiveQuery(OneMemory, title="ArchivedFacts"):
    """The archived facts to list."""

    reason: ArchiveReason | None = Field(None, description="Only facts that were archived for this reason.")
    category: str | None = Field(None, max_length=100, description="Only facts of this category; aliases count.")
    scope: ScopeKind | None = Field(None, description="Only facts of this scope.")
    member: UserId | None = Field(None, description=MEMBER)
    since: Moment | None = Field(None, description=SINCE)
    until: Moment | None = Field(None, description=UNTIL)
    by: By = Field("learned", description=BY)
    thread_id: ThreadId | None = Field(None, description="A conversation, whose own facts are listed, too.")
    project_id: ProjectId | None = Field(None, description="A project: what the user alone knew of it is listed, too.")
    after: PlaceCursor = ""
    limit: Rows = MAX_ROWS

    @property
    def filters(self) -> ArchiveFilters:
        """The filters, as the library takes them."""
        return ArchiveFilters(
            categories=() if self.category is None else (self.category,),
            scopes=() if self.scope is None else (self.scope,),
            member=self.member,
            since=self.since,
            until=self.until,
            by=self.by,
        )


class Restoration(OneMemory):
    """The memory of a suspended fact that is taken back."""
