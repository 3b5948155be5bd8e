"""`memd up` as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from memd.client import Memd
from memd.config import Settings
from memd.errors import MemdError
from support import TESTS, environment


@contextmanager
def up(settings: Settings) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """`memd up`, ended at the end; its log."""
    log = settings.data_dir / "up.log"
    stream: IO[bytes]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "memd", "up"],
            env={**environment(settings), "PYTHONPATH": TESTS},  # the settings may name a class of these tests
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        yield process, log
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(20)


def ready(settings: Settings) -> bool:
    """Whether all its workers listen."""
    try:
        with Memd(settings) as app:
            return len(app.status().workers) >= settings.drain.workers
    except MemdError:
        return False
