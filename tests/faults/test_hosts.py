"""Several hosts with networks and file systems of their own, one server, one PostgreSQL (`make test-store`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, wait_for

pytestmark = pytest.mark.store  # the hosts are for one test at a time: `make test-store` gives a worker whole files

ENDS_S = 300

HOLD = """
import sys
import psycopg
from memd.memory.store.postgres.connecting import conninfo_of
with psycopg.connect(conninfo_of(sys.argv[1]), autocommit=True) as connection, connection.pipeline():
    connection.execute("BEGIN")
    connection.execute("SELECT pg_advisory_xact_lock(7)").fetchone()
    print("held", flush=True)
    sys.stdin.read()
"""
"""A commit that has its lock, and whose pipeline has not ended."""


def test_a_host_that_is_cut_off_within_a_pipeline_holds_its_locks_for_seconds() -> None:
    """PostgreSQL has no time-out for the rest of a pipeline: it must find out that nobody is there."""
    from benchmarks.database import NAME, Missing, database
    from benchmarks.hosts import NoHosts, hosts

    try:
        with hosts(1) as there, database(there.address, there.network) as found:
            host = there.each[0]
            words = [*host.prefix, sys.executable, "-P", "-c", HOLD, found.url]
            env = {**os.environ, "PYTHONPATH": str(ROOT)}
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as holder:
                assert holder.stdout is not None
                assert holder.stdout.readline() == b"held\n"
                host.cut_off()
                free = "SELECT pg_try_advisory_xact_lock(7)"
                assert found.server.sql(free, NAME) == [(False,)]
                wait_for(lambda: found.server.sql(free, NAME) == [(True,)], "the lock is free", timeout_s=20)
                holder.kill()
    except (NoHosts, Missing) as error:
        pytest.skip(f"not run: {error}")


@pytest.mark.timeout(ENDS_S + 60)
def test_a_host_that_is_cut_off_loses_nothing_and_what_one_writes_another_reads(tmp_path: Path) -> None:
    """The small run of `make bench-scale`: two hosts, one cut off at work for longer than its lease, and healed.

    No push is lost or taken in twice, and every read at a host sees what was written at the other one before.
    """
    words = ["-m", "benchmarks", "scale", "--size", "tiny", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=ENDS_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    if found["skipped"]:
        pytest.skip(f"not run: {found['skipped'][0]['reason']}")
    counted = {one["what"]: one["value"] for one in found["figures"] if one["unit"] in ("contexts", "reads")}
    assert len(counted) == 4
    assert set(counted.values()) == {0}
