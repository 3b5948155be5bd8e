"""The RQ worker, hardened: it runs only our one function, and its forked child never outlives it."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from resource import struct_rusage
from typing import Any

import redis
from redis.client import Pipeline
from rq import Queue, Worker, worker_registration
from rq.exceptions import StopRequested
from rq.job import Job
from rq.serializers import JSONSerializer

from memd import __version__
from memd.config import Settings
from memd.errors import InboxUnavailable, MemdError, OtherStore, StoreUnavailable, StoreUnfit
from memd.events import Event, logger
from memd.extraction import preload
from memd.forget import Forgetting
from memd.inbox import library
from memd.inbox.bell import ARGUMENT, bell_queue
from memd.inbox.connection import connect, send, translated
from memd.inbox.outage import Outage
from memd.inbox.workers import died, own_name, registration
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Store
from memd.push import personal
from memd.push.signals import shared_patterns
from memd.workers import drain, rq_log, tracing
from memd.workers.job import BellJob

PR_SET_PDEATHSIG = 1
RECONNECT_MAX_S = 10.0
HEALTHY_S = 1.0
"""A worker that ran this long resets its backoff, even without a bell: repeated outages must not add up."""

STOP_S = 9.0
"""Seconds from SIGTERM to the exit, whatever hangs; shorter than the supervisor waits."""

BEAT_S = 5
"""Seconds between two heartbeats, while a bell runs and while none comes."""

LIFE_S = 20
"""Seconds that a worker counts as alive after a heartbeat."""

WORKER_TTL_S = BEAT_S + 15
"""RQ's blocking read ends 15 seconds earlier."""


def run(settings: Settings) -> None:
    """Run bells until a signal says stop. Heavy imports happen here, once, before the first fork.

    Raises ConfigError for a store, an extractor, patterns of signals or packages of `redaction.pii` or
    `tracing` that cannot be loaded, and OtherStore at any time.
    """
    store = open_store(settings)
    preload(settings.extraction)
    shared_patterns(settings.signals.folder)
    if settings.redaction.pii:
        personal.prepare()
    tracing.preload(settings)
    name = own_name()
    drain.configure(settings, name)
    log = logger(part="worker")
    if settings.store.shared:
        log.warning(Event.SHARED_STORE)
    log.info(Event.WORKER_STARTED, pid=os.getpid())
    stop, outage = Stop(), Outage(log)
    rq_log.only_news()
    _sweep(store, stop, outage)
    pause = 0.1
    while not stop.requested:
        stop.listen()
        started = time.monotonic()
        ran_bells = _run_bells(settings, name, stop, outage)
        pause = pause_after(pause, ran_bells, time.monotonic() - started)
        stop.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  (jitter, not a secret)
    log.info(Event.WORKER_STOPPED, pid=os.getpid())


def _sweep(store: Store, stop: Stop, outage: Outage) -> None:
    """Remove what crashes left behind, as soon as the store can be reached. Raises StoreUnfit."""
    pause = 0.1
    while not stop.requested:
        stop.listen()
        try:
            store.sweep()
        except StoreUnfit:  # only a person can fix it
            raise
        except StoreUnavailable as error:
            outage.failed(error)
            stop.sleep(pause)
            pause = pause_after(pause, ran_bells=False, lasted_s=0)
        else:
            outage.ended()
            break
    store.close()  # the children open their own


def pause_after(pause_s: float, ran_bells: bool, lasted_s: float) -> float:
    """Seconds until the next try of a worker that has ended: doubles after each useless try, up to RECONNECT_MAX_S."""
    return 0.1 if ran_bells or lasted_s >= HEALTHY_S else min(RECONNECT_MAX_S, pause_s * 2)


