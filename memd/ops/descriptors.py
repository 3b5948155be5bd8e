"""File descriptors: each process of memd raises its limit to what the settings need, and refuses to start with too few.

With too few, connections fail one by one and nothing is drained, and no log says why.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from memd.config import Settings
from memd.errors import ConfigError

LEAST = 128
"""The embedded server keeps 32 for itself; the rest are connections of workers, scheduler, HTTP and apps."""

BASE = 96
"""Of any process: its modules, logs, sockets, locks, and connections to the server."""

PER_CALL = 3
"""Of a model call in flight: its connection, its document and its lock."""


def needed(settings: Settings) -> int:
    """How many a process of these settings may have open at once."""
    http = settings.http.max_connections if settings.http.enabled else 0
    return max(LEAST, BASE + max(PER_CALL * settings.drain.concurrency, http))


def allowed() -> int:
    """How many a process may have, once it has raised its limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1 << 20 if hard == resource.RLIM_INFINITY else hard


def require(settings: Settings) -> None:
    """Raise this process's limit as far as needed and allowed. Raises ConfigError below LEAST."""
    if allowed() < LEAST:
        raise ConfigError(
            f"this process may open only {allowed()} files; raise the limit (ulimit -n) to {LEAST} or more"
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed(settings):
        with suppress(ValueError, OSError):  # then the limit stays as it is; doctor says what is needed
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(allowed(), needed(settings)), hard))
