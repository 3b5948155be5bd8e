"""The open connections of a listener: no more than `http.max_connections`, whatever clients open.

A new connection above the limit takes the place of the one that has been idle longest. Where none is idle, SPARE more
are accepted, whose requests get 503; any further one is reset at once.
"""

from __future__ import annotations

from typing import Protocol

SPARE = 32
"""Connections above the limit that are kept just long enough to send them 503."""


class Member(Protocol):
    """A connection."""

    def close_idle(self) -> bool:
        """Close the connection, unless it still has something to send. Returns whether it was closed."""
        ...


class Crowd:
    """All connections of one listener, in one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[Member] = set()
        self._idle: dict[Member, None] = {}
        """The connections without a request, longest idle first."""

    def admits(self, member: Member) -> bool:
        """Add a new connection as idle, and close the longest idle one if needed. Returns False without room."""
        if len(self._open) >= self._most and not self._close_oldest() and len(self._open) >= self._most + SPARE:
            return False
        self._open.add(member)
        self._idle[member] = None
        return True

    def works(self, member: Member) -> None:
        """Bytes of a request have arrived."""
        self._idle.pop(member, None)

    def rests(self, member: Member) -> None:
        """The response is sent; the connection waits for another request."""
        self._idle[member] = None

    def leaves(self, member: Member) -> None:
        """The connection has ended."""
        self._open.discard(member)
        self._idle.pop(member, None)

    def _close_oldest(self) -> bool:
        oldest = next((member for member in self._idle if member.close_idle()), None)
        if oldest is None:
            return False
        self.leaves(oldest)
        return True
