"""Scoped facts: those of one conversation, and what a member alone knows of a project.

They stand apart from the facts that hold everywhere, in the document's `scoped`, each with `scope` (session, project)
and `scopeId` (the thread, the project). So nothing of one scope confirms, replaces, merges or evicts what is of
another; and versions of memd that know no scopes carry them along and never show them. Only who names the thread or the
project reads them. A project's facts that its members share are in the project's own document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from memd.memory.apart import facts_in, with_facts_in
from memd.memory.document import Document, Fact, archive_of, revision_of
from memd.memory.document import facts_of as lasting_facts_of
from memd.memory.doubtful import FIELD as DOUBTFUL
from memd.memory.fact_ids import new_id
from memd.memory.facts import SCOPED, USER_SCOPE, Scope, content_of, id_of, ids_in_use, scope_of
from memd.memory.ledger import name_of
from memd.memory.packed import PackedFacts
from memd.memory.suspended import FIELD as SUSPENDED
from memd.push.times import moment

MAX_OF_SCOPE = 50
"""Facts that one scope keeps at most in a user's document; the oldest go."""

MAX_SCOPED = 500
"""Scoped facts of a document at most; the oldest go."""


def session(thread_id: str) -> Scope:
    """The scope of a conversation, by its full name (`<app>/<thread>` where it came by an app)."""
    return Scope("session", thread_id)


def project(project_id: str) -> Scope:
    """The scope of a project."""
    return Scope("project", project_id)


class Places(NamedTuple):
    """What a read names: a conversation, by its full name, and a project. `app`: of the token that asks, if any."""

    thread_id: str | None = None
    project_id: str | None = None
    app: str | None = None

    def of_user(self, user_id: str, *, shared: bool) -> Places:
        """The same with the conversation's name in the ledger. `shared`: all users share the store."""
        return self._replace(thread_id=name_of(self.thread_id, user_id, shared=shared)) if self.thread_id else self

    @property
    def scopes(self) -> frozenset[Scope]:
        """The scopes whose facts in the user's own memory it sees."""
        named = (Scope("session", self.thread_id or ""), Scope("project", self.project_id or ""))
        return frozenset(scope for scope in named if scope.id)

    def named_in(self, documents: Iterable[Document], project: Document | None) -> Places:
        """The places that hold anything for this read; the others change nothing."""
        facts = [fact for document in documents for fact in within(document, self.scopes)]
        kinds = {scope_of(fact).kind for fact in facts}
        return Places(
            self.thread_id if "session" in kinds else None,
            self.project_id if "project" in kinds or project is not None else None,
        )


NOWHERE = Places()


def facts_of(document: Document) -> list[Fact]:
    """The scoped facts, oldest first."""
    return facts_in(document, SCOPED)


def with_facts(document: Document, facts: Sequence[Fact]) -> Document:
    """The document with these scoped facts."""
    return with_facts_in(document, SCOPED, facts)


def within(document: Document, scopes: Collection[Scope]) -> list[Fact]:
    """The facts of these scopes, oldest first."""
    return [fact for fact in facts_of(document) if scope_of(fact) in scopes] if scopes else []


def visible(document: Document, scopes: Collection[Scope]) -> Document:
    """The document with the facts of these scopes among its own; the very same when it has none of them."""
    more = within(document, scopes)
    if not more:
        return document
    own = lasting_facts_of(document)
    facts = PackedFacts([*own, *more]) if isinstance(own, PackedFacts) else [*own, *more]
    return {**document, "facts": facts}


def all_facts(document: Document) -> list[Fact]:
    """All facts: those that hold everywhere, then the scoped ones."""
    return [*lasting_facts_of(document), *facts_of(document)]


def home_of(document: Document, fact: Fact) -> Scope:
    """Where a document has a fact, or would have it: among its own, as a project has the shared ones, or apart."""
    return USER_SCOPE if any(other is fact for other in lasting_facts_of(document)) else scope_of(fact)


def of_scope(document: Document, scope: Scope) -> Sequence[Fact]:
    """The facts of one scope, oldest first."""
    return lasting_facts_of(document) if scope == USER_SCOPE else within(document, {scope})


def with_facts_of(document: Document, scope: Scope, facts: Sequence[Fact]) -> Document:
    """The document with these facts of one scope in place of those that it has."""
    if scope == USER_SCOPE:
        return {**document, "facts": list(facts)}
    return with_facts(document, [*(fact for fact in facts_of(document) if scope_of(fact) != scope), *facts])


def seen(document: Document, scopes: Collection[Scope]) -> Document:
    """The document as a read of these scopes sees it: their facts among its own, and nothing of others, archived or
    waiting for a person. The very same when it has no scoped facts."""
    named = {USER_SCOPE, *scopes}
    fields = {"archive": archive_of(document), **{name: facts_in(document, name) for name in (SUSPENDED, DOUBTFUL)}}
    left = {name: [fact for fact in facts if scope_of(fact) in named] for name, facts in fields.items()}
    changed = {name: facts for name, facts in left.items() if len(facts) < len(fields[name])}
    if not changed and SCOPED not in document:
        return document
    own = visible({**document, **changed}, scopes)
    return {name: value for name, value in own.items() if name != SCOPED}


def placed(fact: Fact, scope: Scope) -> Fact:
    """A fact with the fields of its scope; what is of a project here is its owner's alone."""
    if scope == USER_SCOPE:
        return fact
    private = {"visibility": "owner_only"} if scope.kind == "project" else {}
    return {**fact, **scope.fields, **private}


def ended(facts: Iterable[Fact], now: datetime) -> tuple[list[Fact], list[Fact]]:
    """The facts whose time is not over, and those whose time is."""
    over: list[Fact] = []
    left: list[Fact] = []
    for fact in facts:
        end = moment(fact.get("validUntil"))
        (over if end is not None and end <= now else left).append(fact)
    return left, over


def latest(facts: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """The facts that a document keeps, and those that are too many: of each scope, and of all, the oldest."""
    counts: dict[Scope, int] = {}
    kept: list[Fact] = []
    gone: list[Fact] = []
    for fact in reversed(facts):
        scope = scope_of(fact)
        counts[scope] = counts.get(scope, 0) + 1
        (gone if counts[scope] > MAX_OF_SCOPE or len(kept) >= MAX_SCOPED else kept).append(fact)
    return kept[::-1], gone[::-1]


def with_private(document: Document, project_id: str, facts: Iterable[Fact]) -> tuple[Document, list[str]]:
    """A user's document with facts of a project that are theirs alone, each once; and their ids there.

    The same document when it has them all already.
    """
    scope, used, ids = project(project_id), ids_in_use(document), list[str]()
    held = facts_of(document)
    known = {content_of(fact): id_of(fact) for fact in held if scope_of(fact) == scope}
    new: list[Fact] = []
    for index, fact in enumerate(facts):
        content = content_of(fact)
        if content not in known:
            known[content] = new_id(document, revision_of(document) + 1, content, index, used)
            used.add(known[content])
            new.append(placed({**fact, "id": known[content]}, scope))
        ids.append(known[content])
    return (with_facts(document, latest([*held, *new])[0]) if new else document), ids
