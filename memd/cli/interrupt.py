"""Ctrl-C while modules are imported.

Python raises KeyboardInterrupt wherever it is. In the middle of an import that may be a callback, or a library's
`except`, where the exception is lost and the command goes on as if nothing had been pressed. So an interrupt waits
until no import runs.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from types import FrameType

RETRY_S = 0.02
_IMPORT = "<frozen importlib._bootstrap>"


def install() -> None:
    """Handle SIGINT in this process. A part of the daemon replaces the handler by its own."""
    with suppress(ValueError):  # not in the main thread: whoever imports the commands there handles signals itself
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
