"""The demo's own daemon: `memd up` on a folder of the demo, for the length of a block."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from memd.config import Settings, as_environment
from memd.errors import InboxUnavailable, MemdError
from memd.inbox import library
from memd.inbox.connection import connect
from memd.inbox.figures import workers_listening

READY_S = 15.0


@contextmanager
def running(settings: Settings) -> Iterator[None]:
    """The embedded server, the scheduler and the workers run inside the block. Raises InboxUnavailable."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "memd", "up"],
        env={**os.environ, **as_environment(settings)},
        start_new_session=True,
    )
    try:
        _wait_until_ready(settings, process)
        yield
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(settings: Settings, process: subprocess.Popen[bytes]) -> None:
    """Until the scheduler has loaded the inbox's functions and a worker listens. Raises InboxUnavailable."""
    deadline = time.monotonic() + READY_S
    with connect(settings) as client:
        while True:
            try:
                if library.installed(client) and workers_listening(client):
                    return
            except MemdError:  # the server is still starting; the deadline decides when that is an error
                pass
            if process.poll() is not None or time.monotonic() > deadline:
                raise InboxUnavailable("`memd up` did not become ready; its log is above")
            time.sleep(0.05)
