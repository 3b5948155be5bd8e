"""A real PostgreSQL of the tests' own, in a temporary folder, with fsync on, whatever server the machine runs.

PostgreSQL refuses to run as root: then it runs as the user `postgres`, whom Debian's package makes.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from memd.memory.store.postgres.migrations import migrate
from memd.ops.server import die_with
from support import ENDS_S, alive, wait_for
from support.databases import Missing
from support.fault_support import is_stopped

ACCOUNT = "postgres"
CLASS = "memd.memory.store.postgres.PostgresStore"

CONFIG = """
listen_addresses = '127.0.0.1'
fsync = on
full_page_writes = on
synchronous_commit = on
max_connections = 100
shared_buffers = 32MB
max_wal_size = 256MB
autovacuum_naptime = 10s
log_min_messages = warning
lc_messages = 'C'
timezone = 'UTC'
"""


def programs() -> Path:
    """The folder of PostgreSQL's programs: POSTGRES_BIN, or the newest one. Raises Missing."""
    if chosen := os.environ.get("POSTGRES_BIN"):
        return Path(chosen)
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda file: int(file.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if on_path and (Path(on_path).resolve().parent / "initdb").exists():
        return Path(on_path).resolve().parent
    raise Missing("PostgreSQL is not installed (apt-get install postgresql)")


def _account() -> pwd.struct_passwd | None:
    """The account that runs the server; None for our own. Raises Missing."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        raise Missing(f"PostgreSQL does not run as root, and there is no user {ACCOUNT} to run it") from None


class PostgresServer:
    """One server. Its socket and its data are in its folder."""

    def __init__(self, folder: Path, primary: PostgresServer | None = None, **changes: str) -> None:
        """Make the folder of the data: a new one, or a copy of a primary's for its standby. Raises Missing."""
        self._bin, self._as = programs(), _account()
        self.folder = folder
        self.data = folder / "data"
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        folder.chmod(0o711)
        self._own(folder)
        if primary is None:
            words = ["initdb", "-D", str(self.data), "-U", ACCOUNT, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        else:
            words = ["pg_basebackup", "-D", str(self.data), "-d", primary.url("postgres"), "-R", "-c", "fast"]
            source = f"'host=127.0.0.1 port={primary.port} user={ACCOUNT} application_name=standby'"
            changes = {"primary_conninfo": source, **changes}
        made = self._run(*words)
        if made.returncode:
            raise Missing(f"{words[0]} fails: {made.stderr.decode(errors='replace').strip()[-300:]}")
        self.configure(**changes)

    def configure(self, **changes: str) -> None:
        """Set what the next start reads."""
        config = {"unix_socket_directories": f"'{self.folder}'", "port": str(self.port), **changes}
        lines = "\n".join(f"{name} = {value}" for name, value in config.items())
        (self.data / "postgresql.auto.conf").write_text(f"{CONFIG}{lines}\n")

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [str(self._bin / "postgres"), "-D", str(self.data)],
            stdout=log,
            stderr=log,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509  (it only asks the kernel)
            **self._identity(),
        )
        log.close()
        wait_for(self.is_ready, "PostgreSQL takes connections")

    def is_ready(self) -> bool:
        """Whether it takes connections."""
        if self.process is None or self.process.poll() is not None:
            raise Missing(f"PostgreSQL does not start: {(self.folder / 'log').read_text()[-500:]}")
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """End all its processes at once, as a power cut of the machine would, except for the disk's cache."""
        assert self.process is not None
        first = self.process
        if first.poll() is None:
            first.send_signal(signal.SIGSTOP)  # else it starts others while these are killed, who outlive it
            wait_for(lambda: is_stopped(first.pid) or first.poll() is not None, "PostgreSQL starts no more processes")
        children = _children(first.pid)
        for child in children:
            _signal(child, signal.SIGKILL)
        first.send_signal(signal.SIGKILL)
        first.wait(ENDS_S)
        wait_for(lambda: not any(map(alive, children)), "its processes have ended")

    def freeze(self, frozen: bool) -> None:
        """Stop all its processes, or let them go on."""
        assert self.process is not None
        for pid in (self.process.pid, *_children(self.process.pid)):
            _signal(pid, signal.SIGSTOP if frozen else signal.SIGCONT)

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """End it in order; it may have ended already."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(ENDS_S)

    def url(self, name: str, **more: str) -> str:
        """The address of a database, on TCP."""
        query = "&".join(f"{key}={value}" for key, value in more.items())
        return f"postgresql://{ACCOUNT}@127.0.0.1:{self.port}/{name}" + (f"?{query}" if query else "")

    def make(self, name: str) -> str:
        """A new database with memd's tables; returns its address."""
        self.sql(f'CREATE DATABASE "{name}"')
        migrate(self.url(name))
        return self.url(name)

    def sql(self, statement: str, name: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser; its rows, if it has any."""
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([str(self._bin / program), *words], capture_output=True, check=False, **self._identity())

    def _identity(self) -> dict[str, Any]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        found: dict[str, Any] = {"cwd": "/", "env": env, "start_new_session": True}
        if self._as is not None:
            found |= {"user": self._as.pw_uid, "group": self._as.pw_gid, "extra_groups": []}
        return found

    def _own(self, folder: Path) -> None:
        if self._as is not None:
            os.chown(folder, self._as.pw_uid, self._as.pw_gid)


@contextmanager
def running(primary: PostgresServer | None = None, **changes: str) -> Iterator[PostgresServer]:
    """A running server, whose folder goes with it; of a primary its standby. Raises Missing."""
    folder = Path(tempfile.mkdtemp(prefix="memd-pg-"))
    server = None
    try:
        server = PostgresServer(folder, primary, **changes)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def empty(url: str) -> None:
    """Remove all rows of a database but the one that says which store it is."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'memd' AND tablename <> 'store' ORDER BY tablename"
        ).fetchall()
        for (table,) in rows:
            connection.execute(psycopg.sql.SQL("DELETE FROM memd.{}").format(psycopg.sql.Identifier(table)))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it has ended meanwhile
        return
