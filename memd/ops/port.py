"""The embedded server's TCP port, for languages without Unix sockets (`server.port`).

A port has no file permissions: every process of this machine can connect. So the port requires a password, and the
account for producers can only push. A server has the same accounts on all its listeners, so the socket requires a
password too; memd's own processes read theirs from a file of mode 0600.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from memd.config import Settings
from memd.errors import ConfigError
from memd.inbox.connection import OWN_ACCOUNT, password_file
from memd.ops.accounts import accounts

PRODUCER = "memd-in"

ACCOUNTS = (PRODUCER, OWN_ACCOUNT)


def configuration(settings: Settings) -> str:
    """The port's lines of the server's configuration. With a port they include its accounts and their passwords.

    Raises ConfigError when a password's file cannot be written.
    """
    files = {name: password_file(settings, name) for name in ACCOUNTS}
    if settings.server.port is None:
        for file in files.values():
            file.unlink(missing_ok=True)
        return "port 0\n"
    found = {name: _password(file) for name, file in files.items()}
    return "".join(f"{line}\n" for line in _lines(settings.server.port, found))


def _lines(port: int, passwords: dict[str, str]) -> Iterator[str]:
    yield f"port {port}"
    yield "bind 127.0.0.1 -::1"
    yield "user default off"
    yield from (account.line(passwords[account.name]) for account in accounts([]) if account.name in passwords)


def _password(file: Path) -> str:
    """The password in a file, which is created with a new password if it does not exist."""
    try:
        known = file.read_text(encoding="ascii").strip() if file.exists() else ""
        password = known or secrets.token_urlsafe(32)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as writing:
            os.fchmod(descriptor, 0o600)
            writing.write(f"{password}\n")
    except OSError as error:
        raise ConfigError(f"the password file {file} cannot be used ({error.strerror})") from None
    return password
