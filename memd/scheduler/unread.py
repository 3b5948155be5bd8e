"""Unread: finds raw lists that producers push to and no scheduler reads, because the config does not name their app."""

from __future__ import annotations

import redis

from memd.config import Settings
from memd.events import Event, logger
from memd.inbox import raw_door
from memd.inbox.verbs import raw_lists

INTERVAL_S = 1.0
PAGE = 1_000
"""Key names scanned per second: a million keys take a quarter of an hour, at the cost of a few commands."""


class UnreadLists:
    """Scans the names of all keys, a page a second, and records the lists it finds for `memd status`."""

    name = "unread"

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._client = client
        self._known = set(raw_lists(settings))
        self._cursor = 0
        self._found: set[str] = set()
        self._logged: set[str] = set()
        self._log = logger(duty=self.name)

    def tick(self) -> float:
        """Scan one page; after the last page, record the lists found on all pages."""
        self._cursor, names = raw_door.raw_names(self._client, self._cursor, PAGE)
        self._found |= names - self._known
        if self._cursor == 0:
            raw_door.note_unread(self._client, sorted(self._found))
            if self._found - self._logged:
                self._log.warning(Event.RAW_LIST_UNREAD, lists=len(self._found))
            self._logged, self._found = self._found, set()
        return INTERVAL_S
