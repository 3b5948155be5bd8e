"""Tokens: who may use the doors that are open to a network, for which app, in the name of which users, to do what.

The file that `http.tokens` names holds SHA-256 hashes of secrets of 256 random bits, which nobody can guess from them:
slow hashes are for passwords, which people choose. A token is `memd_<id>_<secret>`; its id is no secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from memd.errors import ConfigError, DocumentDamaged, StoreUnavailable
from memd.memory.document import iso
from memd.memory.store import files
from memd.memory.store.lock import locked
from memd.push.validation import check_identifier

Scope = Literal["read", "write", "admin", "status"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""read: memory, inject, search, facts, receipts. write: push, flush, facts. admin: export, forget. status: figures."""

DEFAULT_SCOPES: tuple[Scope, ...] = ("read", "write")
VERSION = 1
LOOK_S = 1.0
"""Seconds after which a change of the file is noticed at the latest."""

_TOKEN = re.compile(r"memd_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_APP = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Users:
    """The users that a token may name: those listed, those that begin with a prefix, or all."""

    listed: frozenset[str] = frozenset()
    prefix: str = ""
    every: bool = False

    def __contains__(self, user_id: str) -> bool:
        return self.every or user_id in self.listed or bool(self.prefix and user_id.startswith(self.prefix))


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token: its id, the hash of its secret, and what it is good for."""

    id: str
    hash: str
    app: str
    users: Users
    scopes: frozenset[str]
    created_at: str

    def as_dict(self) -> dict[str, Any]:
        """The token as the file has it."""
        users: Any = "all" if self.users.every else {"list": sorted(self.users.listed)}
        if self.users.prefix:
            users = {"prefix": self.users.prefix}
        return {
            "id": self.id,
            "hash": self.hash,
            "app": self.app,
            "users": users,
            "scopes": [scope for scope in SCOPES if scope in self.scopes],
            "createdAt": self.created_at,
        }


EVERYBODY = Token("", "", "", Users(every=True), frozenset(SCOPES), "")
"""Who asks where no tokens are configured: anybody on this machine, for anything."""


def new(app: str, users: Users, scopes: Iterable[str] = DEFAULT_SCOPES) -> tuple[Token, str]:
    """A new token, and its text, which is not kept anywhere. Raises ConfigError, Rejected."""
    if not _APP.fullmatch(app):
        raise ConfigError("an app's name has 1 to 64 letters, digits, dots, dashes or underscores")
    wanted = frozenset(scopes)
    if not wanted or not wanted <= set(SCOPES):
        raise ConfigError(f"the scopes of a token are some of {', '.join(SCOPES)}")
    ways = sum(map(bool, (users.listed, users.prefix, users.every)))
    if ways > 1 or (ways == 0 and wanted != {"status"}):  # figures name nobody
        raise ConfigError("name the users of a token in one way: each, by a prefix, or all")
    for user_id in users.listed:
        check_identifier("user_id", user_id)
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = Token(token_id, _hashed(secret), app, users, wanted, iso(datetime.now(UTC)))
    return token, f"memd_{token_id}_{secret}"


def load(file: Path) -> list[Token]:
    """The tokens of a file, none when there is none. Raises ConfigError when it cannot be read as one."""
    try:
        if file.exists() and stat.S_IMODE(file.lstat().st_mode) & 0o022:
            raise ConfigError("the file of http.tokens may be written by others: chmod 600")
        data = files.read(file)
    except (StoreUnavailable, DocumentDamaged):
        raise ConfigError("the file of http.tokens cannot be read: it must be a regular file of ours") from None
    try:
        return [] if data is None else list(map(_token, _listed(orjson.loads(data))))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):  # whatever it is, nobody gets in by it
        raise ConfigError("the file of http.tokens is not one that `memd token` wrote") from None


def add(file: Path, token: Token) -> None:
    """Put a token into the file, durably. Raises ConfigError, StoreUnavailable."""
    with locked(_lock(file)):
        _save(file, [*load(file), token])


def remove(file: Path, token_id: str) -> bool:
    """Take a token out of the file; whether it was there. Raises ConfigError, StoreUnavailable."""
    with locked(_lock(file)):
        found = load(file)
        kept = [token for token in found if token.id != token_id]
        if len(kept) < len(found):
            _save(file, kept)
        return len(kept) < len(found)


class Keyring:
    """The tokens of a file, for a server: read again when the file has changed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._look_at = 0.0
        self._mark: tuple[int, ...] | None = None
        self._tokens: dict[str, Token] = {}

    def find(self, text: str) -> Token | None:
        """The token of this text, None when it is not one of ours. Raises ConfigError: then nobody gets in."""
        self._look()
        match = _TOKEN.fullmatch(text)
        if match is None:
            return None
        token = self._tokens.get(match[1])
        # An unknown id takes the same steps as a known one with a wrong secret.
        same = hmac.compare_digest(_hashed(match[2]), token.hash if token else _NOBODY)
        return token if same else None

    def _look(self) -> None:
        if time.monotonic() < self._look_at:
            return
        mark = _mark(self._file)
        if mark != self._mark or mark is None:
            self._tokens = {token.id: token for token in load(self._file)}
            self._mark = mark
        self._look_at = time.monotonic() + LOOK_S  # not when it could not be read: then the next request looks again


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


_NOBODY = _hashed(secrets.token_urlsafe(32))


def _mark(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.lstat()
    except OSError:  # none, or out of reach: `load` says which
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _listed(tree: Any) -> list[dict[str, Any]]:
    if tree["version"] != VERSION:
        raise ValueError
    listed: list[dict[str, Any]] = tree["tokens"]
    return listed


def _token(row: dict[str, Any]) -> Token:
    scopes = frozenset(row["scopes"])
    if not _HASH.fullmatch(row["hash"]) or not _APP.fullmatch(row["app"]) or not scopes <= set(SCOPES):
        raise ValueError
    return Token(row["id"], row["hash"], row["app"], _users(row["users"]), scopes, row["createdAt"])


def _users(value: Any) -> Users:
    if value == "all":
        return Users(every=True)
    match value:
        case {"list": list(listed)}:
            return Users(listed=frozenset(listed))
        case {"prefix": str(prefix)} if prefix:
            return Users(prefix=prefix)
    raise ValueError


def _save(file: Path, found: list[Token]) -> None:
    tree = {"version": VERSION, "tokens": [token.as_dict() for token in found]}
    data = orjson.dumps(tree, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    files.replace(file, data, file.with_name(f"{file.name}.tmp"))


def _lock(file: Path) -> Path:
    """The lock is a file beside it, as the file itself is replaced."""
    return file.with_name(f"{file.name}.lock")
