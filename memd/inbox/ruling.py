"""Which scheduler's settings the inbox goes by: one set at a time.

Every scheduler beats once a second, in a field of `{memd}:config`. One that starts with other settings than the inbox's
waits for a beat: when there is one, another scheduler is alive, and the new one ends unless it was told to take over.
One that finds the inbox's settings changed has been taken over, and ends. What was edited by hand is put back.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from contextlib import suppress

import redis

from memd.config import Settings
from memd.errors import NotReady, OtherSettings
from memd.inbox import library, verbs
from memd.inbox.connection import send, translate
from memd.inbox.verbs import P

SILENT_S = 3.0
"""Seconds without a beat after which no other scheduler is alive; three times the pause between two beats."""

LOOK_S = 0.1

RIVAL = (
    "E_OTHER_SETTINGS: a scheduler with other settings runs on this inbox (they differ in {}): give all of them "
    "the same settings, or start this one with --take-over, which ends the other"
)
TAKEN_OVER = (
    "E_OTHER_SETTINGS: a scheduler with other settings has taken this inbox over (they differ in {}): give this "
    "one the same settings"
)


class Ruling:
    """This scheduler among those of the inbox."""

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._settings = settings
        self._client = client
        self._holds = False
        """Whether the inbox has had our settings: then others mean that somebody has taken over."""

        self._last: bytes | str | None = None
        """Our last beat: a random number, so that each differs from the one before, whoever's that was."""

        self._others_at = -math.inf
        """When the last beat was not ours, on this host's monotonic clock."""

    def require_no_rival(self, is_stopping: Callable[[], bool]) -> library.Mark:
        """Wait until nobody with other settings is alive, SILENT_S at most. Raises OtherSettings when somebody is.

        Returns the mark of the settings that may be replaced: those of whoever comes meanwhile may not.
        """
        found = library.differing(self._client, self._settings)
        first = self._beats() if found.names and not found.by_hand else None
        if first is None:
            return found.seen
        until = time.monotonic() + SILENT_S
        while time.monotonic() < until and not is_stopping():
            time.sleep(LOOK_S)
            if self._beats() not in (first, None):
                raise OtherSettings(RIVAL.format(", ".join(found.names)))
        return found.seen

    def installed(self) -> None:
        """Note that the inbox got these settings: others in their place, from now on, mean that somebody took over."""
        self._holds = True

    def beat(self) -> library.Difference:
        """Say that a scheduler with these settings is alive. Returns what is different here: edited by hand.

        Raises OtherSettings when another scheduler has taken over.
        """
        found = library.differing(self._client, self._settings)
        if found.names and self._holds and not found.by_hand:
            raise OtherSettings(TAKEN_OVER.format(", ".join(found.names)))
        self._holds = self._holds or not found.names
        if self._beats() not in (None, self._last):
            self._others_at = time.monotonic()
        beat = random.getrandbits(48)
        with suppress(NotReady):  # the functions are gone, and are put back in this round
            send(self._client, verbs.beat(beat))
            self._last = str(beat).encode()
        return found if found.by_hand else library.Difference(seen=found.seen)

    def step_down(self) -> None:
        """Say that this scheduler ends, so that nobody has to wait for its beats; unless others go on."""
        if time.monotonic() - self._others_at < SILENT_S:
            return
        try:
            self._client.hdel(f"{P}:config", "beat")
        except redis.RedisError as error:
            translate(error, self._client)

    def _beats(self) -> bytes | str | None:
        try:
            return self._client.hget(f"{P}:config", "beat")
        except redis.RedisError as error:
            translate(error, self._client)
