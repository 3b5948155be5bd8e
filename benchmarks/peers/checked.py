"""Runs peers and checks that their work succeeded: a figure of failed work is never printed.

Each peer from the registry has its own environment, `.bench/<name>`, made by `make bench-peers`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.figures import Measurement, Skip

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
    except PeerFailed as error:
        yield Skip(area, peer, str(error), failed=True)


def run(name: str, *words: object, env: Mapping[str, str] | None = None, timeout_s: float = 300) -> dict[str, Any]:
    """The line of JSON that `benchmarks/peers/<name>_peer.py` prints, run with these words.

    Raises NotInstalled, and PeerFailed when the peer ends with an error.
    """
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        raise NotInstalled(f"{name} is not installed (make bench-peers)")
    script = Path(__file__).parent / f"{name}_peer.py"
    done = subprocess.run(
        [str(python), str(script), *map(str, words)],
        env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    if done.returncode:
        raise PeerFailed(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
