"""A program on a terminal of its own: what it prints there, and keys that are pressed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from typing import Self

from support import exit_code, wait_for

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


class Terminal:
    """A pseudo-terminal of so many columns, with one program as its foreground job."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], columns: int, rows: int = 50) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._env = {**{name: text for name, text in env.items() if name not in {"COLUMNS", "LINES"}}, "TERM": "xterm"}
        self._theirs, self._words, self._written = theirs, words, bytearray()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._words,
            env=self._env,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=self._own,  # noqa: PLW1509  (one system call: Ctrl-C goes to the terminal's foreground job)
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._theirs)
        self._reader.join(10)
        os.close(self._ours)

    def text(self) -> str:
        """What was printed, without control sequences."""
        return _CONTROL.sub("", self._written.decode(errors="replace"))

    def lines(self) -> list[str]:
        """The lines of it."""
        return self.text().splitlines()

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def wait_for(self, words: str) -> None:
        """Wait until this is printed."""
        wait_for(lambda: words in self.text(), f"the terminal shows {words!r}")

    def exit_code(self) -> int:
        """The exit code of the program, which ends by itself."""
        return exit_code(self._process, 20)

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed, as it did before."""
        flags: int = termios.tcgetattr(self._theirs)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)

    def _own(self) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSCTTY, 0)

    def _read(self) -> None:
        while True:
            try:
                read = os.read(self._ours, 65_536)
            except OSError:  # the other side is closed
                return
            if not read:
                return
            self._written += read
