"""Scoping: what an update has for this conversation and for projects, beside what holds everywhere. Pure.

Each scope is a small memory of its own: its facts pass the same steps and gates, and nothing of one scope confirms,
replaces or evicts what is of another. What is for a project whose members may read it goes into the outbox, if every
message that it quotes is marked for the project and it tells nothing of the rest; everything else stays private.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Protocol, TypeVar

from msgspec import structs

from memd.context import Message
from memd.extraction.update import ConfirmedFact, NewFact, RetiredFact, Update
from memd.memory import scoped
from memd.memory.categories import category_or_default
from memd.memory.document import Document, Fact, archive_of, facts_of, summaries_of
from memd.memory.draft import Applied, Draft, Part, Refusal
from memd.memory.duplicates import key_of
from memd.memory.evidence import UserMessages
from memd.memory.facts import USER_SCOPE, Evidence, Scope, archive_with, archived, content_of, id_of, scope_of
from memd.memory.new_facts import new_fact
from memd.memory.projects import outbox
from memd.memory.projects.leaks import Fence, is_personal
from memd.memory.projects.shared import Projects
from memd.memory.session_facts import SESSION_TIME, SaidForGood, newest, renewed
from memd.memory.subjects import person_named
from memd.memory.text import aside, one_line
from memd.push.redaction import redact

T = TypeVar("T")

Numbered = list[tuple[int, T]]
"""Items of one part of an update with their places there."""


class Steps(Protocol):
    """The steps of `apply` on one draft."""

    def confirm(self, confirmed: Iterable[tuple[int, ConfirmedFact]]) -> None:
        """Count facts that the user stated again."""
        ...

    def add(self, proposed: Sequence[tuple[int, NewFact]]) -> None:
        """Add what passes the gates."""
        ...

    def retire(self, retired: Iterable[tuple[int, RetiredFact]]) -> None:
        """Archive facts that the user said are over."""
        ...

    def proof(self, index: int, proposal: NewFact, content: str, person: str) -> list[Evidence]:
        """The evidence of a fact that passes every gate; empty when it is refused."""
        ...


@dataclass
class ScopePart:
    """What an update has for one scope."""

    new: Numbered[NewFact] = field(default_factory=list)
    confirmed: Numbered[ConfirmedFact] = field(default_factory=list)
    retired: Numbered[RetiredFact] = field(default_factory=list)


class Scoping:
    """Sorts one update by scopes, and applies what is not for everywhere."""

    def __init__(
        self,
        draft: Draft,
        update: Update,
        sent: Sequence[Message],
        taken: Sequence[Message],
        messages: UserMessages,
        projects: Projects,
    ):
        """`sent`: the messages of the update; `taken`: all that it brings. `projects`: those to which the user may
        add."""
        self._draft = draft
        self._session = scoped.session(draft.origin.session)
        self._taken = (*taken, *sent)
        self._sent = sent
        self._messages = messages
        self._projects = projects
        self._marks = {message.identity: message.project for message in sent if message.project}
        self.scopes = frozenset(scopes_of(draft.origin.session, sent))
        visible = scoped.within(draft.old, self.scopes)
        self._scope_of_id = {id_of(fact): scope_of(fact) for fact in visible}
        self._project_of_id = {id_of(fact): name for name, shared in projects.items() for fact in shared.facts}
        self._ended_by: dict[int, list[str]] = {}
        self._fences: dict[str, Fence] = {}
        self.everywhere = ScopePart()
        self._scoped: dict[Scope, ScopePart] = {}
        self._shared: dict[str, ScopePart] = {}
        self._sides: dict[Scope, Draft] = {}
        self._repeated: list[Refusal] = []
        self._sort(update)

    @property
    def visible(self) -> frozenset[str]:
        """Ids of the scoped facts that the extractor was shown."""
        return frozenset(self._scope_of_id)

    @property
    def known(self) -> frozenset[str]:
        """Ids of the scoped facts, and of those of projects, that the extractor was shown."""
        return frozenset((*self._scope_of_id, *self._project_of_id))

    def apply(self, steps: Steps, steps_of: Callable[[Draft], Steps]) -> list[outbox.OutboxEntry]:
        """Apply what is scoped, and return what goes to projects. `steps`: of what holds everywhere, applied."""
        entries: list[outbox.OutboxEntry] = []
        for project_id, part in self._shared.items():
            if items := self._items(project_id, part, steps):
                entries.append(outbox.entry_of(self._draft.old, project_id, self._draft.origin.thread_id, items))
        own, doubtful = scoped.facts_of(self._draft.old), set(self._draft.doubtful)
        for scope, part in self._scoped.items():
            side = self._draft.beside([fact for fact in own if scope_of(fact) == scope])
            side_steps = steps_of(side)
            side_steps.confirm(part.confirmed)
            side_steps.add(self._in_time(scope, part.new))
            side_steps.retire(part.retired)
            self._sides[scope] = side
            for name in side.doubtful.keys() - doubtful:
                [side.doubtful[name]] = self._renewed([scoped.placed(side.doubtful[name], scope)])
            doubtful |= side.doubtful.keys()
        return entries

    def _in_time(self, scope: Scope, new: Numbered[NewFact]) -> Numbered[NewFact]:
        """The new facts of a scope; those of a conversation that is over by now are refused, and kept nowhere."""
        if scope != self._session or self._newest + SESSION_TIME > self._draft.origin.now:
            return new
        for index, _ in new:
            self._draft.refuse("expired", "newFacts", index)
        return []

    @cached_property
    def _newest(self) -> datetime:
        facts = (*self._draft.facts.values(), *scoped.facts_of(self._draft.old))
        return newest(self._session, self._taken, facts, self._draft.origin.now)

    def _renewed(self, facts: Iterable[Fact]) -> list[Fact]:
        return renewed(facts, self._session, self._newest, self._draft.origin.now)

    def finish(self, applied: Applied, entries: Sequence[outbox.OutboxEntry]) -> Applied:
        """The result with the scoped facts in its document, and with its outbox."""
        document = outbox.with_entries(applied.document, entries)
        own = scoped.facts_of(self._draft.old)
        if not own and not self._sides:
            return replace(applied, document=document)
        facts = [fact for fact in own if scope_of(fact) not in self._sides]
        over: list[Fact] = []
        for scope, side in self._sides.items():
            facts += [scoped.placed(fact, scope) for fact in side.facts.values()]
            over += [scoped.placed(fact, scope) for fact in side.archived]
        facts, said_for_good = self._without_lasting(self._renewed(facts), applied)
        facts, past = scoped.ended(facts, self._draft.origin.now)
        facts, many = scoped.latest(facts)
        now = self._draft.now
        over += [archived(fact, "replaced", now, replaced_by=by) for fact, by in said_for_good]
        over += [archived(fact, "expired", now) for fact in past]
        over += [archived(fact, "evicted", now) for fact in many]
        archive = archive_with(archive_of(document), over, self._draft.settings.archive_cap)
        sides, alive = self._sides.values(), set(map(id_of, facts))
        return replace(
            applied,
            document=scoped.with_facts({**document, "archive": archive}, facts),
            refusals=(*applied.refusals, *self._repeated),
            added=(*applied.added, *(name for side in sides for name in side.added if name in alive)),
            confirmed=(*applied.confirmed, *(name for side in sides for name in side.confirmed if name in alive)),
            retired=(*applied.retired, *(name for side in sides for name in side.retired)),
        )

    def _sort(self, update: Update) -> None:
        for index, proposal in enumerate(update.new_facts):
            self._sort_new(index, proposal)
        for index, confirmed in enumerate(update.confirmed_facts):
            self._part(confirmed.id).confirmed.append((index, confirmed))
        for index, retired in enumerate(update.retired_facts):
            self._part(retired.id).retired.append((index, retired))

    def _part(self, fact_id: str) -> ScopePart:
        """The part that a known fact belongs to."""
        if scope := self._scope_of_id.get(fact_id):
            return self._scoped.setdefault(scope, ScopePart())
        if project_id := self._project_of_id.get(fact_id):
            return self._shared.setdefault(project_id, ScopePart())
        return self.everywhere

    def _sort_new(self, index: int, proposal: NewFact) -> None:
        scope, shared = self._scope(proposal)
        plain = structs.replace(proposal, scope="user")
        if scope.kind == "session":  # its end is that of the conversation
            plain = structs.replace(plain, durability="durable", valid_days=None)
        if shared:
            self._shared.setdefault(scope.id, ScopePart()).new.append((index, plain))
        elif scope != USER_SCOPE:
            self._scoped.setdefault(scope, ScopePart()).new.append((index, plain))
        else:
            of_session = {name for name, where in self._scope_of_id.items() if where.kind == "session"}
            self._ended_by[index] = [name for name in proposal.replaces if name in of_session]
            own = tuple(name for name in proposal.replaces if name not in self.known)
            self.everywhere.new.append((index, structs.replace(proposal, replaces=own)))

    def _scope(self, proposal: NewFact) -> tuple[Scope, bool]:
        """Where a new fact belongs, and whether it is for all members of a project."""
        if proposal.scope == "thread" and self._draft.settings.session_facts:
            return self._session, False
        if proposal.scope != "project" or not self._marks:
            return USER_SCOPE, False
        marks = self._marks_of(proposal)
        named = sorted(mark for mark in marks if mark)
        if not named:
            return USER_SCOPE, False
        where = scoped.project(named[0])
        if marks != {where.id} or where.id not in self._projects:
            return where, False
        content = one_line(proposal.content)
        category = category_or_default(proposal.category, self._draft.settings.categories, content, "")
        if is_personal(proposal, category) or self._fence(where.id).holds_back(content):
            return where, False
        return where, True

    def _marks_of(self, proposal: NewFact) -> set[str]:
        """The projects of the messages that a fact quotes; "" for one without a mark."""
        person = person_named(proposal)
        quoted = self._messages.identities(self._messages.evidence(proposal.evidence, person))
        return {self._marks.get(identity, "") for identity in quoted}

    def _fence(self, project_id: str) -> Fence:
        if project_id not in self._fences:
            draft = self._draft
            around = (*draft.origin.before, *self._sent)
            private = [message.content for message in around if message.project != project_id]
            private += map(content_of, facts_of(draft.old))
            private += (content_of(fact) for fact in scoped.facts_of(draft.old))
            private += (text for _, text in summaries_of(draft.old))
            others = (shared.facts for name, shared in self._projects.items() if name != project_id)
            private += (content_of(fact) for facts in others for fact in facts)
            open_to_all = [message.content for message in around if message.project == project_id]
            open_to_all += map(content_of, self._projects[project_id].facts)
            self._fences[project_id] = Fence(private, open_to_all)
        return self._fences[project_id]

    def _items(self, project_id: str, part: ScopePart, steps: Steps) -> list[outbox.Item]:
        """What goes into the outbox for one project."""
        items: list[outbox.Item] = []
        ids = {id_of(fact) for fact in self._projects[project_id].facts}
        for index, proposal in part.new:
            content = one_line(proposal.content)
            plain = structs.replace(proposal, backstory=None)
            if evidence := steps.proof(index, plain, content, ""):
                fact = new_fact(
                    "", plain, content, plain.confidence, evidence, self._draft.origin, self._draft.settings
                )
                fact.pop("id")
                replaced = [name for name in plain.replaces if name in ids]
                fact |= self._messages.sources(evidence)
                items.append(outbox.added(fact, replaced, self._messages.identities(evidence)))
        for name, confirmed in part.confirmed:
            if proven := self._proven("confirmedFacts", name, confirmed.quote, project_id):
                items.append(outbox.confirmed(confirmed.id, *proven))
        for name, retired in part.retired:
            if proven := self._proven("retiredFacts", name, retired.quote, project_id):
                note = redact(aside(retired.reason))[0]
                items.append(outbox.retired(retired.id, proven[0], note, proven[1]))
        return items

    def _proven(self, part: Part, index: int, quote: str, project_id: str) -> tuple[list[Evidence], list[str]] | None:
        """The evidence of a quote and the messages it is from; None, and refused, where they are not the project's."""
        evidence = self._messages.quote(quote)
        identities = self._messages.identities(evidence)
        if not evidence:
            self._draft.refuse(self._messages.why_not([quote]), part, index)
        elif any(self._marks.get(identity) != project_id for identity in identities):
            self._draft.refuse("not_of_project", part, index)
        else:
            return evidence, identities
        return None

    def _without_lasting(self, facts: Sequence[Fact], applied: Applied) -> tuple[list[Fact], list[tuple[Fact, str]]]:
        """Without the session facts that now hold everywhere, and these with the ids of those that say so.

        A new one that says what is known to last is only refused.
        """
        lasting = facts_of(applied.document)
        heard = {*applied.added, *applied.confirmed}
        for_good = SaidForGood([fact for fact in lasting if id_of(fact) in heard], self._draft.settings.near_duplicate)
        by_key = {key_of(fact): id_of(fact) for fact in lasting} if self._session in self._sides else {}
        ended = {name: by for by, index in self._draft.added.items() for name in self._ended_by.get(index, ())}
        new = self._sides[self._session].added if self._session in self._sides else {}
        kept: list[Fact] = []
        over: list[tuple[Fact, str]] = []
        for fact in facts:
            same = by_key.get(key_of(fact)) if scope_of(fact) == self._session else None
            by = ended.get(id_of(fact)) or for_good.by(fact) or same
            if by is None:
                kept.append(fact)
            elif id_of(fact) in new:
                self._repeated.append(Refusal("repeated", "newFacts", new[id_of(fact)]))
            else:
                over.append((fact, by))
        return kept, over


def known_besides(document: Document, scopes: Collection[Scope], projects: Projects) -> frozenset[str]:
    """Ids of facts that an extractor may have been shown, besides those that hold everywhere."""
    shared = (fact for project in projects.values() for fact in project.facts)
    return frozenset(id_of(fact) for fact in (*scoped.within(document, scopes), *shared))


def scopes_of(thread: str, messages: Iterable[Message]) -> set[Scope]:
    """The scopes whose facts belong to a request: its conversation, by its name in the ledger, and the projects of its
    marks."""
    return {scoped.session(thread), *(scoped.project(message.project) for message in messages if message.project)}


def visible_to(document: Document, thread: str, messages: Iterable[Message]) -> Document:
    """The document as a request of this conversation shows it."""
    return scoped.visible(document, scopes_of(thread, messages))
