"""Where memd keeps and finds things, and how to push to it from a shell."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from memd.config import LoadedSettings, Settings
from memd.config.settings import HERE, MASK
from memd.inbox.connection import password_file, socket_path
from memd.memory.store.paths import users_folder
from memd.ops.port import PRODUCER

EXAMPLE = '{"thread_id":"t","user_id":"ana","messages":[{"id":"1","role":"user","content":"I live in Porto."}]}'


@dataclass(frozen=True)
class Where:
    """The places of one installation; None where it has no such place. Paths are absolute."""

    config: str | None
    config_not_read: str | None
    """Why a config.yaml in the current folder is not read."""
    data_dir: str
    data_dir_from: str
    memories: str
    socket: str | None
    port: int | None
    password_file: str | None
    """Also without `port` when the file exists: the server's last start had a port."""
    url: str | None
    """The address of the user's own server, its credentials masked."""
    server_log: str | None
    http: str | None


def where(found: LoadedSettings) -> Where:
    """The places that these settings name. Creates nothing and asks no server."""
    settings, embedded = found.settings, found.settings.redis_url is None
    data_dir, port = settings.data_dir.absolute(), settings.server.port if embedded else None
    file, password = found.file, password_file(settings, PRODUCER)
    socket = own_socket(settings)
    return Where(
        config=_utf8(file.path.absolute()) if file and not file.unread else None,
        config_not_read=file.unread if file and file.unread else None,
        data_dir=str(data_dir),
        data_dir_from=_origin(found, data_dir),
        memories="the database of store.url" if settings.store.url else str(users_folder(data_dir)),
        socket=str(socket) if socket else None,
        port=port,
        password_file=str(password) if port or (embedded and password.is_file()) else None,
        url=None if embedded else masked_url(settings),
        server_log=str(data_dir / "server" / "server.log") if embedded else None,
        http=f"http://{settings.http.host}:{settings.http.port}" if settings.http.enabled else None,
    )


def push_line(settings: Settings) -> str:
    """The line for a shell that pushes one message."""
    push = f"RPUSH memd:in '{EXAMPLE}'"
    if settings.redis_url is None and settings.server.port is not None:
        password = shlex.quote(str(password_file(settings, PRODUCER)))
        return f'REDISCLI_AUTH="$(cat {password})" redis-cli --user {PRODUCER} -p {settings.server.port} {push}'
    socket = own_socket(settings)
    address = f"-s {shlex.quote(str(socket))}" if socket else f"-u {shlex.quote(masked_url(settings))}"
    return f"redis-cli {address} {push}"


def own_socket(settings: Settings) -> Path | None:
    """The server's socket; None when `redis_url` names a TCP address."""
    if settings.redis_url is None:
        return socket_path(settings)
    parts = urlsplit(settings.redis_url.reveal())
    return Path(unquote(parts.path)) if parts.scheme == "unix" else None


def masked_url(settings: Settings) -> str:
    """The address of the user's own server, without user, password and parameters."""
    url = settings.redis_url.reveal() if settings.redis_url else ""
    return re.sub(r"\?.*", f"?{MASK}", re.sub(r"//.*@", f"//{MASK}@", url, flags=re.DOTALL), flags=re.DOTALL)


def _utf8(path: Path) -> str:
    r"""The path, with bytes that are not UTF-8 as `\udcff`: JSON cannot hold them."""
    return str(path).encode(errors="backslashreplace").decode()


def _origin(found: LoadedSettings, data_dir: Path) -> str:
    origin = found.origins["data_dir"]
    if origin == "default" and data_dir == Path(HERE).absolute():
        return f"./{HERE} exists in the current folder"
    return origin
