"""Facts by hand: list, add, edit, remove."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import typer

from memd.cli import doubtful
from memd.cli.common import (
    Agent,
    DryRun,
    FactId,
    Json,
    OneFact,
    User,
    check_one_or_all,
    completes,
    echo,
    echo_json,
    nothing,
    settings,
    warn,
)
from memd.cli.fact_changes import content_given, editing_of, tell, tell_turns
from memd.cli.fact_filters import ByStatus, Categories, Member, PeriodBy, Scopes, Since, Until
from memd.cli.held_back import After, Limit, UserOrAll, tell_all
from memd.cli.memory import warn_of_damage
from memd.cli.tables import table
from memd.client import Memd
from memd.context import Bucket
from memd.errors import Rejected
from memd.memory.document import Withheld, revision_of
from memd.memory.facts import (
    ArchiveReason,
    archive_note,
    archive_reason,
    archived_at,
    category_of,
    confidence_of,
    content_of,
    created_at,
    id_of,
    is_manual,
    is_note,
    origin_of,
    replaced_by,
    scope_of,
)
from memd.memory.hand.by_hand import bucket_of
from memd.memory.hand.editing import Editing
from memd.memory.hand.steps import checked_category
from memd.printable import printable

Content = Annotated[str, typer.Argument(help="The fact, one sentence; - reads it from stdin.")]
NewContent = Annotated[str | None, typer.Option("--content", help="The new sentence; - reads it from stdin.")]
Category = Annotated[
    str | None,
    typer.Option(
        "--category", help="One of the categories of `apply.categories`.", autocompletion=completes("category")
    ),
]

facts = typer.Typer(
    help="List, add, edit or remove facts by hand. The model never changes a fact that a person wrote.",
    no_args_is_help=True,
)

for command in (doubtful.doubtful, doubtful.approve, doubtful.drop):
    facts.command()(command)


@facts.command("list")
def list_(  # noqa: PLR0913, PLR0917  (each parameter is an option)
    user: User,
    agent: Agent = "",
    category: Categories = None,
    scope: Scopes = None,
    status: ByStatus = "active",
    member: Member = None,
    since: Since = None,
    until: Until = None,
    by: PeriodBy = "learned",
    as_json: Json = False,
) -> None:
    """List the facts of a memory, oldest first, with their status and when a search last found each (used).

    Active facts hold now; superseded ones have another fact in their place; archived ones went for another reason.

    Example: memd facts list ana --category preference

    Example: memd facts list ana --status all --since 2026-03-01 --by said
    """
    for name in category or ():
        checked_category(name, settings().apply)
    bucket = bucket_of(user, agent)
    with Memd(settings()) as memd:
        warn_of_damage(memd, bucket.user_id, bucket.agent_name)
        found = memd.facts(
            bucket.user_id, bucket.agent_name,
            categories=category or (), scopes=scope or (), status=status, member=member,
            since=since, until=until, by=by,
        )  # fmt: skip
    if as_json:
        echo_json(found)
    else:
        _table(found)


@facts.command()
def archived(  # noqa: PLR0913, PLR0917  (each parameter is an option)
    user: User,
    agent: Agent = "",
    reason: Annotated[str | None, typer.Option("--reason", help="Only facts archived for this reason.")] = None,
    category: Categories = None,
    scope: Scopes = None,
    member: Member = None,
    since: Since = None,
    until: Until = None,
    by: PeriodBy = "learned",
    as_json: Json = False,
) -> None:
    """List archived facts, and why each was archived.

    The reasons: replaced, merged, edited (superseded by another fact), retired, expired, stale, evicted.

    Example: memd facts archived ana --reason evicted
    """
    if reason is not None and reason not in get_args(ArchiveReason):
        raise Rejected("E_REASON", f"reason must be one of {', '.join(get_args(ArchiveReason))}", "reason")
    for name in category or ():
        checked_category(name, settings().apply)
    editing, bucket = editing_of(user, agent)
    found = editing.archived(
        bucket,
        reason,
        categories=category or (), scopes=scope or (), member=member, since=since, until=until, by=by,
    )  # fmt: skip
    if as_json:
        echo_json(found)
        return
    for fact in found:
        gone = printable(archived_at(fact) or "?")[:10]
        note = archive_note(fact) or (f"by {replaced_by(fact)}" if replaced_by(fact) else "")
        why = f"{fact['status']}: {printable(archive_reason(fact) or '?')}" + (f" ({printable(note)})" if note else "")
        why += f", last used {fact['lastUsedAt']}" if fact["lastUsedAt"] else ""
        echo(f"{printable(id_of(fact) or '?')}  {gone}  {printable(content_of(fact))}\n    {why}")
    if not found:
        nothing("nothing")


@facts.command()
def withheld(
    user: UserOrAll = None, agent: Agent = "", limit: Limit = 50, after: After = "", as_json: Json = False
) -> None:
    """List what memd holds back: retirements that the model asked for, and facts that a user may want forgotten.

    The latter are neither injected nor found until `memd facts rm` or `restore` decides; of the former `rm` or `edit`.
    Without a user: what is withheld of all, by user.

    Example: memd facts withheld ana
    """
    if user is None:
        tell_all(Editing.withheld, _tell_withheld, agent, after, limit, as_json=as_json)
        return
    editing, bucket = editing_of(user, agent)
    found = editing.withheld(bucket)
    if as_json:
        echo_json(found)
        return
    _tell_withheld(editing, bucket, found)
    if not found:
        nothing("nothing")


def _tell_withheld(editing: Editing, bucket: Bucket, found: list[Withheld]) -> None:
    contents = {id_of(fact): content_of(fact) for fact in editing.facts(bucket)}
    for entry in found:
        fact_id, note = entry.get("fact"), entry.get("note")
        asked = ", ".join(printable(entry.get(name)) for name in ("wanted", "why", "at"))
        content = entry.get("content") or contents.get(str(fact_id), "(gone)")
        echo(f"{printable(fact_id)}  {printable(content)}")
        by = f", by {printable(entry['by'])}" if entry.get("by") else ""
        echo(f"    {asked}{by}" + (f": {printable(note)}" if note else ""))


@facts.command()
def add(
    user: User, content: Content, agent: Agent = "", category: Category = None, dry_run: DryRun = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Add a fact by hand. The model never changes or evicts it; its confidence is 1.0.

    This is the only way back for a fact that was removed. An existing fact with the same words becomes one by hand.

    Example: memd facts add ana "Prefers short answers" --category preference
    """
    editing, bucket = editing_of(user, agent)
    is_new = not revision_of(editing.load(bucket).document)
    tell(editing.add(bucket, content_given(content), category, dry_run=dry_run), "added", dry_run, as_json)
    if is_new:
        nothing("it is the first fact of this memory: nothing was known of this user and agent")


