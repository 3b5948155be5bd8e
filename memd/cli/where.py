"""Showing where things are."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from memd.cli.common import Json, echo, echo_json, loaded, warn
from memd.errors import ConfigError
from memd.ops.where import Where
from memd.ops.where import where as places
from memd.printable import printable

Socket = Annotated[bool, typer.Option("--socket", help="Only the path of the server's socket.")]
Data = Annotated[bool, typer.Option("--data", help="Only the path of the data folder.")]
Password = Annotated[
    bool, typer.Option("--password-file", help="Only the path of the file with the password of server.port.")
]


def where(socket: Socket = False, data: Data = False, password_file: Password = False, as_json: Json = False) -> None:
    """Show where memd keeps and finds things: files, folders, the server's address.

    Example: redis-cli -s "$(memd where --socket)" LLEN memd:in
    """
    found = places(loaded())
    if as_json:
        echo_json(asdict(found))
    elif socket:
        _echo_socket(found)
    elif data:
        echo(found.data_dir)
    elif password_file:
        _echo_password_file(found)
    else:
        _table(found)


def _echo_socket(found: Where) -> None:
    path = _set(found.socket, f"setting redis_url names a server without a socket: {found.url}")
    if not Path(path).exists():
        warn("no server runs there yet: start `memd up`")
    echo(path)


def _echo_password_file(found: Where) -> None:
    path = _set(found.password_file, "setting server.port is not set, and no server here was started with a port, "
                "so there is no password")  # fmt: skip
    if found.port is None:
        warn("setting server.port is not set here; the server was last started with a port")
    echo(path)


def _set(value: str | None, sentence: str) -> str:
    if value is None:
        raise ConfigError(sentence)
    return value


def _table(found: Where) -> None:
    port = f"{found.port} on 127.0.0.1" if found.port else "off (server.port)"
    if found.password_file:
        port = f"{port if found.port else 'set only for the running server'}, password in {found.password_file}"
    rows = (
        ("config file", found.config or f"none ({found.config_not_read or 'all defaults'})"),
        ("data folder", f"{found.data_dir} ({found.data_dir_from})"),
        ("memories", found.memories),
        ("server", found.url or "embedded"),
        ("socket", found.socket or "none"),
        ("port", port if found.url is None else "the server's own"),
        ("server log", found.server_log or "the server's own"),
        ("memd's log", "standard error of `memd up` and of each part"),
        ("HTTP", found.http or "off (http.enabled), or where `memd serve` listens"),
    )
    for name, text in rows:
        echo(f"{name:<12} {printable(text)}")
