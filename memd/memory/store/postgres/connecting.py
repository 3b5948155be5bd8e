"""Connections to PostgreSQL: one pool for each process, time-outs on both sides, errors as memd's own.

A forked child must not use its parent's connections, nor end them: it leaves them alone and opens its own.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from memd.errors import ConfigError, StoreSealed, StoreUnavailable, StoreUnfit
from memd.memory.store.seal_file import SEALED

T = TypeVar("T")
RV = TypeVar("RV")

ANSWER_S = 10.0
"""Seconds after which the client gives an answer up: a frozen server holds nobody for longer."""

STATEMENT_MS, LOCK_MS, IDLE_MS = 8_000, 5_000, 10_000
"""The server's time-outs of a statement, of a wait for a lock, and of a transaction that does nothing. Together they
are below the lease, so that a worker that was cut off holds its locks no longer than its claim."""

FREE_S = 5.0
"""Seconds to wait for a connection of the pool."""

ROUNDS = 3
"""How often work is begun anew because its connection was lost before anything was written."""

IDLE_S = 60.0
"""Seconds after which a connection that nobody needs is closed."""

SILENT_S, PROBE_S, PROBES, SILENT_MS = 5, 2, 3, 10_000
"""Either side takes the other for gone: silent for 5 s and to three probes, or 10 s without a confirmation."""

SETTINGS = (
    f"-c statement_timeout={STATEMENT_MS} -c lock_timeout={LOCK_MS} -c idle_in_transaction_session_timeout={IDLE_MS} "
    f"-c tcp_keepalives_idle={SILENT_S} -c tcp_keepalives_interval={PROBE_S} -c tcp_keepalives_count={PROBES} "
    f"-c tcp_user_timeout={SILENT_MS}"
)
"""What the server is told. No time-out of statements or transactions runs while it waits for the rest of a pipeline, so
only the probes end the transaction of a host that is cut off there; by default a server waits two hours."""

LINK: dict[str, str | int] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": SILENT_S,
    "keepalives_interval": PROBE_S,
    "keepalives_count": PROBES,
    "tcp_user_timeout": SILENT_MS,
    "target_session_attrs": "read-write",  # of several hosts the primary; a standby's documents may be old
}

FITNESS = """
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('server_version_num')::int
"""
HAS_TABLES = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'memd' AND tablename = 'store')"

LEAST_SERVER = 130_000

SEALED_STATE = "MEMD1"
"""The code of the error by which the function of the tables refuses a write."""

NO_TABLES = "E_STORE_SCHEMA: the database has no tables of memd; make them with `memd store init`"

_WORDS: tuple[tuple[type[psycopg.Error], str], ...] = (
    (PoolTimeout, "E_STORE_CONNECTIONS: no connection to PostgreSQL was free or could be opened in time"),
    (errors.DiskFull, "E_STORE_ENOSPC: PostgreSQL has no room on its disk"),
    (errors.LockNotAvailable, "E_STORE_LOCKED: a lock in PostgreSQL was not free in time"),
    (errors.DeadlockDetected, "E_STORE_DEADLOCK: PostgreSQL found a deadlock every time"),
    (errors.QueryCanceled, "E_STORE_TIMEOUT: PostgreSQL took too long"),
    (errors.ReadOnlySqlTransaction, "E_STORE_READ_ONLY: PostgreSQL takes no writes; is it a standby?"),
    (errors.TooManyConnections, "E_STORE_CONNECTIONS: PostgreSQL takes no more connections"),
    (errors.InvalidAuthorizationSpecification, "E_STORE_LOGIN: PostgreSQL refuses the user or the password"),
    (errors.InvalidPassword, "E_STORE_LOGIN: PostgreSQL refuses the user or the password"),
    (errors.InsufficientPrivilege, "E_STORE_RIGHTS: the role lacks a right; `memd store roles` prints what it needs"),
    (errors.UndefinedTable, NO_TABLES),
    (errors.InvalidSchemaName, NO_TABLES),
    (errors.UndefinedFunction, "E_STORE_SCHEMA: the tables are older than this version of memd; run `memd store init`"),
    (errors.UndefinedColumn, "E_STORE_SCHEMA: the tables are older than this version of memd; run `memd store init`"),
)


_REFUSALS = (
    ("authentication failed", "E_STORE_LOGIN: PostgreSQL refuses the user or the password"),
    ("no password supplied", "E_STORE_LOGIN: PostgreSQL asks for a password; PGPASSWORD or PGPASSFILE has it"),
    ("no pg_hba.conf entry", "E_STORE_LOGIN: PostgreSQL lets this user in from nowhere here (pg_hba.conf)"),
    ("too many c", "E_STORE_CONNECTIONS: PostgreSQL takes no more connections"),
    ("remaining connection slots", "E_STORE_CONNECTIONS: PostgreSQL takes no more connections"),
    ("does not exist", "E_STORE_DATABASE: PostgreSQL has no such database or role"),
    ("certificate", "E_STORE_TLS: the certificate of PostgreSQL is not accepted"),
    ("SSL", "E_STORE_TLS: PostgreSQL and the settings do not agree on TLS"),
    ("read-only", "E_STORE_READ_ONLY: PostgreSQL takes no writes; is it a standby?"),
)
"""A refused login has no code, only words. They are compared, and never repeated: they name users and hosts."""

NO_CONNECTION = "E_STORE_CONNECTION: PostgreSQL cannot be reached, or does not answer"


class Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for each answer ANSWER_S at most. `warned`: whether the server has warned of anything."""

    warned = False

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for an answer. Raises psycopg.OperationalError when it takes too long, and closes the connection."""
        try:
            return super().wait(gen, interval, ANSWER_S if timeout is None else timeout)
        except errors._WaitTimeout:
            self.close()
            raise psycopg.OperationalError("no answer in time") from None


class Postgres:
    """The connections of this process to one database. Safe to use from many threads, and in forked children."""

    def __init__(self, conninfo: str, connections: int) -> None:
        """Nothing is opened yet."""
        self._connections = connections
        self._conninfo = conninfo
        self._reset()

    @classmethod
    def at(cls, url: str, connections: int) -> Postgres:
        """The connections to this address; all stores of a process share them. Raises ConfigError."""
        key = (conninfo_of(url), connections)
        return _ALL.setdefault(key, cls(*key))

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Bounded] | None = None
        self._held = threading.local()
        self._attempt: Future[ConnectionPool[Bounded]] | None = None

    def run(self, work: Callable[[Bounded], T]) -> T:
        """Run statements that change nothing, or that may be run twice. Within a transaction of this thread: in it.

        Raises StoreUnavailable.
        """
        inside: Bounded | None = getattr(self._held, "connection", None)
        if inside is not None:
            return work(inside)
        for left in range(ROUNDS, 0, -1):
            try:
                with self.borrowed() as connection:
                    return work(connection)
            except psycopg.Error as error:
                if left == 1 or not is_lost(error):
                    raise unavailable(error) from None
        raise StoreUnavailable(NO_CONNECTION)

    @contextmanager
    def borrowed(self) -> Iterator[Bounded]:
        """A connection of the pool. It is closed where the block left a transaction open. Raises psycopg.Error."""
        pool = self._opened()
        connection = pool.getconn()
        try:
            yield connection
        except psycopg.Error as error:
            if is_lost(error):  # the others of the pool are as dead, if the server was restarted
                self._drop(pool)
            raise
        finally:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.close()
            pool.putconn(connection)

    @contextmanager
    def within(self, connection: Bounded) -> Iterator[None]:
        """Let what this thread reads meanwhile be read in the transaction of this connection."""
        self._held.connection = connection
        try:
            yield
        finally:
            self._held.connection = None

    def steadily(self, work: Callable[[Bounded], T]) -> T:
        """Run statements that only read, and that all see the same moment. Raises StoreUnavailable."""

        def steady(connection: Bounded) -> T:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            result = work(connection)
            connection.execute("COMMIT")
            return result

        return self.run(steady)

    def new(self) -> Bounded:
        """A connection beside the pool. Raises psycopg.Error."""
        connection = Bounded.connect(self._conninfo, autocommit=True)
        _prepare(connection)
        return connection

    @staticmethod
    def close_all() -> None:
        """Close all connections of this process."""
        for one in _ALL.values():
            one.close()

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        pool = self._pool
        if pool is not None:
            self._drop(pool, ANSWER_S)

    def _drop(self, pool: ConnectionPool[Bounded], wait_s: float = 0) -> None:
        """Close a pool, and wait so long for its threads to end; what is in use is closed when it comes back."""
        with self._lock:
            if self._pool is pool:
                self._pool = None
        with suppress(psycopg.Error):
            pool.close(wait_s)

    def _opened(self) -> ConnectionPool[Bounded]:
        """The pool. One thread tries to reach the server; those that come meanwhile wait for it, and fail with it."""
        with self._lock:
            if self._pool is not None:
                return self._pool
            attempt, is_ours = self._attempt or Future(), self._attempt is None
            self._attempt = attempt
        if is_ours:
            try:
                attempt.set_result(self._open())
            except BaseException as error:
                attempt.set_exception(error)
                raise
            finally:
                with self._lock:
                    self._attempt = None
        try:
            return attempt.result()
        except StoreUnavailable as error:
            raise type(error)(str(error)) from None

    def _open(self) -> ConnectionPool[Bounded]:
        """Open a pool, after a look at the server. Raises StoreUnavailable."""
        try:
            with self.new() as connection:
                check_fitness(connection)
        except psycopg.Error as error:
            raise unavailable(error) from None
        pool = ConnectionPool(
            self._conninfo,
            connection_class=Bounded,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=self._connections,
            open=False,
            configure=_prepare,
            name="memd",
            timeout=FREE_S,
            max_idle=IDLE_S,
            reconnect_timeout=FREE_S,  # a longer one backs off for minutes while the server is back
        )
        pool.open()
        with self._lock:
            self._pool = pool
        return pool


def check_fitness(connection: Bounded) -> None:
    """Raise StoreUnfit for a server that loses what it has acknowledged, is too old, or has no tables of memd."""
    check_server(connection)
    if (row := connection.execute(HAS_TABLES).fetchone()) is None or not row[0]:
        raise StoreUnfit(NO_TABLES)


def check_server(connection: Bounded) -> None:
    """Raise StoreUnfit for a server that loses what it has acknowledged, or is too old."""
    row = connection.execute(FITNESS).fetchone()
    fsync, full_page_writes, version = row or ("off", "off", 0)
    if fsync != "on" or full_page_writes != "on":
        raise StoreUnfit(
            "E_STORE_UNFIT: PostgreSQL runs with fsync or full_page_writes off, so a crash loses or tears memories: "
            "switch both on"
        )
    if version < LEAST_SERVER:
        raise StoreUnfit("E_STORE_UNFIT: PostgreSQL is too old; memd needs version 13 or newer")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection has gone, so that another one may do."""
    if isinstance(error, PoolTimeout):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P", "25P03"))


