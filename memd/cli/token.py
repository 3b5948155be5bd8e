"""Tokens for `memd serve`: add, list, rm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memd.cli.common import Json, echo, echo_json, settings, warn
from memd.printable import printable

App = Annotated[str, typer.Option("--app", help="The app that gets it; its threads have a namespace of their own.")]
Users = Annotated[list[str] | None, typer.Option("--user", help="A user that it may name; may be repeated.")]
Prefix = Annotated[str, typer.Option("--prefix", help="It may name the users whose ids begin with this.")]
AllUsers = Annotated[bool, typer.Option("--all-users", help="It may name every user.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", help="read, write, admin (export, forget) or status; may be repeated [read and write]."),
]

token = typer.Typer(help="Who may use `memd serve`: tokens, of which only hashes are kept.", no_args_is_help=True)


@token.command()
def add(
    app: App,
    user: Users = None,
    prefix: Prefix = "",
    all_users: AllUsers = False,
    scope: Scopes = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it, once: what is kept of it is a hash. A running `memd serve` knows it within a second.

    Example: memd token add --app shop --prefix shop: --scope read
    """
    from memd.http import keyring  # noqa: PLC0415  (only these commands need it)

    users = keyring.Users(frozenset(user or ()), prefix, all_users)
    made, text = keyring.new(app, users, scope or keyring.DEFAULT_SCOPES)
    keyring.add(_file(), made)
    if as_json:
        echo_json({"id": made.id, "token": text})
    else:
        warn(f"token {made.id} of {app}; it is not shown again:")
        echo(text)


@token.command("list")
def list_(as_json: Json = False) -> None:
    """The tokens there are: whose, for which users, and what they may do.

    Example: memd token list
    """
    from memd.http import keyring  # noqa: PLC0415

    found = keyring.load(_file())
    rows = [{name: value for name, value in one.as_dict().items() if name != "hash"} for one in found]
    if as_json:
        echo_json(rows)
        return
    if not rows:
        echo("there are no tokens")
        return
    echo(f"{'id':<12}  {'app':<16}  {'scopes':<24}  {'made':<10}  users")
    for one, row in zip(found, rows, strict=True):
        users = "all" if one.users.every else f"{one.users.prefix}…" if one.users.prefix else ""
        users = printable(users or ", ".join(sorted(one.users.listed)))
        echo(f"{one.id:<12}  {one.app:<16}  {', '.join(row['scopes']):<24}  {one.created_at[:10]:<10}  {users}")


@token.command()
def rm(token_id: Annotated[str, typer.Argument(metavar="ID", help="As `memd token list` has it.")]) -> None:
    """Take a token away. A running `memd serve` refuses it within a second.

    Example: memd token rm 4f1d00c2ab17
    """
    from memd.http import keyring  # noqa: PLC0415

    if not keyring.remove(_file(), token_id):
        raise typer.BadParameter("there is no such token", param_hint="ID")
    echo(f"token {token_id} is good for nothing any more")


def _file() -> Path:
    from memd.errors import ConfigError  # noqa: PLC0415

    file = settings().http.tokens
    if file is None:
        raise ConfigError("setting http.tokens: name the file that tokens are kept in first")
    return file


def register(app: typer.Typer) -> None:
    """Add this group."""
    app.add_typer(token, name="token")
