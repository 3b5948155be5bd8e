"""Peers that are installed apart: each has its own environment in `.bench/<name>`, made by `make bench-peers`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / ".bench"
PEERS = ("pydocket", "langmem")


class NotInstalled(Exception):
    """The peer's environment is not there: the registry has it not, or nobody has run `make bench-peers`."""


def run(name: str, *words: object, env: Mapping[str, str] | None = None, timeout_s: float = 300) -> dict[str, Any]:
    """What `benchmarks/peers/<name>_peer.py` prints, with these words. Raises NotInstalled."""
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        raise NotInstalled(f"{name} is not installed (make bench-peers)")
    script = Path(__file__).parent / f"{name}_peer.py"
    done = subprocess.run(
        [str(python), str(script), *map(str, words)],
        env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