def unavailable(error: psycopg.Error) -> StoreUnavailable:
    """An error as memd's own: a code and a sentence, without anything that the server or the library says."""
    if error.sqlstate == SEALED_STATE:
        return StoreSealed(SEALED)
    for kind, sentence in _WORDS:
        if isinstance(error, kind):
            is_unfit = sentence.startswith("E_STORE_SCHEMA")
            return (StoreUnfit if is_unfit else StoreUnavailable)(sentence)
    if error.sqlstate is None:
        said = str(error)
        return StoreUnavailable(next((sentence for words, sentence in _REFUSALS if words in said), NO_CONNECTION))
    return StoreUnavailable(f"E_STORE_SQL_{error.sqlstate}: PostgreSQL refused a statement")


def _prepare(connection: Bounded) -> None:
    def warned(notice: psycopg.errors.Diagnostic) -> None:
        connection.warned = connection.warned or notice.severity_nonlocalized == "WARNING"

    connection.add_notice_handler(warned)


def conninfo_of(url: str) -> str:
    """The address with our time-outs. Raises ConfigError."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:  # its text repeats the address, with the password
        raise ConfigError(
            "setting store.url: no address of a database; write postgresql://user@host:5432/name"
        ) from None
    options = f"{given.get('options') or os.environ.get('PGOPTIONS', '')} {SETTINGS}".strip()
    ours: dict[str, str | int | None] = {name: value for name, value in LINK.items() if name not in given}
    return make_conninfo(url, **ours, options=options, application_name=given.get("application_name") or "memd")


_ALL: dict[tuple[str, int], Postgres] = {}
"""The connections of this process, by address and number."""

_LEFT: list[object] = []
"""The parent's pools in a forked child: never used nor collected, as ending them would end the parent's connections."""


def _forked() -> None:
    for one in _ALL.values():
        _LEFT.append((one._pool, one._held, one._lock))
        one._reset()


os.register_at_fork(after_in_child=_forked)
logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # it names hosts and users; outages are logged by memd
