"""Who may do what: accounts of your own server, and tokens for `memd serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from memd.cli.common import Json, echo, echo_json, settings, warn
from memd.cli.tables import table
from memd.errors import ConfigError
from memd.http import keyring
from memd.ops.accounts import accounts, passwords

Apps = Annotated[
    list[str] | None, typer.Option("--app", help="An app with its own raw list (client.apps); repeatable.")
]
Generate = Annotated[bool, typer.Option("--generate", help="Generate passwords, printed once on stderr.")]
Setuser = Annotated[bool, typer.Option("--setuser", help="Print ACL SETUSER commands, not lines of an ACL file.")]


def acl(app: Apps = None, generate: Generate = False, setuser: Setuser = False) -> None:
    """Print the accounts for your own server.

    They are for producers, trusted apps, the daemon and readers. Passwords come from ACL_PASSWORD_<ACCOUNT> in the
    environment (ACL_PASSWORD_MEMD_DAEMON), or from --generate. Nobody can log in to an account without a password.
    Only hashes are printed on stdout.

    Example: memd acl --app shop --generate > users.acl
    """
    found = accounts(settings(client__apps=app).client.apps)
    secret = passwords(found, os.environ, generate=generate)
    for account in found:
        line = account.line(secret.get(account.name))
        echo(line.replace("user", "ACL SETUSER", 1) if setuser else line)
        if account.name not in secret:
            warn(f"{account.name}: no password yet, so nobody can log in; set {account.variable}, or use --generate")
        elif not os.environ.get(account.variable):
            warn(f"{account.name}: {secret[account.name]}")
    if unread := set(app or ()) - set(settings().client.apps):
        warn(f"nobody reads the lists of {', '.join(sorted(unread))} until the setting client.apps names them")


App = Annotated[str, typer.Option("--app", help="The app that uses the token; its threads have their own namespace.")]
Users = Annotated[list[str] | None, typer.Option("--user", help="A user the token may act for; repeatable.")]
Prefix = Annotated[str, typer.Option("--prefix", help="The token may act for users whose ids begin with this.")]
AllUsers = Annotated[bool, typer.Option("--all-users", help="The token may act for every user.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope", help="read, write, admin (export, forget), status, said, person, console; repeatable [read, write]."
    ),
]

token = typer.Typer(
    help="Add, list or revoke tokens for `memd serve`. memd stores only their hashes.", no_args_is_help=True
)


@token.command()
def add(
    app: App,
    user: Users = None,
    prefix: Prefix = "",
    all_users: AllUsers = False,
    scope: Scopes = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it, once: memd stores only its hash. A running `memd serve` accepts it within a second.

    A `memd serve` that was started without http.tokens stays open to this machine until it is restarted with it.

    Example: memd token add --app shop --prefix shop: --scope read
    """
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
    """List the tokens: their apps, users and scopes.

    Example: memd token list
    """
    tokens = keyring.load(_file())
    rows = [{name: value for name, value in entry.as_dict().items() if name != "hash"} for entry in tokens]
    if as_json:
        echo_json(rows)
        return
    if not rows:
        echo("there are no tokens")
        return
    table(("id", "app", "scopes", "made", "users"), map(_line, tokens))


def _line(entry: keyring.Token) -> tuple[str, ...]:
    users = "all" if entry.users.every else f"{entry.users.prefix}…" if entry.users.prefix else ""
    scopes = ", ".join(scope for scope in keyring.SCOPES if scope in entry.scopes)
    return entry.id, entry.app, scopes, entry.created_at[:10], users or ", ".join(sorted(entry.users.listed))


@token.command()
def rm(token_id: Annotated[str, typer.Argument(metavar="ID", help="The id, as `memd token list` prints it.")]) -> None:
    """Revoke a token. A running `memd serve` refuses it within a second.

    Example: memd token rm 4f1d00c2ab17
    """
    if not keyring.remove(_file(), token_id):
        raise typer.BadParameter("no token has this id", param_hint="ID")
    echo(f"token {token_id} revoked")


def _file() -> Path:
    file = settings().http.tokens
    if file is None:
        raise ConfigError(
            "setting http.tokens is not set: name the file that stores the tokens, also for `memd serve`: "
            'export MEMD_HTTP__TOKENS="$(memd where --data)/tokens.json"'
        )
    return file
