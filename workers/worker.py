"""The RQ worker, hardened: our serializer, our one function, a child that never outlives its parent."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import redis
from redis.client import Pipeline
from rq import Queue, Worker, worker_registration
from rq.exceptions import StopRequested
from rq.job import Job
from rq.serializers import JSONSerializer

from memd import __version__
from memd.config import Settings
from memd.errors import MemdError
from memd.events import Event, logger
from memd.extraction import preload
from memd.forget import Forgetting
from memd.inbox.bell import ARGUMENT, bell_queue
from memd.inbox.connection import connect
from memd.memory.store.json_store import open_store
from workers import drain
from workers.job import BellJob

PR_SET_PDEATHSIG = 1
RECONNECT_MAX_S = 10.0
HEALTHY_S = 1.0
"""A worker that lasted this long starts its backoff anew, even if nobody rang: outages that repeat must not add up."""

STOP_S = 9.0
"""Seconds from SIGTERM to the end, whatever hangs; less than the supervisor's patience."""

WORKER_TTL_S = 60
"""How long RQ believes in a worker that says nothing; also bounds its blocking read."""


def run(settings: Settings) -> None:
    """Answer bells until told to stop. Heavy imports happen here, once, before the first fork."""
    open_store(settings).sweep()  # a store that cannot be loaded stops the start
    preload(settings.extraction)
    drain.configure(settings)
    log = logger(part="worker")
    if settings.store.shared:
        log.warning(Event.SHARED_STORE)
    log.info(Event.WORKER_STARTED, pid=os.getpid())
    stop = Stop()
    pause = 0.1
    while not stop.told:
        stop.listen()
        started = time.monotonic()
        answered = _answer_bells(settings, stop)
        pause = pause_after(pause, answered, time.monotonic() - started)
        stop.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  (jitter, not a secret)
    log.info(Event.WORKER_STOPPED, pid=os.getpid())


def pause_after(pause_s: float, answered: bool, lasted_s: float) -> float:
    """Seconds until a worker that has ended tries again: doubling from one try that came to nothing to the next."""
    return 0.1 if answered or lasted_s >= HEALTHY_S else min(RECONNECT_MAX_S, pause_s * 2)


def _answer_bells(settings: Settings, stop: Stop) -> bool:
    """Be an RQ worker until told to stop, or until RQ gives the server up; answers whether any bell was answered."""
    answered = False
    try:
        _mend_forgetting(settings)
        worker = _worker(settings)
        worker.stop = stop
        worker.work(logging_level="WARNING")
        answered = worker.answered
    except redis.RedisError as error:  # no context is in hand here: the child has its own connection and its leases
        logger(part="worker").warning(Event.OUTAGE_BEGAN, code=type(error).__name__)
        if isinstance(error, redis.OutOfMemoryError):
            _drain_directly(stop)
    return answered


def _mend_forgetting(settings: Settings) -> None:
    """Finish what was to be forgotten while the server, or its forgetter, was away: before anything is claimed."""
    with connect(settings) as client:
        try:
            wishes = Forgetting(settings, client, open_store(settings)).mend()
        except MemdError as error:  # the tombstones stay open; each claim of such a user looks at them again
            logger(part="worker").warning(Event.FORGOTTEN, code=type(error).__name__)
            return
    if wishes:
        logger(part="worker").info(Event.FORGOTTEN, wishes=wishes)


class Stop:
    """Whether this worker was told to stop. No lock: signal handlers may come while one is held."""

    told = False
    drain_pid = 0
    """The child that drains without RQ, which has to be told as well."""

    def listen(self) -> None:
        """Take the signals. RQ leaves its own handlers behind, which would ignore the next one."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.tell())

    def tell(self) -> None:
        """Stop soon; at last by force, as a library that swallows the signal's exception must not leave an orphan."""
        if not self.told:
            self.told = True
            last = threading.Timer(STOP_S, os._exit, [1])
            last.daemon = True
            last.start()
        if self.drain_pid:
            os.kill(self.drain_pid, signal.SIGTERM)

    def sleep(self, seconds: float) -> None:
        """Sleep, but not past the moment when it is told."""
        until = time.monotonic() + seconds
        while not self.told and time.monotonic() < until:
            time.sleep(0.05)


