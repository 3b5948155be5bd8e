"""Watch: checks the server's free memory, function libraries and clock, and removes expired outcomes."""

from __future__ import annotations

from contextlib import suppress

import redis

from memd.config import Settings
from memd.errors import InboxFull, StoreUnavailable
from memd.events import Event, logger
from memd.forget import Forgetting
from memd.inbox import failover, library, server_check, verbs
from memd.inbox.connection import fails_over, send
from memd.inbox.ruling import Ruling
from memd.memory.store.protocol import Store

INTERVAL_S = 1.0


class Watch:
    """Once a second: guard the memory limit, notice an emptied server or a clock set back, sweep."""

    name = "watch"
    stale = False
    """Whether the functions and settings on the server may be outdated: the next tick installs them."""

    def __init__(self, settings: Settings, client: redis.Redis, store: Store, ruling: Ruling) -> None:
        self._settings = settings
        self._client = client
        self._store = store
        self._ruling = ruling
        self._fails_over = fails_over(settings)
        self._log = logger(duty=self.name)

    def tick(self) -> float:
        """Check the server once. Raises OtherStore, OtherSettings when it belongs to another store or scheduler."""
        if not library.installed(self._client):
            self._log.error(Event.SERVER_EMPTIED)
            self.stale = True
        found = self._ruling.beat()
        if found.names:
            self._log.warning(Event.SETTINGS_EDITED, names=list(found.names))
            self.stale = True
        if self.stale:
            self._install(found.seen)
        with suppress(StoreUnavailable):  # whoever uses the store meets the same error; the inbox goes on without it
            library.require_store(self._client, self._store)
        if self._fails_over and failover.is_another(self._client):
            self._adopt()
        library.mark_full(self._client, self._settings.inbox.memory_headroom)
        send(self._client, verbs.sweep())
        if mended := send(self._client, verbs.rebase()):
            self._log.warning(Event.CLOCK_SET_BACK, times=mended)
        return INTERVAL_S

    def _adopt(self) -> None:
        """Check a server that became the primary, and let workers claim from it. Raises ServerUnfit."""
        server_check.require(self._client, self._settings)
        struck = Forgetting(self._settings, self._client, self._store).repeat()
        leases = send(self._client, failover.adopt())
        self._log.warning(Event.SERVER_ADOPTED, leases=leases, struck=struck)

    def _install(self, seen: library.Mark) -> None:
        try:
            if not library.install(self._client, self._settings, seen):
                return  # another scheduler was faster: the next beat says whether it has taken over
            library.bind_store(self._client, self._store)
        except InboxFull:  # at its memory limit the server loads no functions; those already loaded drain it
            return
        self.stale = False
