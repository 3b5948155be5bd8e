"""Dead letters: list, show, retry, drop."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import typer

from memd.cli.common import Json, Yes, completes, confirm, echo, echo_json, settings, warn
from memd.cli.tables import table
from memd.client import Memd
from memd.inbox.dead import Letter, LetterFilter
from memd.printable import counted, noun, printable

SHOWN = 100
"""Letters that `list` prints without --json; the counts are of all letters."""

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of letters, as `memd dead list` prints them.")
]
Code = Annotated[str | None, typer.Option("--code", help="Letters with this code.")]
OfUser = Annotated[str | None, typer.Option("--user", help="Letters of this user.", autocompletion=completes("user"))]
Every = Annotated[bool, typer.Option("--all", help="All letters.")]

dead = typer.Typer(
    help="List, show, retry or drop dead letters. They failed for good, and are kept with the reason until you decide.",
    no_args_is_help=True,
)


@dead.command("list")
def list_(code: Code = None, user: OfUser = None, as_json: Json = False) -> None:
    """List the dead letters, oldest first, with the count of each code.

    Example: memd dead list --code bad_reply
    """
    letters = _letters((), code, user)
    if as_json:
        echo_json([_row(letter) for letter in letters])
        return
    if not letters:
        echo("no dead letters")
        return
    table(("id", "died", "tries", "code", "whose"), map(_line, letters[:SHOWN]), ("tries",))
    if len(letters) > SHOWN:
        echo(f"… and {len(letters) - SHOWN} more; --json has all")
    counts = Counter(letter.code for letter in letters)
    echo(f"{len(letters)} dead: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))


@dead.command()
def show(letter_id: Annotated[str, typer.Argument(metavar="ID")], as_json: Json = False) -> None:
    """Show one letter: why it died, and its messages.

    Example: memd dead show 4f1d…-0
    """
    with Memd(settings()) as memd:
        content = memd.dead_letter(letter_id)
    if content is None:
        raise typer.BadParameter("no letter has this id", param_hint="ID")
    if as_json:
        echo_json({**_row(content.letter), "messages": content.messages, "raw": content.raw})
        return
    echo(f"{content.letter.error}")
    echo(f"died {content.letter.died_at:%Y-%m-%d %H:%M:%S} UTC after {counted(content.letter.attempts, 'attempt')}")
    echo(f"raw push in {content.letter.origin}" if content.letter.origin else _whose(content.letter))
    for message in content.messages:
        echo(f"  {printable(message.get('role'))}: {printable(message.get('content'))}")
    if content.raw is not None:
        echo(f"  {printable(content.raw)}")


@dead.command()
def retry(
    ids: Ids = None,
    code: Code = None,
    user: OfUser = None,
    every: Every = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Make letters pending again; each message keeps its place in the order of its thread.

    Example: memd dead retry --code too_long
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
    """Delete letters. This cannot be undone.

    Example: memd dead drop --user ana
    """
    _move("drop", ids, code, user, every, yes, as_json)


def _move(
    verb: str, ids: list[str] | None, code: str | None, user: str | None, every: bool, yes: bool, as_json: bool
) -> None:
    if not (ids or code or user or every):
        raise typer.BadParameter("name the letters: ids, --code, --user or --all")
    letters = _letters(tuple(ids or ()), code, user)
    if ids and len(letters) < len(ids):
        warn(f"these letters do not exist: {len(ids) - len(letters)} of {len(ids)}")
    if letters and not yes:
        confirm(f"{verb} {counted(len(letters), 'letter')}?")
    with Memd(settings()) as memd:
        moved = (memd.retry if verb == "retry" else memd.drop)(letters)
        stay = _that_stay(memd, letters) if verb == "retry" and moved < len(letters) else {}
    if stay:
        codes = ", ".join(f"{count} {letter_code}" for letter_code, count in sorted(stay.items()))
        warn(f"still dead, as the content would be refused again: {codes}; drop them")
    if as_json:
        echo_json({verb: moved} | ({"stay": stay} if stay else {}))
    else:
        again = f"{noun(moved, 'is', 'are')} pending again"
        echo(f"{counted(moved, 'letter')} " + (again if verb == "retry" else "deleted"))


def _that_stay(memd: Memd, letters: list[Letter]) -> dict[str, int]:
    """How many of these letters are still dead, by code."""
    present = memd.dead(LetterFilter(tuple(letter.id for letter in letters)))
    return dict(Counter(letter.code for letter in present))


def _letters(ids: tuple[str, ...], code: str | None, user: str | None) -> list[Letter]:
    with Memd(settings()) as memd:
        return memd.dead(LetterFilter(ids, code, user))


def _row(letter: Letter) -> dict[str, Any]:
    row = asdict(letter)
    del row["owner"], row["bucket"]
    return row


def _line(letter: Letter) -> tuple[object, ...]:
    whose = f"raw push in {letter.origin}" if letter.origin else _whose(letter)
    return letter.id, f"{letter.died_at:%Y-%m-%d %H:%M}", letter.attempts, letter.code, whose


def _whose(letter: Letter) -> str:
    agent = f", agent {printable(letter.agent_name)}" if letter.agent_name else ""
    return f"user {printable(letter.user_id)}{agent}, thread {printable(letter.thread_id)}"