@facts.command()
def edit(
    user: User, fact_id: FactId, content: NewContent = None, category: Category = None, agent: Agent = "",
    dry_run: DryRun = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Change the sentence of a fact, its category, or both. The archive keeps the old version.

    Example: memd facts edit ana fact_0badcafe --content "Lives in Lisbon"
    """
    editing, bucket = editing_of(user, agent)
    new = None if content is None else content_given(content)
    tell(editing.edit(bucket, fact_id, new, category, dry_run=dry_run), "changed", dry_run, as_json)


@facts.command("rm")
def remove(user: User, fact_id: FactId, agent: Agent = "", dry_run: DryRun = False, as_json: Json = False) -> None:
    """Remove a fact for good, from the archive too. Only `memd facts add` can bring it back, no conversation.

    Sentences of the summaries that repeat it are removed too, as far as words, names and numbers tell, and the messages
    that prove it or say the same (docs/guarantees.md). With --dry-run they are listed.

    Example: memd facts rm ana fact_0badcafe --dry-run
    """
    editing, bucket = editing_of(user, agent)
    change = editing.remove(bucket, fact_id, dry_run=dry_run)
    tell(change, "removed", dry_run, as_json)
    if not as_json:
        tell_turns(change, dry_run)
        if not dry_run:
            echo("no conversation brings it back; `memd facts add` does")
    document = editing.load(bucket).document
    if any(_is_summarised(document, name) for name in ("user", "history")):
        warn("a summary may still say it in other words: check with `memd show`")


@facts.command()
def restore(
    user: User,
    fact_id: OneFact = None,
    agent: Agent = "",
    every: Annotated[bool, typer.Option("--all", help="Every suspended fact of this memory.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take back a fact that is suspended because the user may have asked to forget it (`memd facts withheld`).

    Example: memd facts restore ana fact_0badcafe

    Example: memd facts restore ana --all
    """
    check_one_or_all(fact_id, every=every, what="a fact", hint="FACT_ID")
    editing, bucket = editing_of(user, agent)
    held = [str(one["fact"]) for one in editing.withheld(bucket) if one["wanted"] == "forgotten"] if every else []
    if every and not held:
        nothing("nothing is suspended")
        return
    left = 0
    for each in held if fact_id is None else [fact_id]:
        try:
            tell(editing.restore(bucket, each, dry_run=dry_run), "restored", dry_run, as_json)
        except Rejected as error:
            if not every:
                raise
            left += 1
            warn(f"{printable(each)} stays suspended: {error}")
    if len(held) > left and not as_json:
        echo(f"what was said since may say otherwise: check with `memd audit {printable(user)}`")
    if left:
        raise typer.Exit(Rejected.exit_code)


def _table(rows: list[dict[str, Any]]) -> None:
    if not rows:
        nothing("no facts")
        return
    table(("id", "conf", "category", "status", "since", "used", "by", "scope", "content"), map(_row, rows), ("conf",))


def _row(fact: dict[str, Any]) -> tuple[str, ...]:
    by = "hand" if is_manual(fact) else "agent" if is_note(fact) else _extractor(fact)
    since, used = (created_at(fact) or "?")[:10], (fact["lastUsedAt"] or "-")[:10]
    confidence = f"{confidence_of(fact):.2f}"
    kind = scope_of(fact).kind
    return id_of(fact), confidence, category_of(fact), fact["status"], since, used, by, kind, content_of(fact)


def _extractor(fact: dict[str, Any]) -> str:
    return "rules" if origin_of(fact).get("model") == "rules" else "model"


def _is_summarised(document: dict[str, Any], section: str) -> bool:
    return any(isinstance(entry, dict) and entry.get("summary") for entry in document[section].values())
