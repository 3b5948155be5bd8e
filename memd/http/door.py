"""What all requests share: memd's client, the tokens, and the threads that wait so that the loop need not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from memd.client import Memd
from memd.config import Settings
from memd.errors import ConfigError
from memd.events import Event, logger
from memd.http.keyring import EVERYBODY, Keyring, Scope, Token
from memd.http.metrics import Served
from memd.http.problems import Problem, not_found, unauthorized, unavailable

T = TypeVar("T")

FILE_THREADS, INBOX_THREADS, LONG_THREADS = 4, 16, 4
"""Threads that read and write documents, that talk to the inbox, and that wait for a flush or forget a user.

They are apart so that none of the three stops the others when it hangs.
"""

_BEARER = "bearer "


class Door:
    """One for each server process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.memd = Memd(settings)
        self.served = Served()
        self.openapi = b""
        self.files = ThreadPoolExecutor(FILE_THREADS, "files")
        self.inbox = ThreadPoolExecutor(INBOX_THREADS, "inbox")
        self.long = ThreadPoolExecutor(LONG_THREADS, "long")
        self._keyring = Keyring(settings.http.tokens) if settings.http.tokens else None
        self._shared = settings.store.shared
        self._unreadable = False

    async def run(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """Do work in a thread. Cut short while it waits for one it is not done; later it is done to its end."""
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def token(self, authorization: str | None, scope: Scope) -> Token:
        """Who asks, and whether they may do this kind of thing at all. Raises Problem."""
        if self._keyring is None:
            return EVERYBODY
        kind, text = (authorization or "")[: len(_BEARER)], (authorization or "")[len(_BEARER) :]
        token = self._find(self._keyring, text.strip()) if kind.lower() == _BEARER else None
        if token is None:
            raise unauthorized()
        if scope not in token.scopes:
            raise Problem(403, "E_SCOPE", f"this token has not the scope {scope}", field=scope)
        return token

    def check_user(self, token: Token, user_id: str | None) -> None:
        """Whether a token may name a user, or (None) all of them; before anything is looked up. Raises Problem.

        Where all users share one memory, only a token for all of them may read or write it.
        """
        if token.users.every:
            return
        if user_id is None or self._shared or user_id not in token.users:
            raise not_found()

    def close(self) -> None:
        """Take no more work; what a thread has begun it ends."""
        for pool in (self.files, self.inbox, self.long):
            pool.shutdown(wait=False, cancel_futures=True)
        self.memd.close()

    def _find(self, keyring: Keyring, text: str) -> Token | None:
        try:
            token = keyring.find(text)
        except ConfigError as error:  # nobody gets in until the file is mended
            if not self._unreadable:
                logger(part="http").error(Event.TOKENS_UNREADABLE, error=str(error))
            self._unreadable = True
            raise unavailable("E_TOKENS", "the tokens cannot be read; the log says why") from None
        self._unreadable = False
        return token
