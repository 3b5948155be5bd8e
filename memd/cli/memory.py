"""Reading memories."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from memd.cli.common import (
    Agent,
    Json,
    OneFact,
    Pending,
    ProjectOption,
    ThreadOption,
    User,
    echo,
    echo_json,
    nothing,
    settings,
    warn,
    warn_of_words_only,
)
from memd.client import Memd
from memd.memory.document import Fact, saved_at
from memd.memory.facts import id_of
from memd.push.times import iso, moment
from memd.recall.past import as_of
from memd.recall.view import view
from memd.recall.why import refused_text, why_text

SHOWN = 10
"""Most damaged fields of a document that are reported one by one."""


def show(
    user: User,
    agent: Agent = "",
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The memory as it was then: 2026-03-01, or with a time.")
    ] = None,
    thread: ThreadOption = None,
    as_json: Json = False,
) -> None:
    """Show a user's memory. With --json: the document itself.

    What holds in one conversation only is shown to --thread; the JSON without --thread has everything.

    Times without a zone are UTC; a day means its first moment. Gaps in the past memory are reported on stderr.

    Example: memd show ana --at 2026-03-01
    """
    moment = _moment(at)
    with Memd(settings()) as memd:
        warn_of_damage(memd, user, agent)
        document = memd.document(user, agent_name=agent)
        if thread is not None or not as_json:
            document = memd.seen_document(user, agent_name=agent, thread_id=thread)
        used = {} if as_json or moment else {id_of(fact): fact["lastUsedAt"] for fact in memd.facts(user, agent)}
    if moment is not None:
        document = _past(document, moment, as_json=as_json)
    if as_json:
        echo_json(document)
    else:
        echo(view(document, used))
    if not saved_at(document):
        nothing("no such memory")


def why(
    user: User,
    fact_id: OneFact = None,
    agent: Agent = "",
    refused: Annotated[bool, typer.Option("--refused", help="The facts that were proposed and refused last.")] = False,
    thread: ThreadOption = None,
    project: ProjectOption = None,
    as_json: Json = False,
) -> None:
    """Show where a fact comes from, or which facts were refused.

    It prints each quote with its thread, time, model and prompt version, the messages around it as far as they are
    kept, and the facts it replaced. Archived facts have ids, too. Refused facts are kept with apply.keep_refused.

    Example: memd why ana fact_0badcafe

    Example: memd why ana --refused
    """
    if (fact_id is None) is not refused:
        raise typer.BadParameter("name a fact, or ask for --refused", param_hint="FACT_ID")
    with Memd(settings()) as memd:
        warn_of_damage(memd, user, agent)
        if fact_id is None:
            _tell_refused(memd.refused(user, agent_name=agent), as_json=as_json)
            return
        found = memd.why(user, fact_id, agent_name=agent, thread_id=thread, project_id=project)
    if as_json:
        echo_json(found)
    else:
        echo(why_text(found))


def _tell_refused(found: list[Fact], *, as_json: bool) -> None:
    if as_json:
        echo_json(found)
    elif found:
        echo(refused_text(found))
    else:
        nothing("no refused fact")
        if not settings().apply.keep_refused:
            warn("memd: apply.keep_refused is 0 here; a worker with that setting keeps no refused facts")


def inject(
    user: User,
    agent: Agent = "",
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Estimated tokens of the block, at most.")
    ] = None,
    query: Annotated[str | None, typer.Option("--query", help="The facts that match it best come first.")] = None,
    thread: ThreadOption = None,
    project: ProjectOption = None,
    include_pending: Pending = False,
) -> None:
    """Print the <memory> block for the next prompt. Without any memory it prints nothing on stdout.

    Example: memd inject ana --max-tokens 500
    """
    with Memd(settings()) as memd:
        warn_of_damage(memd, user, agent)
        block = memd.injection(
            user,
            agent_name=agent,
            max_tokens=max_tokens,
            query=query,
            thread_id=thread,
            project_id=project,
            include_pending=include_pending,
        )
    warn_of_words_only(block.words_only)
    if block.text:
        echo(block.text)
    else:
        nothing("nothing to inject")


def warn_of_damage(memd: Memd, user: str, agent: str) -> None:
    """Warn of each damaged field of a document. Raises DocumentDamaged when the document cannot be read."""
    damage = memd.inspect(user, agent)
    for sentence in damage[:SHOWN]:
        warn(f"memd: {sentence}; the field is read as absent")
    if len(damage) > SHOWN:
        warn(f"memd: and {len(damage) - SHOWN} more damaged fields; `memd audit` lists all")


def _moment(at: str | None) -> datetime | None:
    if at is None:
        return None
    found = moment(at)
    if found is None:
        raise typer.BadParameter("write a day (2026-03-01) or a time (2026-03-01T18:00:00Z)", param_hint="--at")
    if found > datetime.now(UTC):
        raise typer.BadParameter("this time is in the future", param_hint="--at")
    return found


def _past(document: dict[str, Any], at: datetime, *, as_json: bool) -> dict[str, Any]:
    past = as_of(document, at, settings().apply.archive_cap)
    if as_json:
        return {**past.document, "asOf": iso(at), "missing": past.missing}
    echo(f"As of {iso(at)}")
    for sentence in past.missing:
        warn(f"possibly incomplete: {sentence}")
    return past.document
