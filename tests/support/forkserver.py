"""Parts of memd, forked from a process that has imported everything already: real processes, without the import's time.

Its patterns are compiled as well, and what it holds is no longer looked at by the garbage collector.

The test process becomes their reaper (PR_SET_CHILD_SUBREAPER): each part is forked twice and the process between ends
at once, so that the test process inherits the part and can wait for it like for its own child.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class Part:
    """A running part, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, None while it runs; the negative signal number when one ended it."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended. Raises subprocess.TimeoutExpired."""
        if self.poll() is None:
            ended = os.pidfd_open(self.pid)
            try:
                if not select.select([ended], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(f"part {self.pid}", timeout or 0)
            finally:
                os.close(ended)
            self.poll()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks, started on first use."""

    def __init__(self, modules: Sequence[str] = (), env: Mapping[str, str] = MappingProxyType({})) -> None:
        """`modules`: imported beside memd's own, for parts that begin there. `env`: added to its environment."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._process = subprocess.Popen(
            [sys.executable, __file__, *modules],
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        log: Path,
        constants: Mapping[str, float] = MappingProxyType({}),
        module: str = "memd.cli",
    ) -> Part:
        """Start `memd <words>` in a session of its own, in `folder`, with its output in `log`.

        `constants` names constants of memd's modules ("memd.ops.supervisor.HEALTHY_S") that this process alone has
        with other values: a test of a wait of minutes need not take minutes. `module`: whose `main` runs.
        """
        wanted = {"words": list(words), "env": dict(env), "folder": str(folder), "log": str(log), "module": module}
        wanted["constants"] = dict(constants)
        print(json.dumps(wanted), file=_pipe(self._process.stdin), flush=True)
        return Part(int(_pipe(self._process.stdout).readline()))

    def close(self) -> None:
        """End the process that forks. The parts live on."""
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


_server: ForkServer | None = None


def start(
    words: Sequence[str], env: Mapping[str, str], folder: Path, log: Path, constants: Mapping[str, float] | None = None
) -> Part:
    """Start `memd <words>`, see `ForkServer.start`."""
    global _server  # noqa: PLW0603  (one for each test process; it ends when its input does)
    _server = _server or ForkServer()
    return _server.start(words, env, folder, log, constants or {})


def _serve() -> None:
    import structlog

    import memd.cli.daemon
    import memd.extraction.anthropic
    import memd.extraction.offline.extractor
    import memd.scheduler.loop
    import memd.workers.worker

    for name in sys.argv[1:]:
        import_module(name)
    structlog.get_logger()
    memd.workers.drain.prepare()
    for line in sys.stdin:
        command = json.loads(line)["words"][0]
        if command == "serve":
            import memd.http.serve
        if command == "up":
            import memd.ops.supervisor
        told, tell = os.pipe()
        middle = os.fork()
        if middle == 0:
            _fork_and_end(line, tell)
        os.close(tell)
        os.waitpid(middle, 0)
        with os.fdopen(told) as pid:
            sys.stdout.write(pid.readline())
            sys.stdout.flush()


def _fork_and_end(line: str, tell: int) -> None:
    alone, held = os.pipe()
    between = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(tell)
        os.close(held)
        os.read(alone, 1)  # ends with the process between; then the test process is the parent
        os.close(alone)
        while os.getppid() == between:  # its files are closed a moment before
            os.sched_yield()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # no part outlives the tests
        _become(json.loads(line))
    os.write(tell, f"{pid}\n".encode())
    os._exit(0)


def _become(wanted: dict[str, Any]) -> None:
    code = 1
    try:
        os.setsid()
        os.chdir(wanted["folder"])
        os.environ.clear()
        os.environ.update(wanted["env"])
        sys.path[:0] = wanted["env"].get("PYTHONPATH", "").split(":")
        log = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        random.seed()
        for name, value in wanted["constants"].items():
            module, _, constant = name.rpartition(".")
            assert hasattr(import_module(module), constant), name
            setattr(import_module(module), constant, value)
        sys.argv = ["memd", *wanted["words"]]
        code = import_module(wanted["module"]).main() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  (a traceback in the part's log, as Python itself would leave)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    _serve()
