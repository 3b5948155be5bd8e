"""The logins of one server: each a browser with a token, in memory only, so that a restart ends them all."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from memd.http.keyring import Token

LASTS_S, IDLE_S = 8 * 3600.0, 3600.0
"""A login ends after so many seconds, and after so many in which nobody opened a page."""

MOST = 1_000
"""Logins at once; a further one ends the oldest."""


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
        while len(self._logins) >= MOST:
            del self._logins[next(iter(self._logins))]
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

    @staticmethod
    def _is_over(login: Login, now: float) -> bool:
        return now - login.began > LASTS_S or now - login.seen > IDLE_S
