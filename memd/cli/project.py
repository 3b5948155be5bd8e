"""Projects: make and list them, their members, facts and decisions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from memd.cli.bars import bar
from memd.cli.common import FactId, Json, Yes, completes, confirm, echo, echo_json, nothing, settings, warn
from memd.cli.fact_changes import content_given
from memd.cli.fact_filters import ByStatus, Categories, Member, PeriodBy, Since, Until
from memd.cli.output import Output, write_private
from memd.cli.tables import table
from memd.client import Memd
from memd.memory.facts import category_of, content_of, created_by, id_of, said_at_of
from memd.memory.projects.rights import ROLES, Visibility
from memd.ops.audit.verb import of_project_document
from memd.printable import counted, printable
from memd.projects.project import Project

ProjectId = Annotated[str, typer.Argument(metavar="PROJECT", help="The project's id.")]
AsUser = Annotated[
    str | None,
    typer.Option("--as", metavar="USER", help="As this user, with their rights.", autocompletion=completes("user")),
]
MemberId = Annotated[str, typer.Argument(metavar="USER", help="The member's id.", autocompletion=completes("user"))]
Sentence = Annotated[str, typer.Argument(help="The fact, one sentence; - reads it from stdin.")]
NewSentence = Annotated[str | None, typer.Option("--content", help="The new sentence; - reads it from stdin.")]
Category = Annotated[str | None, typer.Option("--category", help="One of the categories of `apply.categories`.")]

project = typer.Typer(
    help="Make and list projects, their members, facts and decisions.\n\n"
    "A project is memory that several users share. Without --as, commands act as whoever runs memd, who may do "
    "everything.",
    no_args_is_help=True,
)


def _opened(memd: Memd, project_id: str, user: str | None) -> Project:
    return memd.project(project_id, as_user=user)


@project.command()
def make(
    project_id: ProjectId,
    owner: Annotated[str, typer.Option("--owner", metavar="USER", help="The user who owns it.")],
    app: Annotated[str, typer.Option("--app", help="Only tokens and lists of this app reach it.")] = "",
) -> None:
    """Make a project. Its id is never used again, not even after it was closed.

    Example: memd project make apollo --owner ana
    """
    with Memd(settings()) as memd:
        memd.project(project_id).make(owner, app=app)
    echo(f"{printable(project_id)}: made, owned by {printable(owner)}")


@project.command("list")
def list_(
    user: Annotated[str | None, typer.Option("--user", help="Only those of which this user is a member.")] = None,
    as_json: Json = False,
) -> None:
    """List projects: members, facts, last change.

    Example: memd project list --user ana
    """
    with Memd(settings()) as memd, bar("reading"):
        found = memd.projects(user)
    if as_json:
        echo_json([row._asdict() for row in found])
    elif found:
        rows = (
            (row.project_id, row.role or "-", row.app or "any", row.members, row.facts, row.changed_at[:10])
            for row in found
        )
        table(("project", "role", "app", "members", "facts", "changed"), _clean(rows), ("members", "facts"))
    else:
        nothing("no projects")


@project.command()
def members(project_id: ProjectId, user: AsUser = None, as_json: Json = False) -> None:
    """List the members of a project with their roles.

    Example: memd project members apollo
    """
    with Memd(settings()) as memd:
        found = _opened(memd, project_id, user).members()
    if as_json:
        echo_json({name: member._asdict() for name, member in found.items()})
    else:
        table(("user", "role", "since"), _clean((name, one.role, one.since[:10]) for name, one in found.items()))


@project.command()
def role(
    project_id: ProjectId,
    member: MemberId,
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"{', '.join(ROLES)}.")],
    user: AsUser = None,
) -> None:
    """Add a member, or give one another role.

    Owners and admins may do everything, editors read everything and change their own, viewers read.

    Example: memd project role apollo ben editor
    """
    with Memd(settings()) as memd:
        _opened(memd, project_id, user).set_member(member, role)
    echo(f"{printable(member)}: {role} of {printable(project_id)}")


@project.command("remove-member")
def remove_member(project_id: ProjectId, member: MemberId, user: AsUser = None) -> None:
    """Remove a member, who loses access at once; what they said to the project stays.

    Example: memd project remove-member apollo ben
    """
    with Memd(settings()) as memd:
        _opened(memd, project_id, user).remove_member(member)
    echo(f"{printable(member)}: no member of {printable(project_id)}")


@project.command()
def facts(  # noqa: PLR0913, PLR0917  (each parameter is an option)
    project_id: ProjectId,
    user: AsUser = None,
    category: Categories = None,
    status: ByStatus = "active",
    member: Member = None,
    since: Since = None,
    until: Until = None,
    by: PeriodBy = "learned",
    as_json: Json = False,
) -> None:
    """List the facts of a project, oldest first; with --as also what that user alone knows of it.

    Example: memd project facts apollo --member ben --status all
    """
    with Memd(settings()) as memd:
        found = _opened(memd, project_id, user).facts(
            categories=category or (), status=status, member=member, since=since, until=until, by=by
        )
    if as_json:
        echo_json(found)
    elif found:
        head = ("id", "category", "by", "said", "used", "status", "fact")
        table(head, _clean(map(_row, found)))
    else:
        nothing("no facts")


@project.command()
def why(project_id: ProjectId, fact_id: FactId, user: AsUser = None, as_json: Json = False) -> None:
    """Show who said a fact of a project, in which words and when, and what disputes it.

    Example: memd project why apollo fact_0badcafe
    """
    with Memd(settings()) as memd:
        found = _opened(memd, project_id, user).why(fact_id)
    if as_json:
        echo_json(found)
        return
    fact = found["fact"]
    echo(f"[{printable(category_of(fact))}] {printable(content_of(fact))}")
    for entry in found["evidence"]:
        said = printable(str(entry.get("saidAt", "?")))[:10]
        echo(f"  {said} {printable(str(entry['by']))}: “{printable(entry['quote'])}”")
    for title in ("disputes", "replaced"):
        for other in found[title]:
            echo(f"  {title}: {id_of(other)} ({printable(created_by(other))}) {printable(content_of(other))}")


@project.command()
def timeline(
    project_id: ProjectId, user: AsUser = None, since: Since = None, until: Until = None, as_json: Json = False
) -> None:
    """Show what was decided in a project, with the reason, and what happened, by day.

    Example: memd project timeline apollo --since 2026-03-01
    """
    with Memd(settings()) as memd:
        found = _opened(memd, project_id, user).timeline(since=since or "", until=until or "")
    if as_json:
        echo_json([moment._asdict() for moment in found])
        return
    for moment in found:
        over = f" (until {moment.ended[:10]})" if moment.ended else ""
        echo(f"{moment.at[:10]}  {moment.category}: {printable(moment.content)}{over}")
        if moment.reason:
            echo(f"            because: {printable(moment.reason)}")
    if not found:
        nothing("nothing was decided or happened")


@project.command()
def add(project_id: ProjectId, content: Sentence, category: Category = None, user: AsUser = None) -> None:
    """Add a fact to a project by hand.

    Example: memd project add apollo "The API is frozen until March." --category decision
    """
    with Memd(settings()) as memd:
        fact_id = _opened(memd, project_id, user).add_fact(content_given(content), category=category)
    echo(fact_id)


@project.command()
def edit(
    project_id: ProjectId,
    fact_id: FactId,
    content: NewSentence = None,
    category: Category = None,
    visibility: Annotated[
        str | None, typer.Option("--visibility", help="members, or public: any token of the project's app.")
    ] = None,
    user: AsUser = None,
) -> None:
    """Change a fact of a project: its words, its category, or who may read it.

    Example: memd project edit apollo fact_0badcafe --visibility public
    """
    chosen: Visibility | None = visibility  # type: ignore[assignment]  # checked where it is changed
    with Memd(settings()) as memd:
        _opened(memd, project_id, user).edit_fact(
            fact_id, content=None if content is None else content_given(content), category=category, visibility=chosen
        )
    echo(f"{printable(fact_id)} edited")


@project.command("rm")
def remove(project_id: ProjectId, fact_id: FactId, user: AsUser = None) -> None:
    """Remove a fact of a project, for good.

    Example: memd project rm apollo fact_0badcafe
    """
    with Memd(settings()) as memd:
        _opened(memd, project_id, user).remove_fact(fact_id)
    echo(f"{printable(fact_id)} removed")


@project.command()
def decide(project_id: ProjectId, fact_id: FactId, user: AsUser = None) -> None:
    """Settle a dispute for this fact: those that say otherwise go to the archive.

    Example: memd project decide apollo fact_0badcafe
    """
    with Memd(settings()) as memd:
        _opened(memd, project_id, user).decide(fact_id)
    echo(f"{printable(fact_id)} holds")


@project.command()
def publish(
    project_id: ProjectId,
    fact_id: FactId,
    user: Annotated[str, typer.Option("--as", metavar="USER", help="Whose private fact it is.")],
) -> None:
    """Share a fact that a member alone knows.

    Example: memd project publish apollo fact_0badcafe --as ana
    """
    with Memd(settings()) as memd:
        shared = _opened(memd, project_id, user).publish(fact_id)
    echo(shared)


@project.command()
def hide(
    project_id: ProjectId,
    fact_id: FactId,
    user: Annotated[str, typer.Option("--as", metavar="USER", help="Who said it.")],
) -> None:
    """Take a fact back that one member alone has said: it is theirs alone again.

    Example: memd project hide apollo fact_0badcafe --as ana
    """
    with Memd(settings()) as memd:
        kept = _opened(memd, project_id, user).hide(fact_id)
    echo(kept)


@project.command()
def export(project_id: ProjectId, user: AsUser = None, output: Output = None) -> None:
    """Export a project as JSON: members, facts, archive.

    Example: memd project export apollo -o apollo.json
    """
    with Memd(settings()) as memd:
        found = _opened(memd, project_id, user).export()
    if output is None:
        echo_json(found)
        return
    write_private(output, found)
    warn(f"{counted(len(found['facts']), 'fact')} written")


@project.command()
def audit(project_id: ProjectId, user: AsUser = None, as_json: Json = False) -> None:
    """Find what should not be in a project's memory: junk, duplicates, secrets, stale facts. It changes nothing.

    The exit code is 1 with findings.

    Example: memd project audit apollo
    """
    with Memd(settings()) as memd:
        found = of_project_document(settings(), _opened(memd, project_id, user).check("see_members"))
    if as_json:
        echo_json([asdict(finding) for finding in found])
    elif found:
        rows = ((one.rule, one.fact_id or one.place, one.detail, one.text) for one in found)
        table(("rule", "where", "why", "text"), _clean(rows))
    else:
        echo("nothing found")
    if found:
        raise typer.Exit(1)


@project.command()
def close(project_id: ProjectId, user: AsUser = None, yes: Yes = False) -> None:
    """Close a project, for good: its facts go, and its id is never used again.

    Example: memd project close apollo --yes
    """
    if not yes:
        confirm(f"close {printable(project_id)} and remove all its facts?")
    with Memd(settings()) as memd:
        _opened(memd, project_id, user).close()
    echo(f"{printable(project_id)}: closed")


def _clean(rows: Any) -> list[tuple[str, ...]]:
    return [tuple(printable(str(cell)) for cell in row) for row in rows]


def _row(fact: dict[str, Any]) -> tuple[str, ...]:
    content = content_of(fact)
    if disputes := fact.get("disputes"):
        content += f" (disputes {', '.join(disputes)})"
    private = fact.get("visibility") == "owner_only"
    used = str(fact.get("lastUsedAt") or "")[:10]
    status = "private" if private else str(fact.get("status", "active"))
    return id_of(fact), category_of(fact), created_by(fact), said_at_of(fact)[:10], used, status, content