def _run_bells(settings: Settings, name: str, stop: Stop, outage: Outage) -> bool:
    """Run an RQ worker until a signal or until RQ gives up the server. Returns whether any bell ran."""
    ran_bells = False
    worker = None
    try:
        _finish_forgettings(settings, outage)
        worker = _worker(settings, name)
        worker.stop, worker.store, worker.outage = stop, open_store(settings), outage
        worker.work(logging_level="WARNING")
        ran_bells = worker.ran_bells
    except redis.RedisError as error:  # no context is held here: the child has its own connection and leases
        if worker is not None:
            outage.failed(translated(error, worker.connection))
        if isinstance(error, redis.OutOfMemoryError):
            _drain_directly(settings, name, stop)
    return ran_bells


def _finish_forgettings(settings: Settings, outage: Outage) -> None:
    """Finish forgettings that were interrupted by an outage or a crash, before anything is claimed.

    Raises OtherStore.
    """
    log = logger(part="worker")
    store = open_store(settings)
    with connect(settings) as client, closing(store):
        try:
            wishes = Forgetting(settings, client, store).mend()
        except OtherStore:
            raise
        except InboxUnavailable as error:  # the tombstones stay open until the server is back
            outage.failed(error)
            return
        except MemdError as error:  # the tombstones stay open; each claim of such a user tries again
            log.warning(Event.FORGETTING_WAITS, code=type(error).__name__)
            return
    if wishes:
        log.info(Event.FORGOTTEN, wishes=wishes)


class Stop:
    """Whether a signal has asked this worker to stop. It has no lock: a signal may arrive while a lock is held."""

    requested = False
    drain_pid = 0
    """The child that drains without RQ, which gets the signal as well; 0 for none."""

    def listen(self) -> None:
        """Handle SIGTERM and SIGINT. RQ leaves handlers behind that would ignore the next signal."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.request())

    def request(self) -> None:
        """Stop soon; after STOP_S by force, because a library may swallow the exception that the signal raises."""
        if not self.requested:
            self.requested = True
            force = threading.Timer(STOP_S, os._exit, [1])
            force.daemon = True
            force.start()
        if self.drain_pid:
            os.kill(self.drain_pid, signal.SIGTERM)

    def sleep(self, seconds: float) -> None:
        """Sleep, but wake up when a signal asks to stop."""
        until = time.monotonic() + seconds
        while not self.requested and time.monotonic() < until:
            time.sleep(0.05)


class BellWorker(Worker):
    """RQ's forking worker. It forwards SIGTERM to its child; when it is killed, the child dies too."""

    max_connection_wait_time = 2
    log_result_lifespan = False
    ran_bells = False
    child_died = False
    stop: Stop
    store: Store
    outage: Outage
    on_death: Callable[[], None]
    """Called when the child has died before its bell ended."""

    def handle_warm_shutdown_request(self) -> None:
        """Signal the drain in the child, which gives its claims back within three seconds."""
        self.stop.request()
        if self.horse_pid:
            try:
                os.kill(self.horse_pid, signal.SIGTERM)
            except ProcessLookupError:  # it has ended already; nothing is in hand
                return

    def bootstrap(self, *arguments: Any) -> None:
        """Register with RQ, and close what was opened when that fails half-way."""
        try:
            super().bootstrap(*arguments)
        except redis.RedisError:  # nothing is in hand
            with suppress(redis.RedisError):
                self.teardown()
            raise
        self.outage.ended()

    def register_birth(self) -> None:
        """Register with RQ, with memd's version as a further field of RQ's hash of this worker."""
        super().register_birth()  # type: ignore[no-untyped-call]  # RQ's gap
        self.connection.hset(self.key, "memd", __version__)
        self.connection.expire(self.key, LIFE_S)

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        """Report to RQ that this worker lives. RQ also calls this before each try to reach a lost server."""
        if self.stop.requested and not self.horse_pid:
            raise StopRequested
        try:
            super().heartbeat(min(timeout or LIFE_S, LIFE_S), pipeline)
            # Registered again each time: an emptied server does not know this worker and would give it no bells.
            connection = self.connection if pipeline is None else pipeline
            connection.hset(self.key, mapping={**self.serialize(), "state": self.get_state()})
            worker_registration.register(self, pipeline)
        except redis.RedisError as error:  # RQ tries again, or `run` does
            self.outage.failed(translated(error, self.connection))
            raise
        if pipeline is None:
            self.outage.ended()

    def teardown(self) -> None:
        """Unregister, and close thread and sockets even where the server is unreachable.

        Each outage makes a new worker, so connections left open by old workers would pile up.
        """
        try:
            super().teardown()  # type: ignore[no-untyped-call]  # RQ's gap
        finally:
            if self.pubsub_thread is not None:
                self.pubsub_thread.stop()
            self.connection.connection_pool.disconnect()  # also wakes the thread, which then ends

    def handle_payload(self, message: Any) -> None:
        """Obey a command that RQ has published for this worker. Anything else is refused, and the thread goes on."""
        try:
            super().handle_payload(message)  # type: ignore[no-untyped-call]  # RQ's gap
        except Exception as error:  # noqa: BLE001  (anybody who may publish may send anything)
            logger(part="worker").warning(Event.JOB_REFUSED, code="not_a_command", error=type(error).__name__)

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Wait for a bell. Before the first wait the patterns are compiled: a second that no due key waits for."""
        if self.stop.requested:  # by a signal before RQ handled them
            raise StopRequested
        drain.prepare()
        return super().dequeue_job_and_maintain_ttl(timeout, max_idle_time)

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run one bell in a forked child. A worker whose store is not the inbox's stops instead."""
        try:
            library.require_store(self.connection, self.store)
        except MemdError:  # the next round of `run` meets the same error, and ends or waits
            raise StopRequested from None
        finally:
            self.store.close()  # the child opens its own
        self.ran_bells, self.child_died = True, False
        try:
            super().execute_job(job, queue)
        finally:
            if self.child_died:
                self.on_death()

    def wait_for_horse(self) -> tuple[int | None, int | None, struct_rusage | None]:
        """Wait for the child, and note whether it died before its bell ended."""
        pid, status, usage = super().wait_for_horse()
        self.child_died = pid is not None and status != os.EX_OK
        return pid, status, usage

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        """First make the child die with its parent: an orphan would go on with claims that were given to others."""
        die_with_parent(self.pid or os.getppid())
        super().main_work_horse(job, queue)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends (Linux; elsewhere the lease alone protects)."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):  # no prctl here; an orphan's commit fails once its lease has expired
        return
    if os.getppid() != parent:  # the parent ended before the call
        os._exit(1)


