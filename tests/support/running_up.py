"""`memd up` as a process, with the parts that it starts itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from memd.client import Memd
from memd.config import Settings
from memd.errors import MemdError
from support import TESTS, environment, forkserver


@contextmanager
def up(
    settings: Settings, constants: Mapping[str, float] | None = None, words: Sequence[str] = ()
) -> Iterator[tuple[forkserver.Part, Path]]:
    """`memd up`, with these words after it, ended at the end; its log.

    For `constants`, which its parts do not get, see `ForkServer.start`.
    """
    log = settings.data_dir / "up.log"
    log.write_bytes(b"")
    env = {**environment(settings), "PYTHONPATH": TESTS}  # the settings may name a class of these tests
    process = forkserver.start(["up", *words], env, settings.data_dir, log, constants)
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
