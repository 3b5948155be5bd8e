"""The tests of what the newest RQ and OpenTelemetry change, in an environment of their own: `make test-newest`.

It has RQ 3, where the others have the RQ 2 of constraints.txt, and OpenTelemetry, which redis-py loads where it is
installed, at each start of each process; everything else comes from the environment that this runs in.

PYTHONPATH=tests .venv/bin/python -m support.newest           # workers, accounts, deaths, traces
PYTHONPATH=tests .venv/bin/python -m support.newest --smoke   # a moment of it
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
HOME = ROOT / ".newest"

RQ = "rq==3.0.0"
MORE = re.compile(r"(opentelemetry-|protobuf=|googleapis-common-protos=)")
"""What is taken from constraints.txt."""

SMOKE = ("flow/test_spans.py", "flow/test_worker.py")
FILES = (
    *SMOKE,
    "flow/test_flow.py",
    "doors/test_acl.py",
    "faults/test_dead_workers.py",
    "faults/test_outage_lines.py",
    "faults/test_faults_processes.py",
)


def main() -> int:
    """The exit code of the tests; 0 where the packages cannot be installed, and then a line says so."""
    parser = argparse.ArgumentParser(prog="python -m support.newest", description="Tests with RQ 3 and OpenTelemetry.")
    parser.add_argument("--smoke", action="store_true", help="a moment of it")
    files = SMOKE if parser.parse_args().smoke else FILES
    if not _install():
        sys.stderr.write("not run with RQ 3 and OpenTelemetry: their packages cannot be installed\n")
        return 0
    words = [str(HOME / "bin" / "python"), "-m", "pytest", "-c", "../pyproject.toml", "--rootdir=.."]
    return subprocess.run([*words, "-p", "no:cacheprovider", "-q", *files], cwd=TESTS, check=False).returncode


def _install() -> bool:
    """Make the environment, unless it has these packages already."""
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    packages = [RQ, *filter(MORE.match, pinned)]
    ready = HOME / "ready.txt"
    if ready.exists() and ready.read_text() == "\n".join(packages):
        return True
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(HOME)], check=True)
    here = Path(sysconfig.get_path("purelib"))
    there = next(HOME.glob("lib/python*/site-packages"))
    (there / "others.pth").write_text(f"{ROOT}\n{here}\n")
    pip = [sys.executable, "-m", "pip", "--python", str(HOME / "bin" / "python"), "--disable-pip-version-check"]
    done = subprocess.run([*pip, "install", "--quiet", "--no-deps", *packages], check=False)
    if done.returncode == 0:
        ready.write_text("\n".join(packages))
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
