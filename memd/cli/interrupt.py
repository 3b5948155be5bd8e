"""Ctrl-C while modules are imported.

Python raises KeyboardInterrupt at whatever line runs. During an import that may be a callback or a library's `except`,
which loses the exception, and the command goes on. So an interrupt is held until no import runs.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from types import FrameType

RETRY_S = 0.02
_IMPORT = "<frozen importlib._bootstrap>"


def install() -> None:
    """Handle SIGINT in this process. The parts of the daemon install their own handlers later."""
    with suppress(ValueError):  # not in the main thread: the importing program handles signals itself
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            signal.signal(signal.SIGALRM, _interrupt)
            signal.setitimer(signal.ITIMER_REAL, RETRY_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt
