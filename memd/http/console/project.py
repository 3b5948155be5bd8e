"""Projects, as one user sees them, with that user's rights: members, facts, disputes, decisions, timeline.

What the user may not see is not there: the answer is that for a project which was never made, and takes as long.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from memd.errors import Rejected
from memd.http.console.page import Shown, Visit, address
from memd.http.projects import REFUSAL_S, UNKNOWN
from memd.memory.document import Fact
from memd.memory.facts import (
    category_of,
    confidence_of,
    content_of,
    created_by,
    evidence_of,
    id_of,
    said_at_of,
)
from memd.memory.profiles import PROJECT_FIELDS
from memd.memory.projects.members import ProjectMember
from memd.memory.projects.proofs import is_of_alone
from memd.memory.projects.rights import ROLES, Standing, may
from memd.projects.project import Project
from memd.projects.timeline import Moment

T = TypeVar("T")

LIST, PATH = "/console/projects", "/console/project"
ROWS = 100
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
    """A member, and whether the user may change or remove them."""

    user_id: str
    role: str
    since: str
    changeable: bool
    leaves: bool


def projects(visit: Visit) -> Shown:
    """The page of a user's projects."""
    found = visit.service.memd.projects(visit.user, app=_app(visit))
    start = _start(visit)
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
    members = _members(opened)
    role: Standing = members[visit.user].role if visit.user in members else "app"
    person = visit.may("person")
    rows = fact_rows(facts, visit.user, role) if person else fact_rows(facts, visit.user, "stranger")
    moments = opened.timeline() if members else []
    start, member_start = _start(visit), _start(visit, "members")
    ordered = sorted(rows, key=lambda row: (row.category, -row.confidence))
    everybody = member_rows(members, visit.user, role if person else "stranger")
    named = {"user": visit.user, "project": opened.id, "status": visit.value("status")}
    return {
        "user": visit.user,
        "project": opened.id,
        "role": role,
        "roles": [one for one in ROLES if one != "owner" or role == "owner"],
        "is_member": bool(members),
        "status": status,
        "statuses": STATUSES,
        "count": len(facts),
        "groups": _by_category(ordered[start : start + ROWS]),
        "more_href": address(PATH, **named, after=start + ROWS) if start + ROWS < len(rows) else "",
        "disputed": [row for row in rows if row.disputes],
        "decisions": [moment for moment in moments if moment.category == "decision" and not moment.ended][::-1],
        "days": days_of(moments),
        "members": everybody[member_start : member_start + ROWS],
        "member_count": len(everybody),
        "members_href": address(PATH, **named, members=member_start + ROWS)
        if member_start + ROWS < len(everybody)
        else "",
        "may_members": person and may(role, "members"),
        "profile": {name: entry for name, entry in opened.profile().items() if name != "keyDecisions"}
        if members
        else {},
        "fields": PROJECT_FIELDS,
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


def member_rows(members: dict[str, ProjectMember], user_id: str, standing: Standing) -> list[MemberRow]:
    """The members, and which of them somebody of this standing may change."""
    return [
        MemberRow(
            name,
            member.role,
            member.since,
            changeable=may(standing, "members") and (member.role != "owner" or standing == "owner"),
            leaves=name == user_id and standing != "stranger",
        )
        for name, member in members.items()
    ]


def days_of(moments: Sequence[Moment]) -> list[tuple[str, list[Moment]]]:
    """The moments by day, the latest first."""
    ordered = sorted(moments, key=lambda moment: moment.at, reverse=True)
    return [(day, list(group)) for day, group in groupby(ordered, key=lambda moment: moment.at[:10])]


def _by_category(rows: Sequence[ProjectFactRow]) -> list[tuple[str, list[ProjectFactRow]]]:
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: row.category)]


def _members(opened: Project) -> dict[str, ProjectMember]:
    """The members; none for who is none and sees only what is public."""
    try:
        return opened.members()
    except Rejected as error:
        if error.code == UNKNOWN:
            return {}
        raise


def _is_private(fact: Fact) -> bool:
    return fact.get("visibility") == "owner_only"


def _app(visit: Visit) -> str | None:
    """The app of the token, as the HTTP API tells it to projects; None for the person who runs memd."""
    return visit.login.token.app or None


def _start(visit: Visit, name: str = "after") -> int:
    text = visit.value(name)
    return int(text) if text.isdecimal() and len(text) < 7 else 0


def _back(visit: Visit) -> str:
    return address(PATH, user=visit.user, project=visit.value("project"))
