"""Projects: what members' conversations put into a project, what they keep out of it, and who may read what.

Each project is played in memory: the sessions in their order, each through apply and delivery as a worker does it, with
the reply of a model that labels by the prompt; sloppy replies mix what is private into sentences for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify, of_project
from memd.evaluation.lines import read_lines
from memd.extraction.update import Evidence, NewFact, Subject, Update
from memd.memory import ledger, scoped
from memd.memory.apply import apply
from memd.memory.document import Document, Fact, empty_document, facts_of, ledger_of
from memd.memory.facts import content_of, id_of, readable_facts
from memd.memory.new_facts import Origin
from memd.memory.projects.delivery import deliver, proofs_of
from memd.memory.projects.members import founded, left, standing_of, with_member
from memd.memory.projects.outbox import outbox_of, without_entries
from memd.memory.projects.rights import may
from memd.memory.projects.shared import Projects, SharedProject
from memd.push.times import iso

BEGIN = datetime(2026, 11, 2, 9, tzinfo=UTC)
STRANGER = "nobody in particular"


class SaidTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of a user. `marked`: its push named the project."""

    text: str
    marked: bool


class LabelledFact(Struct, frozen=True, forbid_unknown_fields=True):
    """One fact of a reply. `replaces`: a word of the project's fact that it replaces."""

    content: str
    message: int
    quote: str
    category: str
    scope: str
    replaces: str = ""
    subject: str = ""


