"""A PostgreSQL for a run, as the tests start one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ground import ROOT
from benchmarks.timing import tree_cpu

sys.path.append(str(ROOT / "tests"))  # last: only for `support`, whose server this is

from support.databases import Missing
from support.on_postgres import programs_with_pgvector
from support.postgres_server import CLASS, PostgresServer

__all__ = ["CLASS", "NAME", "Database", "Missing", "database", "programs_with_pgvector"]

ROOM = {"shared_buffers": "128MB", "max_wal_size": "1GB"}
NAME = "bench"


@dataclass(frozen=True, slots=True)
class Database:
    """A database with memd's tables, and its address for other hosts."""

    url: str
    server: PostgresServer

    def cpu_s(self) -> float:
        """Seconds of CPU of all its processes so far."""
        assert self.server.process is not None
        return tree_cpu(self.server.process.pid)

    def log_bytes(self) -> int:
        """Bytes that it has written to its write-ahead log so far."""
        ((found,),) = self.server.sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
        return int(found)

    def tables(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes, indexes included, of each of memd's tables that has any."""
        self.server.sql("VACUUM ANALYZE", NAME)
        names = [row[0] for row in self.server.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'memd'", NAME)]
        found = {}
        for name in names:
            count = f"SELECT count(*), pg_total_relation_size('memd.{name}') FROM memd.{name}"  # noqa: S608  (its own)
            ((rows, size),) = self.server.sql(count, NAME)
            if rows:
                found[name] = (int(rows), int(size))
        return found


@contextmanager
def database(address: str, network: str) -> Iterator[Database]:
    """A server that listens on this address for this network (10.0.0.0/24). Raises Missing."""
    folder = Path(tempfile.mkdtemp(prefix="memd-pg-"))
    server = None
    try:
        server = PostgresServer(folder, None, listen_addresses=f"'127.0.0.1,{address}'", **ROOM)
        with (server.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} trust\n")
        server.start()
        server.make(NAME)
        yield Database(server.url(NAME).replace("127.0.0.1", address), server)
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
