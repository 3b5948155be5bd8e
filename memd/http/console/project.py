"""Projects, as one user sees them, with that user's rights: members, facts, disputes, decisions, timeline.

What the user may not see is not there: the answer is that for a project which was never made, and takes as long.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from memd.errors import Rejected
from memd.http.console.page import Shown, Visit, address
from memd.http.keyring import Users
from memd.http.projects import REFUSAL_S, UNKNOWN
from memd.memory.document import Document, Fact
from memd.memory.facts import (
    category_of,
    confidence_of,
    content_of,
    created_by,
    evidence_of,
    id_of,
    said_at_of,
)
from memd.memory.hand import profile_edits
from memd.memory.profiles import PROJECT_FIELDS, profile_of
from memd.memory.projects.members import ProjectMember, members_of
from memd.memory.projects.proofs import is_of_alone
from memd.memory.projects.rights import ROLES, Standing, may
from memd.projects.project import Project
from memd.projects.timeline import timeline

T = TypeVar("T")

LIST, PATH = "/console/projects", "/console/project"
ROWS = 50
"""Projects, facts, members or moments on one page."""
STATUSES = ("active", "superseded", "archived", "all")


class ProjectQuote(NamedTuple):
    """A quote, and who said it when (ISO 8601)."""

    by: str
    quote: str
    said_at: str


class ProjectFactRow(NamedTuple):
    """A fact as the user sees it, and what the user may do with it. `disputes`: the words of those that say otherwise.

    `private`: the user alone knows it; `public`: any token of the project's app may read it.
    """

    fact_id: str
    content: str
    category: str
    confidence: float
    by: str
    said_at: str
    status: str
    quotes: list[ProjectQuote]
    private: bool
    public: bool
    disputes: list[str]
    may_publish: bool
    may_hide: bool
    may_decide: bool


class MemberRow(NamedTuple):
    """A member, and whether the user may change or remove them. `named`: whether the token names them, too."""

    user_id: str
    role: str
    since: str
    changeable: bool
    leaves: bool
    named: bool


def projects(visit: Visit) -> Shown:
    """The page of a user's projects."""
    found = visit.service.memd.projects(visit.user, app=_app(visit))
    start = visit.start()
    following = {"user": visit.user, "after": start + ROWS}
    more = address(LIST, **following) if start + ROWS < len(found) else ""
    return Shown("projects.html", {"user": visit.user, "rows": found[start : start + ROWS], "more_href": more})


def project(visit: Visit) -> Shown:
    """The page of one project."""
    return _with(visit, lambda opened: Shown("project.html", _data(visit, opened)))


def set_role(visit: Visit) -> str:
    """Add a member, or give one another role."""
    _with(visit, lambda opened: opened.set_member(visit.value("member"), visit.value("role")))
    visit.say("{member} has the role {role} now", member=visit.value("member"), role=visit.value("role"))
    return _back(visit)


def remove_member(visit: Visit) -> str:
    """Remove a member; of oneself: leave."""
    member = visit.value("member")
    _with(visit, lambda opened: opened.remove_member(member))
    visit.say("{member} is no member any more", member=member)
    return address(LIST, user=visit.user) if member == visit.user else _back(visit)


def publish(visit: Visit) -> str:
    """Share a fact that the user alone knows."""
    _with(visit, lambda opened: opened.publish(visit.value("id")))
    visit.say("The members see this fact now")
    return _back(visit)


def hide(visit: Visit) -> str:
    """Take a fact back that the user alone has said."""
    _with(visit, lambda opened: opened.hide(visit.value("id")))
    visit.say("This fact is the user's own again")
    return _back(visit)


def decide(visit: Visit) -> str:
    """Settle a dispute for a fact."""
    _with(visit, lambda opened: opened.decide(visit.value("id")))
    visit.say("The dispute is settled; what said otherwise is in the archive")
    return _back(visit)


def _with(visit: Visit, act: Callable[[Project], T]) -> T:
    """Do something with the project that the request names, as the user it names, by the token's app.

    A refusal that tells nothing takes REFUSAL_S, whether the project exists or not.
    """
    began = time.monotonic()
    try:
        return act(visit.service.memd.project(visit.value("project"), as_user=visit.user, app=_app(visit)))
    except Rejected as error:
        if error.code == UNKNOWN:
            time.sleep(max(0.0, REFUSAL_S - (time.monotonic() - began)))
        raise


