"""The tests of the store on PostgreSQL, which it starts by itself: `make test-store`, ten minutes at most.

PYTHONPATH=tests .venv/bin/python -m support.on_postgres           # contract, flow, doors, faults
PYTHONPATH=tests .venv/bin/python -m support.on_postgres --smoke   # seconds: the contract alone, or why it is not run
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]

CONTRACT = ("unit/test_stores.py",)
FILES = (
    *CONTRACT,
    "faults/test_postgres.py",
    "faults/test_postgres_cli.py",
    "faults/test_postgres_failover.py",
    "flow/test_flow.py",
    "flow/test_forget.py",
    "flow/test_forgetting.py",
    "flow/test_projects.py",
    "flow/test_said_flow.py",
    "flow/test_sessions.py",
    "flow/test_edits_beside_workers.py",
    "flow/test_asked_not_to.py",
    "faults/test_faults.py",
    "faults/test_faults_processes.py",
    "faults/test_dead_workers.py",
)

CANNOT = 3


def main() -> int:
    """The exit code of the tests; CANNOT without a server, and then a line says why."""
    parser = argparse.ArgumentParser(prog="python -m support.on_postgres", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a moment of it; without a server nothing, which is said")
    smoke = parser.parse_args().smoke
    if reason := _why_not():
        sys.stderr.write(f"not run on PostgreSQL: {reason}\n")
        return 0 if smoke else CANNOT
    words = ["-m", "pytest", "-c", "../pyproject.toml", "--rootdir=..", "-p", "no:cacheprovider", "-q"]
    words += CONTRACT if smoke else ("-n", "2", "--dist", "loadfile", "--durations", "12", *FILES)
    environ = {**os.environ, "STORE": "postgres", "PYTHONPATH": str(TESTS)}
    return subprocess.run([sys.executable, *words], cwd=TESTS, env=environ, check=False).returncode


def _why_not() -> str:
    """Why no server can be started here; empty when one can."""
    from support.databases import Missing

    try:
        from support.postgres_server import running

        with running():
            return ""
    except Missing as error:
        return str(error)
    except ImportError:
        return "the package psycopg is not installed (make setup)"


if __name__ == "__main__":
    sys.exit(main())
