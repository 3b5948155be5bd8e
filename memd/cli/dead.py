"""The dead: list, show, retry, drop."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memd.cli.common import Json, echo, echo_json, settings, warn
from memd.printable import printable

if TYPE_CHECKING:
    from memd.inbox.dead import Letter

SHOWN = 100
"""Letters that a list shows without --json; the counts are of all."""

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Letters by id, as `memd dead list` has them.")
]
Code = Annotated[str | None, typer.Option("--code", help="Those that died of this code.")]
OfUser = Annotated[str | None, typer.Option("--user", help="Those of this user.")]
Every = Annotated[bool, typer.Option("--all", help="All of them.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

dead = typer.Typer(help="What gave up: kept with its reason until somebody decides.", no_args_is_help=True)


@dead.command("list")
def list_(code: Code = None, user: OfUser = None, as_json: Json = False) -> None:
    """The dead letters, the oldest first, and how many died of what.

    Example: memd dead list --code reply_not_json
    """
    found = _found((), code, user)
    if as_json:
        echo_json([_row(letter) for letter in found])
        return
    if not found:
        echo("nothing is dead")
        return
    echo(f"{'id':<36}  {'died':<16}  {'tries':>5}  {'code':<24}  whose")
    for letter in found[:SHOWN]:
        whose = f"raw push in {letter.origin}" if letter.origin else _whose(letter)
        echo(f"{letter.id:<36}  {letter.died_at:%Y-%m-%d %H:%M}  {letter.attempts:>5}  {letter.code:<24}  {whose}")
    if len(found) > SHOWN:
        echo(f"… and {len(found) - SHOWN} more; --json has all")
    counts = Counter(letter.code for letter in found)
    echo(f"{len(found)} dead: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))


@dead.command()
def show(letter_id: Annotated[str, typer.Argument(metavar="ID")], as_json: Json = False) -> None:
    """One letter: why it died, and its messages.

    Example: memd dead show 4f1d…-0
    """
    from memd.client import Memd  # noqa: PLC0415

    with Memd(settings()) as memd:
        found = memd.dead_letter(letter_id)
    if found is None:
        raise typer.BadParameter("there is no such letter", param_hint="ID")
    if as_json:
        echo_json({**_row(found.letter), "messages": found.messages, "raw": found.raw})
        return
    echo(f"{found.letter.error}")
    echo(f"died {found.letter.died_at:%Y-%m-%d %H:%M:%S} UTC after {found.letter.attempts} attempts")
    echo(f"raw push in {found.letter.origin}" if found.letter.origin else _whose(found.letter))
    for message in found.messages:
        echo(f"  {printable(message.get('role'))}: {printable(message.get('content'))}")
    if found.raw is not None:
        echo(f"  {printable(found.raw)}")


@dead.command()
def retry(
    ids: Ids = None,
    code: Code = None,
    user: OfUser = None,
    every: Every = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Make letters pending again; each message takes its old place in order.

    Example: memd dead retry --code content_too_long
    """
    _move("retry", ids, code, user, every, yes, as_json)


@dead.command()
def drop(
    ids: Ids = None,
    code: Code = None,
    user: OfUser = None,
    every: Every = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Throw letters away for good.

    Example: memd dead drop --user ana
    """
    _move("drop", ids, code, user, every, yes, as_json)


def _move(
    verb: str, ids: list[str] | None, code: str | None, user: str | None, every: bool, yes: bool, as_json: bool
) -> None:
    from memd.client import Memd  # noqa: PLC0415

    if not (ids or code or user or every):
        raise typer.BadParameter("name letters by id, --code, --user or --all")
    found = _found(tuple(ids or ()), code, user)
    if ids and len(found) < len(ids):
        warn(f"{len(ids) - len(found)} of these letters are not there")
    if found and not yes:
        confirm(f"{verb} {len(found)} letters?")
    with Memd(settings()) as memd:
        moved = (memd.retry if verb == "retry" else memd.drop)(found)
    if as_json:
        echo_json({verb: moved})
    else:
        echo(f"{moved} letters " + ("are pending again" if verb == "retry" else "thrown away"))


def confirm(question: str) -> None:
    """Ask on a terminal; a script has to say --yes."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("this changes things for good: say --yes", param_hint="--yes")
    typer.confirm(question, abort=True, err=True)


def _found(ids: tuple[str, ...], code: str | None, user: str | None) -> list[Letter]:
    from memd.client import Memd  # noqa: PLC0415
    from memd.inbox.dead import Which  # noqa: PLC0415

    with Memd(settings()) as memd:
        return memd.dead(Which(ids, code, user))


def _row(letter: Letter) -> dict[str, Any]:
    row = asdict(letter)
    del row["owner"], row["bucket"]
    return row


def _whose(letter: Letter) -> str:
    agent = f", agent {printable(letter.agent_name)}" if letter.agent_name else ""
    return f"user {printable(letter.user_id)}{agent}, thread {printable(letter.thread_id)}"


def register(app: typer.Typer) -> None:
    """Add this group."""
    app.add_typer(dead, name="dead")
