"""One-time links into the console: a secret of which a file in the data folder has the hash, for five minutes.

Only who can write the data folder can make one: the person who runs memd there.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from memd.config import HttpSettings
from memd.errors import ConfigError, StoreUnavailable

LASTS_S = 300
"""Seconds that a link may be used."""

FOLDER = "console"
ENTER, LOGIN = "/console/enter", "/console/login"
_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


def make(data_dir: Path, http: HttpSettings) -> str:
    """Make a link for the server with these settings. Raises ConfigError, StoreUnavailable."""
    if not http.port:
        raise ConfigError("setting http.port: a link into the console needs a fixed port, 0 is any free one")
    key = secrets.token_urlsafe(32)
    folder = data_dir / FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clear(folder)
        (folder / _name(key)).touch(mode=0o600, exist_ok=False)
    except OSError as error:
        raise StoreUnavailable(f"the link cannot be written ({error.strerror})") from None
    return f"http://{_host(http.host)}:{http.port}{ENTER}?{urlencode({'key': key})}"


def use(data_dir: Path, key: str) -> bool:
    """Whether the link was good; it is no more. Of two servers that are asked at once, one says yes."""
    if not _KEY.fullmatch(key):
        return False
    file = data_dir / FOLDER / _name(key)
    try:
        fresh = _is_fresh(file)
        file.unlink()
    except OSError:  # unknown, used, or removed meanwhile: none of them lets anybody in
        return False
    return fresh


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _is_fresh(file: Path) -> bool:
    return 0 <= time.time() - file.stat().st_mtime <= LASTS_S


def _clear(folder: Path) -> None:
    """Remove the links whose time is over."""
    for file in folder.iterdir():
        with suppress(OSError):  # another process removes them, too
            if not _is_fresh(file):
                file.unlink()


def _host(host: str) -> str:
    """Where a browser on this machine reaches the address that is listened on."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104  (compared, not listened on)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