def _worker(settings: Settings, name: str) -> BellWorker:
    connection = connect(settings, retries=0)  # RQ changes the time-outs of its client, so it gets its own
    worker = BellWorker(
        [bell_queue(connection, BellJob)],
        name=registration(name),
        connection=connection,
        job_class=BellJob,
        serializer=JSONSerializer,
        worker_ttl=WORKER_TTL_S,
        job_monitoring_interval=BEAT_S,
        log_job_description=False,
    )
    worker.on_death = partial(_release_claims, settings, name)
    return worker


def _release_claims(settings: Settings, name: str) -> None:
    """Release the claims of a forked child that died. If that fails, they return when their leases expire."""
    try:
        with connect(settings) as client:
            released = send(client, died(name))
    except MemdError as error:
        logger(part="worker").warning(Event.CLAIM_LOST, code=type(error).__name__)
        return
    logger(part="worker").warning(Event.DRAIN_DIED, claims=released)


def _drain_directly(settings: Settings, name: str, stop: Stop) -> None:
    """Drain in a child without RQ: a server at its memory limit refuses RQ, but runs the drain's functions.

    They free memory.
    """
    stop.listen()
    drain.prepare()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is in hand before the drain handles it
        die_with_parent(parent)
        try:
            drain.drain(ARGUMENT)
        finally:
            os._exit(0)
    stop.drain_pid = child
    if stop.requested:  # during the fork
        stop.request()
    # The zombie keeps its pid until the pid is forgotten here, so that a signal reaches no other process.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    stop.drain_pid = 0
    if os.waitpid(child, 0)[1] != os.EX_OK:
        _release_claims(settings, name)
