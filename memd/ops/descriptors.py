"""File descriptors: each process of memd raises its limit to what the settings need, and refuses to start with too few.

With too few, connections fail one by one, keys are not drained, and no log says why.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from memd.config import Settings
from memd.errors import ConfigError

LEAST = 128
"""The embedded server keeps 32 for itself; the rest are connections of workers, scheduler, HTTP and apps."""

BASE = 96
"""Files that any process opens: modules, logs, sockets, locks, and connections to the server."""

PER_CALL = 3
"""Files for each model call in flight: its connection, its document and its lock."""


def needed(settings: Settings) -> int:
    """The number of files that a process with these settings may need to open at once."""
    http = settings.http.max_connections if settings.http.enabled else 0
    return max(LEAST, BASE + max(PER_CALL * settings.drain.concurrency, http))


def allowed() -> int:
    """The number of files that this process may open after it has raised its limit."""
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
        with suppress(ValueError, OSError):  # the limit stays as it is; the doctor reports it
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(allowed(), needed(settings)), hard))