def _data(visit: Visit, opened: Project) -> dict[str, Any]:
    """What the page shows. Who is no member sees what is public, and nothing else."""
    status = visit.value("status", "active")
    facts = opened.facts(status=status)
    document = _members_document(opened)
    members = members_of(document)
    role: Standing = members[visit.user].role if visit.user in members else "app"
    acting: Standing = role if visit.may("person") else "stranger"
    rows = sorted(fact_rows(facts, visit.user, acting), key=lambda row: (row.category, -row.confidence))
    moments = sorted(timeline(document), key=lambda moment: moment.at, reverse=True)
    everybody = member_rows(members, visit.user, acting, visit.login.token.users)
    profile = profile_edits.shown(profile_of(document))

    def page(items: Sequence[T], name: str) -> tuple[Sequence[T], str]:
        """The items of this page, and the address of the next one. `name`: the field that says where it starts."""
        start = visit.start(name)
        named = {"user": visit.user, "project": opened.id, "status": visit.value("status"), name: start + ROWS}
        return items[start : start + ROWS], address(PATH, **named) if start + ROWS < len(items) else ""

    shown, more = page(rows, "after")
    some_members, more_members = page(everybody, "members")
    some_moments, more_moments = page(moments, "moments")
    return {
        "user": visit.user,
        "project": opened.id,
        "role": role,
        "roles": [one for one in ROLES if one != "owner" or role == "owner"],
        "is_member": bool(members),
        "status": status,
        "statuses": STATUSES,
        "count": len(facts),
        "groups": [(name, list(group)) for name, group in groupby(shown, lambda row: row.category)],
        "more_href": more,
        "disputed": [row for row in rows if row.disputes][:ROWS],
        "decisions": [one for one in moments if one.category == "decision" and not one.ended][:ROWS],
        "days": [(day, list(group)) for day, group in groupby(some_moments, lambda moment: moment.at[:10])],
        "days_href": more_moments,
        "members": some_members,
        "member_count": len(everybody),
        "members_href": more_members,
        "may_members": may(acting, "members"),
        "profile": {PROJECT_FIELDS[name].label: entry["value"] for name, entry in profile.items()},
    }


def fact_rows(facts: Sequence[Fact], user_id: str, standing: Standing) -> list[ProjectFactRow]:
    """The facts, listed as `Project.facts` does, and what somebody of this standing may do with each."""
    shown = {id_of(fact): fact for fact in facts if fact["status"] == "active" and not _is_private(fact)}
    against: defaultdict[str, list[str]] = defaultdict(list)
    for name, fact in shown.items():
        for other in fact.get("disputes", ()):
            if other in shown:
                against[name].append(content_of(shown[other]))
                against[other].append(content_of(fact))
    return [
        _row(fact, against[id_of(fact)] if shown.get(id_of(fact)) is fact else [], user_id, standing) for fact in facts
    ]


def _row(fact: Fact, disputes: list[str], user_id: str, standing: Standing) -> ProjectFactRow:
    private, shared = _is_private(fact), fact["status"] == "active" and not _is_private(fact)
    own = created_by(fact) == user_id
    return ProjectFactRow(
        fact_id=id_of(fact),
        content=content_of(fact),
        category=category_of(fact),
        confidence=confidence_of(fact),
        by=created_by(fact),
        said_at=said_at_of(fact),
        status=fact["status"],
        quotes=[
            ProjectQuote(str(entry.get("by", "")), entry["quote"], str(entry.get("saidAt", "")))
            for entry in evidence_of(fact)
            if isinstance(entry.get("quote"), str)
        ],
        private=private,
        public=fact.get("visibility") == "public",
        disputes=disputes,
        may_publish=private and may(standing, "create"),
        may_hide=shared and may(standing, "hide", own=own) and is_of_alone(fact, user_id),
        may_decide=bool(disputes) and may(standing, "decide"),
    )


def member_rows(
    members: Mapping[str, ProjectMember], user_id: str, standing: Standing, named: Users
) -> list[MemberRow]:
    """The members, and which of them somebody of this standing may change. `named`: the users of the token."""
    return [
        MemberRow(
            name,
            member.role,
            member.since,
            changeable=may(standing, "members") and (member.role != "owner" or standing == "owner"),
            leaves=name == user_id and standing != "stranger",
            named=name in named,
        )
        for name, member in members.items()
    ]


def _members_document(opened: Project) -> Document:
    """The project's document; an empty one for who is no member and sees only what is public."""
    try:
        return opened.check("see_members")
    except Rejected as error:
        if error.code == UNKNOWN:
            return {}
        raise


def _is_private(fact: Fact) -> bool:
    return fact.get("visibility") == "owner_only"


def _app(visit: Visit) -> str | None:
    """The app of the token, as the HTTP API tells it to projects; None for the person who runs memd."""
    return visit.login.token.app or None


def _back(visit: Visit) -> str:
    return address(PATH, user=visit.user, project=visit.value("project"))
