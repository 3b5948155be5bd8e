"""`memd up`: one supervised tree of processes: server, scheduler, workers, HTTP. A process that dies is restarted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType, MappingProxyType

from memd.config import LoadedSettings, as_environment
from memd.errors import ConfigError, InboxUnavailable, MemdError
from memd.events import Event, logger
from memd.extraction import check_loadable, chosen
from memd.inbox import library, waiting_parts
from memd.inbox.connection import connect
from memd.inbox.figures import workers_listening
from memd.inbox.server_check import require
from memd.inbox.workers import TOKEN_VARIABLE, bury_worker, new_token, worker_name
from memd.memory.store.json_store import open_store
from memd.ops import locks, server
from memd.ops.where import own_socket, push_line
from memd.push.signals import load_patterns

STOP_S = 10.0
"""Seconds from SIGTERM to SIGKILL; a drain gives its claims back within three."""

BACKOFF_S, BACKOFF_MAX_S = 0.1, 10.0
HEALTHY_S = 10.0
"""A process that ran this many seconds resets its backoff."""

POLL_S = 0.05
PING_S = 1.0
"""Seconds between two checks of the server's socket."""

RELEASE_RETRY_S = 1.0

HTTP = "http"
FATAL = frozenset({ConfigError.exit_code})
"""Exit codes that a restart does not fix: at a part's first start the whole tree stops, later only that part waits."""


