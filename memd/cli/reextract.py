"""Re-extraction from the shell: what another prompt or model would make of what a memory has kept as said."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import typer

from memd.cli.bars import bar
from memd.cli.common import Agent, DryRun, Json, User, echo, echo_json, nothing, warn
from memd.cli.evaluate import Extractor, Model, Setting, chosen_settings
from memd.context import Bucket
from memd.evaluation.reextracting import Diff, read_kept, run
from memd.printable import counted, printable

EMPTY = 1
"""Exit code: no turns are kept of this memory."""


def reextract(
    user: User,
    dry_run: DryRun = False,
    agent: Agent = "",
    extractor: Extractor = None,
    model: Model = None,
    setting: Setting = None,
    as_json: Json = False,
) -> None:
    """Show what today's prompt or model would make of what was said.

    It is printed beside the memory as it is: facts that do not come again, new ones, and those in other words. Every
    turn that is kept is sent to the model again, which costs money. Nothing is written; without --dry-run nothing is
    done, either.

    Example: memd reextract ana --dry-run --model claude-haiku-5-5
    """
    if not dry_run:
        raise typer.BadParameter("there is only a dry run, which changes nothing: add it", param_hint="--dry-run")
    settings = chosen_settings(extractor, model, setting or ())
    kept = read_kept(settings, Bucket(user, agent), datetime.now(UTC))
    if not kept.conversations:
        nothing("nothing is kept of what was said in such a memory")
        raise typer.Exit(EMPTY)
    warn(f"{counted(len(kept.said.turns), 'turn')} in {counted(len(kept.conversations), 'conversation')}")
    with bar("extracting", len(kept.conversations)) as progress:
        diff, code = run(kept, settings, progress)
    if as_json:
        echo_json({"user": user, "agent": agent, **diff})
    else:
        for line in _told(diff):
            echo(line)
    if code:
        warn(f"memd: {diff['outage']}: the endpoint failed, so later conversations are missing here")
        raise typer.Exit(code)


def _told(diff: Diff) -> Iterator[str]:
    for name, sign, color in (("gone", "-", typer.colors.RED), ("added", "+", typer.colors.GREEN)):
        for fact in diff[name]:
            yield typer.style(_line(sign, fact), fg=color)
    for pair in diff["reworded"]:
        yield _line("~", pair["now"])
        yield _line(">", pair["again"])
    yield (
        f"{counted(diff['same'], 'fact')} the same, {len(diff['reworded'])} in other words, "
        f"{len(diff['added'])} only now, {len(diff['gone'])} not again; "
        f"{diff['not_compared']} rest on nothing that is kept"
    )
    for name in ("refused", "failures"):
        if diff[name]:
            yield f"{name}: " + ", ".join(f"{count} {reason}" for reason, count in diff[name].items())
    tokens = ", ".join(f"{count} {name.removesuffix('_tokens')}" for name, count in diff["tokens"].items())
    price = "price unknown" if diff["usd"] is None else f"${diff['usd']:.6f}"
    yield f"{counted(diff['requests'], 'request')}; {tokens} tokens; {price}"


def _line(sign: str, fact: dict[str, Any]) -> str:
    return f"{sign} [{fact['category']} | {fact['confidence']:.2f}] {printable(fact['content'])}"
