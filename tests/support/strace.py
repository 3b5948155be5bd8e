"""The system calls of one step: lists them, lets one fail, or ends the process after one."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import shutil
import signal
import subprocess
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support import wait_for

PR_SET_PTRACER = 0x59616D61
FILES = "%file,%desc"
_LINE = re.compile(r"(\w+)\(")
_NOISE = frozenset({"mmap", "munmap", "exit_group", "kill", "rt_sigreturn"})


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process of the step ended: by a signal, or with a code."""

    killed: bool
    code: int


def why_not() -> str:
    """The reason why steps cannot be traced here; empty when they can."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed"
    try:
        calls(lambda: None)
    except AssertionError:
        return "strace cannot attach to processes here"
    return ""


def calls(step: Callable[[], object]) -> list[tuple[str, int]]:
    """The file system calls of a step: each name, with its number among the calls of that name."""
    with tempfile.NamedTemporaryFile() as log:
        _run(step, "-e", f"trace={FILES}", "-o", log.name)
        names = [match[1] for line in log.read().decode().splitlines() if (match := _LINE.match(line))]
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        if name not in _NOISE:
            found.append((name, seen[name]))
    return found


def inject(step: Callable[[], object], *faults: str) -> Ended:
    """Do a step in a new process whose calls fail: each fault has the syntax of strace's `inject`."""
    options = [option for fault in faults for option in ("-e", f"inject={fault}")]
    return _run(step, "-e", f"trace={FILES}", *options, "-o", os.devnull)


def _run(step: Callable[[], object], *options: str) -> Ended:
    child = _fork(step)
    tracer = subprocess.Popen(["strace", "-q", "-p", str(child), *options], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: _is_traced(child) or tracer.poll() is not None, "strace is attached", timeout_s=10)
        assert tracer.poll() is None, "strace cannot attach"
        os.kill(child, signal.SIGCONT)
        status = os.waitpid(child, 0)[1]
    except BaseException:
        os.kill(child, signal.SIGKILL)
        tracer.kill()
        raise
    finally:
        tracer.wait()
    return Ended(os.WIFSIGNALED(status), os.waitstatus_to_exitcode(status))


def _fork(step: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        gc.disable()  # a collection would add system calls of its own
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, -1, 0, 0, 0)  # where only parents may trace
        os.kill(os.getpid(), signal.SIGSTOP)
        try:
            step()
        except BaseException:  # noqa: BLE001  (nothing above could handle it: the process ends here)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    return child


def _is_traced(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return re.search(r"^TracerPid:\t0$", status, re.MULTILINE) is None