class BellWorker(Worker):
    """RQ's forking worker, which hands SIGTERM on to its child and takes the child along when it is killed."""

    max_connection_wait_time = 2
    log_result_lifespan = False
    answered = False
    stop: Stop

    def handle_warm_shutdown_request(self) -> None:
        """Tell the drain in the child, which gives back what it holds within three seconds."""
        self.stop.tell()
        if self.horse_pid:
            try:
                os.kill(self.horse_pid, signal.SIGTERM)
            except ProcessLookupError:  # it has ended by itself; nothing is in hand
                return

    def bootstrap(self, *arguments: Any) -> None:
        """Become known to RQ. What was opened is let go of when that fails half-way, which RQ does only later on.

        Patterns are compiled only then: `memd up` is ready a quarter of a second earlier, and a bell waits for as long.
        """
        try:
            super().bootstrap(*arguments)
        except redis.RedisError:  # nothing is in hand
            with suppress(redis.RedisError):
                self.teardown()
            raise
        drain.prepare()

    def register_birth(self) -> None:
        """Say to RQ that we are here, and which memd; the field goes when RQ's hash of this worker goes."""
        super().register_birth()  # type: ignore[no-untyped-call]  # RQ's gap
        self.connection.hset(self.key, "memd", __version__)

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        """Tell RQ that we live, which it also asks before each try to reach a server that is gone."""
        if self.stop.told and not self.horse_pid:
            raise StopRequested
        super().heartbeat(timeout, pipeline)
        # Told anew each time, as nobody rings for a worker that an emptied server has never heard of.
        connection = self.connection if pipeline is None else pipeline
        connection.hset(self.key, mapping={**self.serialize(), "state": self.get_state()})
        worker_registration.register(self, pipeline)

    def teardown(self) -> None:
        """Say goodbye to RQ and let go of thread and sockets, even where the server does not hear it any more.

        After each outage there is a new worker, so what the old ones keep would pile up.
        """
        try:
            super().teardown()  # type: ignore[no-untyped-call]  # RQ's gap
        finally:
            if self.pubsub_thread is not None:
                self.pubsub_thread.stop()
            self.connection.connection_pool.disconnect()  # also wakes the thread, which then sees that it is to end

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run one bell in a forked child."""
        self.answered = True
        super().execute_job(job, queue)

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        """The child's first act: to die with its parent. An orphan would go on with claims that others rescue."""
        die_with_parent(self.pid or os.getppid())
        super().main_work_horse(job, queue)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends (Linux; elsewhere the lease alone protects)."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (
        OSError,
        AttributeError,
    ):  # no prctl here; a commit of an orphan still fails once its lease is over
        return
    if os.getppid() != parent:  # it ended before we could ask
        os._exit(1)


def _worker(settings: Settings) -> BellWorker:
    connection = connect(settings, retries=0)  # RQ changes time-outs of its client, so it has one of its own
    return BellWorker(
        [bell_queue(connection, BellJob)],
        name=f"memd-{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}",
        connection=connection,
        job_class=BellJob,
        serializer=JSONSerializer,
        worker_ttl=WORKER_TTL_S,
        log_job_description=False,
    )


def _drain_directly(stop: Stop) -> None:
    """At its memory limit the server refuses RQ; the drain's functions still run there, and make room."""
    stop.listen()
    drain.prepare()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # until the drain listens there is nothing in hand
        die_with_parent(parent)
        try:
            drain.drain(ARGUMENT)
        finally:
            os._exit(0)
    stop.drain_pid = child
    if stop.told:  # while we forked
        stop.tell()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # still there to be told until the number is forgotten
    stop.drain_pid = 0
    os.waitpid(child, 0)