class ProjectSession(Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation of a member, and the reply to it. `sloppy`: the reply mixes in what is private."""

    user: str
    thread: str
    messages: tuple[SaidTurn, ...]
    facts: tuple[LabelledFact, ...]
    sloppy: bool = False


class PrivateThing(Struct, frozen=True, forbid_unknown_fields=True):
    """What only one user may read, by the words that tell it."""

    of: str
    terms: tuple[str, ...]


class LabelledProject(Struct, frozen=True, forbid_unknown_fields=True):
    """A project: members and roles, who leaves at the end, conversations in their order, and what is right.

    `shared`: what the project must hold, each by words that stand in one fact. `disputes`: pairs of facts, by a word of
    each, that must stand side by side.
    """

    project: str
    language: str
    members: dict[str, str]
    leave: tuple[str, ...]
    sessions: tuple[ProjectSession, ...]
    shared: tuple[tuple[str, ...], ...]
    secret: tuple[PrivateThing, ...]
    disputes: tuple[tuple[str, str], ...]


@dataclass
class Counts:
    """Each figure as how many, of how many."""

    of: dict[str, list[int]] = field(default_factory=dict)

    def add(self, name: str, hits: int, cases: int) -> None:
        """Count cases of a figure."""
        known = self.of.setdefault(name, [0, 0])
        known[0] += hits
        known[1] += cases


class ProjectFigure(NamedTuple):
    """What a figure counts, and whether more of it is better."""

    counts: str
    more: bool


FIGURES = {
    "shared": ProjectFigure("facts of the project that it holds", True),
    "published": ProjectFigure("private things that stand in the project", False),
    "disputes": ProjectFigure("disputes whose both sides stand, one naming the other", True),
    "seen": ProjectFigure("reads that show another's private thing, or the project to who may not read it", False),
}


def measure_projects(paths: Iterable[Path]) -> dict[str, dict[str, list[int]]]:
    """The counts of each figure, for open and held-out projects. Raises BadLabels."""
    found = {"open": Counts(), "held_out": Counts()}
    for line in read_lines(paths, LabelledProject):
        _count(found["held_out" if line.held_out else "open"], line.value)
    return {part: counts.of for part, counts in found.items()}


def _count(counts: Counts, labelled: LabelledProject) -> None:
    project, memories = play(labelled)
    facts = facts_of(project)
    counts.add("shared", sum(_holds(facts, terms) for terms in labelled.shared), len(labelled.shared))
    counts.add("published", sum(_holds(facts, secret.terms) for secret in labelled.secret), len(labelled.secret))
    by_id = {id_of(fact): fact for fact in facts}
    disputed = [
        (content_of(fact), content_of(by_id[one])) for fact in facts for one in fact.get("disputes", ()) if one in by_id
    ]
    stand = sum(
        any({first in said.casefold() or second in said.casefold() for said in pair} == {True} for pair in disputed)
        for first, second in labelled.disputes
    )
    counts.add("disputes", stand, len(labelled.disputes))
    readers = [*dict.fromkeys((*labelled.members, *(one.user for one in labelled.sessions), STRANGER))]
    for reader in readers:
        visible = seen_by(project, memories.get(reader), reader, labelled.project)
        others = [secret for secret in labelled.secret if secret.of != reader]
        is_member = may(standing_of(project, reader), "read")
        shared = [] if is_member else labelled.shared
        wrong = sum(_holds(visible, secret.terms) for secret in others) + sum(_holds(visible, one) for one in shared)
        counts.add("seen", wrong, len(others) + len(shared))


def play(labelled: LabelledProject) -> tuple[Document, dict[str, Document]]:
    """The project and its users' memories after all sessions, and after those who leave have left."""
    place = of_project(labelled.project)
    owner = next(user for user, role in labelled.members.items() if role == "owner")
    project = founded(empty_document(place), "", owner, iso(BEGIN))
    for user, role in labelled.members.items():
        project = with_member(project, user, role, iso(BEGIN))
    memories: dict[str, Document] = {}
    for number, session in enumerate(labelled.sessions):
        now = BEGIN + timedelta(hours=number)
        before = memories.get(session.user) or empty_document(Bucket(session.user))
        after = _applied(labelled.project, project, before, session, now)
        for entry in outbox_of(after):
            known = ledger.known(ledger_of(project), proofs_of(entry, session.user))
            delivered = deliver(project, entry, session.user, ApplySettings(), now, known)
            project = delivered.document
            private = (item["fact"] for item in delivered.private)
            after = without_entries(scoped.with_private(after, entry.project_id, private)[0], {entry.id})
        memories[session.user] = after
    for user in labelled.leave:
        project = left(project, user)
    return project, memories


def _applied(project_id: str, project: Document, own: Document, session: ProjectSession, now: datetime) -> Document:
    turns = [Message("user", turn.text, id=f"{session.thread}-{n}") for n, turn in enumerate(session.messages)]
    marks = [project_id if turn.marked else "" for turn in session.messages]
    sent = [
        _taken(message, mark, now, order)
        for order, (message, mark) in enumerate(zip(identify(session.thread, turns), marks, strict=True), 1)
    ]
    shown: Projects = {}
    if may(standing_of(project, session.user), "create"):
        shown = {project_id: SharedProject(readable_facts(project))}
    update = Update(new_facts=tuple(_new_fact(fact, project) for fact in session.facts))
    origin = Origin(session.thread, now, "labels", "labels")
    return apply(own, update, sent, sent, origin, ApplySettings(), projects=shown).document


def _taken(message: Message, mark: str, now: datetime, order: int) -> Message:
    fields: dict[str, Any] = {name: getattr(message, name) for name in message.__struct_fields__}
    return Message(**{**fields, "project": mark, "at": iso(now), "said_at": iso(now), "order": order})


def _new_fact(fact: LabelledFact, project: Document) -> NewFact:
    named = [id_of(one) for one in facts_of(project) if fact.replaces and fact.replaces in content_of(one)]
    return NewFact(
        fact.content,
        fact.category,
        0.95,
        "project" if fact.scope == "project" else "user",
        "durable",
        "descriptive",
        (Evidence(fact.message, fact.quote),),
        subject=Subject(fact.subject, "colleague") if fact.subject else None,
        replaces=tuple(named),
    )


def seen_by(project: Document, memory: Document | None, reader: str, project_id: str) -> list[Fact]:
    """The facts that a read of this user shows which names the project: their own, and what they may read of it."""
    own = facts_of(scoped.visible(memory, {scoped.project(project_id)})) if memory is not None else ()
    standing = standing_of(project, reader)
    return [*own, *(fact for fact in facts_of(project) if may(standing, "read", _visibility(fact)))]


def _visibility(fact: Mapping[str, Any]) -> Any:
    return "public" if fact.get("visibility") == "public" else "members"


def _holds(facts: Iterable[Fact], terms: Iterable[str]) -> bool:
    """Whether one of the facts has all these words."""
    wanted = [term.casefold() for term in terms]
    return any(all(term in content_of(fact).casefold() for term in wanted) for fact in facts)


def markdown(found: Mapping[str, Mapping[str, list[int]]]) -> Iterator[str]:
    """The figures as a table."""
    yield "| figure | counts | open | held out |"
    yield "|---|---|---|---|"
    for name, figure in FIGURES.items():
        cells = ("{}/{}".format(*found[part].get(name, [0, 0])) for part in ("open", "held_out"))
        yield f"| `{name}` | {figure.counts} | {' | '.join(cells)} |"
