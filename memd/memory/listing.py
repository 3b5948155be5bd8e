"""Listing: the one table of filters that every door has, and what a door shows of a fact besides its stored fields.

`status` follows from where a fact is kept and `lastUsedAt` from the reading notes; no document stores either. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Literal, TypedDict, get_args

from memd.errors import Rejected
from memd.memory import scoped
from memd.memory.categories import ALIASES
from memd.memory.document import Document, Fact, archive_of, facts_of
from memd.memory.facts import (
    DEFAULT_CATEGORY,
    USER_SCOPE,
    Scope,
    ScopeKind,
    archive_reason,
    category_of,
    created_at,
    created_by,
    id_of,
    is_archived,
    said_at_of,
    scope_of,
    updated_at,
)
from memd.memory.scoped import Places
from memd.memory.store.protocol import Accesses
from memd.memory.text import one_line
from memd.push.times import iso, moment

Status = Literal["active", "superseded", "archived"]
"""active: among the facts. superseded: archived for another fact in its place. archived: all other archived facts."""

STATUSES = (*get_args(Status), "all")
"""What a list can be asked for."""

By = Literal["learned", "said"]
"""The time that a period is about: when a fact was added or last changed, or when it was said."""

SUPERSEDING = frozenset({"replaced", "merged", "edited"})
"""The archive reasons of a fact that has another one in its place."""

SCOPE_NAMES = get_args(ScopeKind)
DERIVED = ("status", "lastUsedAt")


class SearchFilters(TypedDict, total=False):
    """The filters of a search, by name: the table that library, CLI, HTTP and MCP share. A search finds active facts.

    `categories`, `scopes` (user, project, session): only facts of these; the aliases of categories count. `member`:
    only facts that this user brought into a project (`createdBy`). `since`, `until`: only facts of this period, its
    end excluded; `by` says which time counts: `learned` (added or last changed; the default) or `said`.
    """

    categories: Collection[str]
    scopes: Collection[str]
    member: str | None
    since: datetime | str | None
    until: datetime | str | None
    by: str


class ArchiveFilters(SearchFilters, total=False):
    """The filters of a list of archived facts: those of a search, and `places`.

    `places`: only facts that hold everywhere or in these; None: of every scope, as a person looks at their memory.
    """

    places: Places | None


class ListFilters(ArchiveFilters, total=False):
    """The filters of any list, and `status` (active, superseded, archived, or all; default active)."""

    status: str


@dataclass(frozen=True, slots=True)
class FactFilter:
    """Checked filters. Empty sets and None take every fact. `reason`: only facts archived for it. `visible`: only facts
    of these scopes.
    """

    categories: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset({"active"})
    member: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    by: By = "learned"
    reason: str | None = None
    visible: frozenset[Scope] | None = None

    def of_archive(self, reason: str | None = None) -> FactFilter:
        """The same for the facts that are not active."""
        return replace(self, statuses=frozenset(get_args(Status)) - {"active"}, reason=reason)

    def takes(self, fact: Fact) -> bool:
        """Whether a fact passes, its status aside; one without a readable time is outside every period."""
        if self.categories and category_of(fact) not in self.categories:
            return False
        if self.scopes and scope_of(fact).kind not in self.scopes:
            return False
        if self.visible is not None and scope_of(fact) not in self.visible:
            return False
        if self.member is not None and created_by(fact) != self.member:
            return False
        return (self.since is None and self.until is None) or self._is_then(fact)

    def listed(self, document: Document) -> Iterator[Fact]:
        """The facts of a document that pass, oldest first, then the archived ones, the latest last."""
        active = "active" in self.statuses
        facts: Iterable[Fact] = chain(facts_of(document), scoped.facts_of(document)) if active else ()
        archive = (entry for entry in archive_of(document) if status_of(entry) in self.statuses)
        if self.reason is not None:
            archive = (entry for entry in archive if archive_reason(entry) == self.reason)
        return filter(self.takes, chain(facts, archive))

    def _is_then(self, fact: Fact) -> bool:
        learned = moment(updated_at(fact)) or moment(created_at(fact))
        time = moment(said_at_of(fact)) if self.by == "said" else learned
        if time is None or (self.since is not None and time < self.since):
            return False
        return self.until is None or time < self.until


def checked_filters(
    *,
    categories: Collection[str] = (),
    scopes: Collection[str] = (),
    status: str = "active",
    member: str | None = None,
    since: object = None,
    until: object = None,
    by: str = "learned",
    places: Places | None = None,
) -> FactFilter:
    """Check the filters of `ListFilters`. Raises Rejected."""
    meant = frozenset(meaning for name in _names("categories", categories) for meaning in _meanings(name))
    wanted = frozenset(_one_of("scopes", name, SCOPE_NAMES) for name in _names("scopes", scopes))
    if not (member is None or isinstance(member, str)):
        raise Rejected("E_MEMBER", "member must be a user's id", "member")
    return FactFilter(
        meant,
        wanted,
        frozenset(get_args(Status)) if status == "all" else frozenset({_one_of("status", status, STATUSES)}),
        member,
        _time("since", since),
        _time("until", until),
        "said" if _one_of("by", by, get_args(By)) == "said" else "learned",
        visible=None if places is None else places.scopes | {USER_SCOPE},
    )


def status_of(fact: Fact) -> Status:
    """The status of a fact or an archive entry."""
    if not is_archived(fact):
        return "active"
    return "superseded" if archive_reason(fact) in SUPERSEDING else "archived"


def as_listed(fact: Fact, accesses: Accesses) -> Fact:
    """A copy of a fact as the doors show it, with its status and when a search last found it (None: never)."""
    return {**fact, "status": status_of(fact), "lastUsedAt": last_used(fact, accesses)}


def last_used(fact: Fact, accesses: Accesses) -> str | None:
    """When a search last found a fact, as far as the reading notes know."""
    access = accesses.by_fact.get(id_of(fact))
    return iso(datetime.fromtimestamp(access.last, UTC)) if access else None


def as_stored(fact: Fact) -> Fact:
    """A fact that a door has shown, as a document may store it."""
    return {name: value for name, value in fact.items() if name not in DERIVED}


def _meanings(name: str) -> tuple[str, ...]:
    """The categories that a name may mean, whatever its case; `fact` is two of them, as `category_named` tells."""
    clean = one_line(name).casefold()
    others = ("identity", DEFAULT_CATEGORY) if clean == "fact" else (ALIASES.get(clean, clean),)
    return name, clean, *others


def _names(field: str, names: object) -> Collection[str]:
    if isinstance(names, str) or not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
        raise Rejected(f"E_{field.upper()}", f"{field} must be a list of names", field)
    return names


def _one_of(field: str, value: object, names: Collection[str]) -> str:
    if not isinstance(value, str) or value not in names:
        raise Rejected(f"E_{field.upper()}", f"{field} must be one of {', '.join(names)}", field)
    return value


def _time(name: str, value: object) -> datetime | None:
    time = value if isinstance(value, datetime) else moment(value)
    if value is not None and time is None:
        raise Rejected(f"E_{name.upper()}", f"{name} must be a time in ISO 8601", name)
    if time is None or time.tzinfo:
        return time
    return time.replace(tzinfo=UTC)
