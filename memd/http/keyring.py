"""Tokens for `memd serve` and `memd mcp --http`: each belongs to an app, names users, and has scopes.

The file `http.tokens` holds a SHA-256 hash of each secret. The secrets are 256 random bits, so a slow hash, as for
passwords that people choose, would add nothing. A token is written `memd_<id>_<secret>`; the id is not secret.
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

from memd.disk import files
from memd.disk.lock import locked
from memd.errors import ConfigError, DocumentDamaged, StoreUnavailable
from memd.identifiers import check_identifier
from memd.push.times import iso

Scope = Literal["read", "write", "admin", "status", "said", "person", "console"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""read: memory, inject, search, facts, receipts, pending. write: push, flush, notes. admin: users, export, forget.
status: figures. said: with read, also excerpts of what was said; with admin, also the messages of an export. person: a
person's own hand, which adds and edits facts and decides on doubtful ones. No agent's token should have it.
console: the pages of the console; with said also what was said, with person edits, with admin every other change.
"""

DEFAULT_SCOPES: tuple[Scope, ...] = ("read", "write")
VERSION = 1
CHECK_S = 1.0
"""A change of the file is noticed within this many seconds."""

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
    """A stored token: id, hash of the secret, app, users and scopes."""

    id: str
    hash: str
    app: str
    users: Users
    scopes: frozenset[str]
    created_at: str

    def as_dict(self) -> dict[str, Any]:
        """The token in the file's format."""
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


ANYBODY = Token("", "", "", Users(every=True), frozenset(SCOPES), "")
"""The token of every client where http.tokens is not set: every program on this machine may do anything."""


def new(app: str, users: Users, scopes: Iterable[str] = DEFAULT_SCOPES) -> tuple[Token, str]:
    """Make a token. Returns it with its text, which memd never stores. Raises ConfigError, Rejected."""
    if not _APP.fullmatch(app):
        raise ConfigError("the app's name must have 1 to 64 letters, digits, dots, dashes or underscores")
    chosen = frozenset(scopes)
    if not chosen or not chosen <= set(SCOPES):
        raise ConfigError(f"unknown scope; the scopes are {', '.join(SCOPES)}")
    ways = sum(map(bool, (users.listed, users.prefix, users.every)))
    if ways > 1 or (ways == 0 and chosen != {"status"}):  # the figures name no user
        raise ConfigError("name the users of the token in exactly one way: --user, --prefix or --all-users")
    for user_id in users.listed:
        check_identifier("user_id", user_id)
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = Token(token_id, _hashed(secret), app, users, chosen, iso(datetime.now(UTC)))
    return token, f"memd_{token_id}_{secret}"


def load(file: Path) -> list[Token]:
    """The tokens of a file; empty when it does not exist. Raises ConfigError when it cannot be read."""
    try:
        if file.exists() and stat.S_IMODE(file.lstat().st_mode) & 0o022:
            raise ConfigError("setting http.tokens: other users can write the file; run chmod 600 on it")
        data = files.read(file)
    except (StoreUnavailable, DocumentDamaged):
        raise ConfigError("setting http.tokens: the file must be a regular file of this user") from None
    try:
        return [] if data is None else list(map(_token, _rows(orjson.loads(data))))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):  # not our format: no token is valid
        raise ConfigError("setting http.tokens: the file was not written by `memd token`") from None


def add(file: Path, token: Token) -> None:
    """Put a token into the file, durably. Raises ConfigError, StoreUnavailable."""
    with locked(_lock(file)):
        _save(file, [*load(file), token])


def remove(file: Path, token_id: str) -> bool:
    """Remove a token from the file. Returns whether it was there. Raises ConfigError, StoreUnavailable."""
    with locked(_lock(file)):
        tokens = load(file)
        kept = [token for token in tokens if token.id != token_id]
        if len(kept) < len(tokens):
            _save(file, kept)
        return len(kept) < len(tokens)


class Keyring:
    """The tokens of a file, for a server; reloaded when the file has changed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._check_at = 0.0
        self._version: tuple[int, ...] | None = None
        self._tokens: dict[str, Token] = {}

    def find(self, text: str) -> Token | None:
        """The token with this text, or None. Raises ConfigError when the file cannot be read, so no token is valid."""
        self._reload()
        match = _TOKEN.fullmatch(text)
        if match is None:
            return None
        token = self._tokens.get(match[1])
        # An unknown id takes the same steps as a known one with a wrong secret.
        same = hmac.compare_digest(_hashed(match[2]), token.hash if token else _NOBODY)
        return token if same else None

    def holds(self, token: Token) -> bool:
        """Whether the file still has this token. Raises ConfigError as `find`."""
        self._reload()
        return self._tokens.get(token.id) == token

    def _reload(self) -> None:
        if time.monotonic() < self._check_at:
            return
        version = _version(self._file)
        if version != self._version or version is None:
            self._tokens = {token.id: token for token in load(self._file)}
            self._version = version
        self._check_at = time.monotonic() + CHECK_S  # not when loading raised: then the next request loads again


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


_NOBODY = _hashed(secrets.token_urlsafe(32))


def _version(file: Path) -> tuple[int, ...] | None:
    try:
        status = file.lstat()
    except OSError:  # missing or unreadable: `load` tells them apart
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _rows(tree: Any) -> list[dict[str, Any]]:
    if tree["version"] != VERSION:
        raise ValueError
    rows: list[dict[str, Any]] = tree["tokens"]
    return rows


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


def _save(file: Path, tokens: list[Token]) -> None:
    tree = {"version": VERSION, "tokens": [token.as_dict() for token in tokens]}
    data = orjson.dumps(tree, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    files.replace(file, data, file.with_name(f"{file.name}.tmp"))


def _lock(file: Path) -> Path:
    """The lock is a separate file, because saving replaces the file itself."""
    return file.with_name(f"{file.name}.lock")