@dataclass
class Child:
    """One supervised process: how to start it, and when."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = BACKOFF_S / 2
    restart_at: float = 0.0
    starts: int = 0
    waits: bool = False
    """Whether it ended with a code of FATAL and has not run for HEALTHY_S since."""

    @property
    def healthy(self) -> bool:
        """Whether its process has run, or had run, for HEALTHY_S."""
        return self.process is not None and time.monotonic() - self.started >= HEALTHY_S

    def died(self) -> None:
        """Plan the next start: the pause doubles unless the process had run for HEALTHY_S."""
        self.pause = BACKOFF_S if self.healthy else min(BACKOFF_MAX_S, self.pause * 2)
        self.process, self.restart_at = None, time.monotonic() + self.pause


def run(found: LoadedSettings, served: Callable[[], None] | None = None, *, take_over: bool = False) -> int:
    """Keep the tree running until SIGTERM or SIGINT; returns the exit code. Raises MemdError when it cannot start.

    `served`: is called once, when the HTTP server listens. `take_over`: see `scheduler.loop.run`.
    """
    settings = found.settings
    open_store(settings)  # a store that cannot be loaded stops the start, and so does an extractor
    check_loadable(settings.extraction)
    load_patterns(settings.signals.folder)
    server.private_folder(settings.data_dir)
    with ExitStack() as held:
        held.enter_context(locks.OneProcess(settings.data_dir / "memd.pid", "another memd up runs on this data folder"))
        if settings.redis_url is None:
            held.enter_context(server.owned(settings))
        return Supervisor(found, served, take_over=take_over).run()


class Supervisor:
    """Starts the server, then the rest; stops them in reverse order."""

    def __init__(
        self, found: LoadedSettings, served: Callable[[], None] | None = None, *, take_over: bool = False
    ) -> None:
        self._settings = settings = found.settings
        self._served = served
        self._env = {**os.environ, "PYTHONSAFEPATH": "1", "MEMD_CONFIG": os.devnull}
        self._env |= as_environment(settings, found.origins)
        self._server = Child("server", self._embedded) if settings.redis_url is None else None
        self._take_over = take_over
        self._parts = [Child("scheduler", self._scheduler)]
        self._parts += [Child(f"worker-{n + 1}", self._worker) for n in range(settings.drain.workers)]
        self._workers: dict[int, str] = {}
        """The names of running workers, by process id."""

        self._dead: set[str] = set()
        """Names of workers that died and whose claims are not released yet."""

        self._release_at = 0.0
        if settings.http.enabled:
            self._parts.append(Child(HTTP, partial(self._command, "serve")))
        self._ping_at = 0.0
        self._signals = 0
        self._fatal: int | None = None
        self._ready = False
        self._log = logger(part="up")

    def run(self) -> int:
        """Start, watch, stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        try:
            self._start_server()
            while not self._signals and self._fatal is None:
                self._look()
                self._release_claims()
                self._report_ready()
                self._report_served()
                time.sleep(POLL_S)
        except locks.CalledOff:  # stopped during the wait for an earlier server
            pass
        finally:
            self._stop()
        return self._fatal or 0

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _stopping(self) -> bool:
        return self._signals > 0

    def _embedded(self) -> subprocess.Popen[bytes]:
        return server.start(self._settings, server.die_with(os.getpid()), self._stopping)

    def _scheduler(self) -> subprocess.Popen[bytes]:
        """Only the first one takes over: when it was taken over in turn, a restart must not do that back."""
        words, self._take_over = ["--take-over"] * self._take_over, False
        return self._command("scheduler", *words)

    def _worker(self) -> subprocess.Popen[bytes]:
        token = new_token()
        process = self._command("worker", extra={TOKEN_VARIABLE: token})
        self._workers[process.pid] = worker_name(process.pid, token)
        return process

    def _command(self, *words: str, extra: Mapping[str, str] = MappingProxyType({})) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "memd", *words],
            env={**self._env, **extra},
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the supervisor, which stops its parts in order
            preexec_fn=server.die_with(os.getpid()),  # noqa: PLW1509  (no threads here; it only asks the kernel)
        )

    def _start_server(self) -> None:
        """The first start of the server must succeed."""
        if self._server is not None:
            self._start(self._server)
        if self._stopping():
            return
        with connect(self._settings) as client:
            require(client, self._settings)

    def _look(self) -> None:
        """Start the processes that have died and whose pause is over, the server first."""
        if self._server is not None:
            try:
                self._mend_server(self._server)
                self._look_at(self._server)
            except MemdError as error:  # the other parts wait for the server, and a later look tries again
                self._server.died()
                self._log.error(Event.PART_DIED, name="server", error=str(error))
        for part in self._parts:
            self._look_at(part)

    def _mend_server(self, child: Child) -> None:
        """Stop a server whose socket is gone, so that it is restarted like one that died."""
        if child.process is None or time.monotonic() < self._ping_at:
            return
        self._ping_at = time.monotonic() + PING_S
        if child.process.poll() is None and server.is_cut_off(self._settings, child.process):
            self._log.error(Event.SERVER_CUT_OFF, pid=child.process.pid)
            server.stop(child.process)

    def _note_death(self, process: subprocess.Popen[bytes]) -> None:
        name = self._workers.pop(process.pid, None)
        if name is not None:
            self._dead.add(name)

    def _release_claims(self) -> None:
        """Release the claims of dead workers instead of waiting for their leases; retried until it succeeds."""
        if not self._dead or time.monotonic() < self._release_at:
            return
        try:
            with connect(self._settings, retries=0) as client:
                for name in sorted(self._dead):
                    if claims := bury_worker(client, name):
                        self._log.warning(Event.WORKER_DIED, name=name, claims=claims)
                    self._dead.discard(name)
        except MemdError:  # the server is away as well, or not set up again yet
            self._release_at = time.monotonic() + RELEASE_RETRY_S

    def _report_ready(self) -> None:
        """Log once that the scheduler has set up the inbox and all workers listen."""
        if self._ready:
            return
        try:
            with connect(self._settings, retries=0) as client:
                is_set_up = library.installed(client) and not library.differing(client, self._settings).names
                self._ready = is_set_up and workers_listening(client) >= self._settings.drain.workers
        except InboxUnavailable:  # the next look restarts the server, and a later one asks again
            return
        if self._ready:
            self._log.info(
                Event.UP_READY,
                pid=os.getpid(),
                workers=self._settings.drain.workers,
                extractor=chosen(self._settings.extraction),
                server="embedded" if self._server is not None else "redis_url",
                data_dir=str(self._settings.data_dir.absolute()),
                socket=str(own_socket(self._settings) or ""),
            )
            if sys.stderr.isatty():
                sys.stderr.write(f"Push a message:\n\n  {push_line(self._settings)}\n\n")
                if chosen(self._settings.extraction) == "rules":
                    sys.stderr.write("No model reads them, only offline patterns: they find few, plain statements.\n\n")

    def _report_served(self) -> None:
        """Say once that the HTTP server listens, if anybody wants to know."""
        if self._served is None or not self._ready:
            return
        http = self._settings.http
        with suppress(OSError):  # not yet: a later look asks again
            socket.create_connection((http.host, http.port), timeout=PING_S).close()
            served, self._served = self._served, None
            served()

    def _look_at(self, part: Child) -> None:
        if part.process is None:
            if time.monotonic() >= part.restart_at:
                self._start(part)
            return
        code = part.process.poll()
        if code is not None:
            self._note_death(part.process)
        if code is None:
            if part.waits and part.healthy:
                part.waits = False
                self._log.info(Event.PART_RECOVERED, name=part.name)
                self._note_waiting()
        elif code in FATAL and self._is_first_start(part):
            self._fatal = code
        elif code in FATAL:
            self._let_wait(part, code)
        else:
            part.died()
            self._log.warning(Event.PART_DIED, name=part.name, code=code, restart_in_s=round(part.pause, 2))

    def _is_first_start(self, part: Child) -> bool:
        """Whether the part has never worked. The HTTP server never ends with a code of FATAL once it listens."""
        return part.starts == 1 and (not self._ready or part.name == HTTP)

    def _let_wait(self, part: Child, code: int) -> None:
        """Keep the other parts running and retry this one: the cause may pass, or a person may fix it."""
        part.died()
        part.waits, part.restart_at = True, time.monotonic() + BACKOFF_MAX_S
        self._log.error(Event.PART_WAITS, name=part.name, code=code, restart_in_s=BACKOFF_MAX_S)
        self._note_waiting()

    def _note_waiting(self) -> None:
        """Tell the inbox which parts wait, for `memd status`."""
        try:
            with connect(self._settings, retries=0) as client:
                waiting_parts.note(client, [part.name for part in self._parts if part.waits])
        except MemdError:  # the log has it, and the next try of the part tells the inbox again
            return

    def _start(self, part: Child) -> None:
        part.process, part.started, part.starts = part.start(), time.monotonic(), part.starts + 1
        event = Event.SERVER_READY if part is self._server else Event.PART_STARTED
        self._log.info(event, name=part.name, pid=part.process.pid)

    def _stop(self) -> None:
        """SIGTERM, then a deadline, then SIGKILL; the server last, so that all claims can be given back."""
        self._log.info(Event.UP_STOPPING)
        running = [part.process for part in self._parts if part.process is not None]
        for process in running:
            process.terminate()
        until = time.monotonic() + STOP_S
        signals = self._signals
        while any(process.poll() is None for process in running):
            if time.monotonic() > until or self._signals > max(1, signals):
                break
            time.sleep(POLL_S)
        for process in running:
            if process.poll() is None:
                self._log.warning(Event.PART_KILLED, pid=process.pid)
                process.kill()
                process.wait()
                self._note_death(process)
        self._release_at = 0.0
        self._release_claims()
        if self._server is not None and self._server.process is not None:
            server.stop(self._server.process)
        self._log.info(Event.UP_STOPPED)
