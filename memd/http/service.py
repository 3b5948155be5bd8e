"""Shared by all requests: memd's client, the tokens, and the thread pools that keep the event loop free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from memd.client import Memd
from memd.config import Settings
from memd.errors import ConfigError
from memd.events import Event, logger
from memd.http.keyring import ANYBODY, Keyring, Scope, Token
from memd.http.metrics import Served
from memd.http.problems import Problem, not_found, unauthorized, unavailable
from memd.http.request_body import LargeBodies

T = TypeVar("T")

FILE_THREADS, INBOX_THREADS, LONG_THREADS, PAGE_THREADS = 4, 16, 4, 4
"""Threads for documents, for the inbox, for long work (a flush that waits, an export, a forget), and for the console.

The pools are separate, so that one kind of work that hangs does not stop the others.
"""

_BEARER = "bearer "


class Service:
    """The state of one server process. `origins`: where each setting comes from, by its dotted name."""

    def __init__(self, settings: Settings, origins: Mapping[str, str]) -> None:
        self.settings = settings
        self.origins = origins
        self.memd = Memd(settings)
        self.served = Served()
        self.openapi = b""
        self.large_bodies = LargeBodies()
        self.files = ThreadPoolExecutor(FILE_THREADS, "files")
        self.inbox = ThreadPoolExecutor(INBOX_THREADS, "inbox")
        self.long = ThreadPoolExecutor(LONG_THREADS, "long")
        self.pages = ThreadPoolExecutor(PAGE_THREADS, "pages")
        self._keyring = Keyring(settings.http.tokens) if settings.http.tokens else None
        self._shared = settings.store.shared
        self._unreadable = False

    async def run(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """Run work in a thread. Cancelled while queued, the work never runs; once started, it runs to completion."""
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def authenticate(self, authorization: str | None, scope: Scope) -> Token:
        """The token of a request. Raises Problem without a valid token or without the scope."""
        if self._keyring is None:
            return ANYBODY
        kind, text = (authorization or "")[: len(_BEARER)], (authorization or "")[len(_BEARER) :]
        token = self.token_of(text.strip()) if kind.lower() == _BEARER else None
        if token is None:
            raise unauthorized()
        if scope not in token.scopes:
            raise Problem(403, "E_SCOPE", f'this token lacks the scope "{scope}"', field=scope)
        return token

    @property
    def has_tokens(self) -> bool:
        """Whether clients need tokens."""
        return self._keyring is not None

    def token_of(self, text: str) -> Token | None:
        """The token with this text, or None. Raises Problem when no token is valid until the file is repaired."""
        return self._checked(lambda keyring: keyring.find(text))

    def is_valid(self, token: Token) -> bool:
        """Whether a token that was valid still is; ANYBODY always. Raises Problem as `token_of`."""
        if token == ANYBODY:
            return True
        return bool(self._checked(lambda keyring: keyring.holds(token)))

    def authorize_user(self, token: Token, user_id: str | None) -> None:
        """Check that the token may name this user (None: all users), before anything is looked up. Raises Problem.

        Where all users share one memory, only a token for all users may read or write it.
        """
        if token.users.every:
            return
        if user_id is None or self._shared or user_id not in token.users:
            raise not_found()

    def close(self) -> None:
        """Accept no more work; work started in a thread runs to completion."""
        for pool in (self.files, self.inbox, self.long, self.pages):
            pool.shutdown(wait=False, cancel_futures=True)
        self.memd.close()

    def _checked(self, question: Callable[[Keyring], T]) -> T | None:
        """Ask the token file. None where there is none."""
        if self._keyring is None:
            return None
        try:
            answer = question(self._keyring)
        except ConfigError as error:  # no token is valid until the file is repaired
            if not self._unreadable:
                logger(part="http").error(Event.TOKENS_UNREADABLE, error=str(error))
            self._unreadable = True
            raise unavailable("E_TOKENS", "the token file cannot be read; see the server's log") from None
        self._unreadable = False
        return answer
