"""Runs peers and checks that their work succeeded: a figure of failed work is never printed.

Each peer from the registry has its own environment, `.bench/<name>`, made by `make bench-peers`.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from benchmarks.figures import Measurement, Skip
from benchmarks.timing import wait_until

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / ".bench"
FAILED_JOBS = "rq:failed:bench"
"""RQ's registry of failed jobs of the queue `bench`."""


class NotInstalled(Exception):
    """The peer's environment is missing: `make bench-peers` was not run, or the registry does not have the peer."""


class PeerFailed(Exception):
    """Part of a peer's work failed, so its figures would be those of failures."""


def check_succeeded(peer: str, succeeded: int, expected: int, why: str = "") -> None:
    """Raise PeerFailed unless all of the peer's work succeeded. `why`: describes the failures."""
    if succeeded != expected:
        raise PeerFailed(f"{peer}: {succeeded} of {expected} succeeded" + (f" ({why})" if why else ""))


def figures_of(area: str, peer: str, measurements: Iterator[Measurement]) -> Iterator[Measurement]:
    """A peer's measurements, or a Skip with the reason."""
    try:
        yield from measurements
    except NotInstalled as error:
        yield Skip(area, peer, str(error))
    except (PeerFailed, TimeoutError) as error:
        yield Skip(area, peer, str(error), failed=True)


def run(
    name: str,
    *words: object,
    script: str = "",
    env: Mapping[str, str] | None = None,
    timeout_s: float = 300,
    look: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """The line of JSON that `benchmarks/peers/<script or name>_peer.py` prints, run with these words.

    `look` is called with its process id every few milliseconds. Raises NotInstalled; PeerFailed when the peer ends with
    an error or prints no JSON; TimeoutError, once the peer is killed.
    """
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        raise NotInstalled(f"{name} is not installed (make bench-peers)")
    path = Path(__file__).parent / f"{script or name}_peer.py"
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        running = subprocess.Popen(
            [str(python), str(path), *map(str, words)],
            env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
        )  # fmt: skip
        try:
            wait_until(lambda: _ended(running, look), f"{name} has done its work", timeout_s, 0.02)
        finally:
            running.kill()
            running.wait()
        if running.returncode:
            raise PeerFailed(f"{name} failed: {_lines(err)[-1:]}")
        try:
            found: dict[str, Any] = json.loads(_lines(out)[-1])
        except (IndexError, ValueError) as error:
            raise PeerFailed(f"{name} printed no result") from error
    return found


def _ended(running: subprocess.Popen[bytes], look: Callable[[int], None]) -> bool:
    if running.poll() is not None:
        return True
    look(running.pid)
    return False


def _lines(file: IO[str]) -> list[str]:
    file.seek(0)
    return file.read().strip().splitlines()
