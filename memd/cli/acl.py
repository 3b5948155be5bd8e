"""The accounts of your own server."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from memd.cli.common import echo, settings, warn

Apps = Annotated[list[str] | None, typer.Option("--app", help="An app with a raw list of its own (client.apps).")]
Generate = Annotated[bool, typer.Option("--generate", help="Make a password for each, shown once on stderr.")]
Setuser = Annotated[bool, typer.Option("--setuser", help="ACL SETUSER commands instead of lines of an ACL file.")]


def acl(app: Apps = None, generate: Generate = False, setuser: Setuser = False) -> None:
    """Print the accounts for producers, trusted apps, the daemon and readers.

    Passwords come from ACL_PASSWORD_<ACCOUNT> in the environment (ACL_PASSWORD_MEMD_DAEMON), or from --generate; an
    account without one lets nobody in. Only their hashes are printed on stdout.

    Example: memd acl --app shop --generate > users.acl
    """
    from memd.ops.accounts import accounts, passwords  # noqa: PLC0415  (only this command needs them)

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


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(acl)
