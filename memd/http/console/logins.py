"""The logins of one server: each a browser with a token, in memory only, so that a restart ends them all."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from memd.http.keyring import Token

LASTS_S, IDLE_S = 8 * 3600.0, 3600.0
"""A login ends after so many seconds, and after so many in which nobody opened a page."""

MOST, MOST_OF_TOKEN = 1_000, 100
"""Logins at once, of all tokens and of one; a further one ends the oldest. So no token can end those of the others."""


@dataclass(slots=True)
class Login:
    """A browser that is logged in. `csrf`: what its forms must send. `notes`: sentences for the next page."""

    token: Token
    csrf: str
    began: float
    seen: float
    language: str = ""
    notes: list[tuple[str, dict[str, object]]] = field(default_factory=list)


class Logins:
    """The logins by the secret in the browser's cookie."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logins: dict[str, Login] = {}

    def begin(self, token: Token) -> str:
        """A new login; returns the secret for the cookie: 256 random bits."""
        now = self._clock()
        for secret in [secret for secret, login in self._logins.items() if self._is_over(login, now)]:
            del self._logins[secret]
        self._make_room([secret for secret, login in self._logins.items() if login.token.id == token.id], MOST_OF_TOKEN)
        self._make_room(list(self._logins), MOST)
        secret = secrets.token_urlsafe(32)
        self._logins[secret] = Login(token, secrets.token_urlsafe(32), now, now)
        return secret

    def find(self, secret: str, *, by_itself: bool = False) -> Login | None:
        """The login with this secret, or None. `by_itself`: a page refreshed its values, which keeps no login alive."""
        login = self._logins.get(secret)
        now = self._clock()
        if login is None or self._is_over(login, now):
            return None
        if not by_itself:
            login.seen = now
        return login

    def end(self, secret: str) -> None:
        """End a login."""
        self._logins.pop(secret, None)

    def _make_room(self, begun: list[str], most: int) -> None:
        """End the oldest of these logins until there may be one more."""
        for secret in begun[: len(begun) - most + 1] if len(begun) >= most else ():
            del self._logins[secret]

    @staticmethod
    def _is_over(login: Login, now: float) -> bool:
        return now - login.began > LASTS_S or now - login.seen > IDLE_S
