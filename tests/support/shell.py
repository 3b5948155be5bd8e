"""A reader's shell: bash on a pseudo-terminal, into which the lines of a document are typed as they are printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pexpect  # type: ignore[import-untyped]

LINE_S = 60
"""Seconds of one line, on a busy machine."""

_PROMPT = re.compile(r"\[reader (\d+)\] ")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Shell:
    """One terminal of 80 columns."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._bash: Any = pexpect.spawn(
            "bash", ["--norc", "--noprofile", "--noediting"],
            cwd=str(folder), env={**env, "PS1": "[reader $?] ", "PS2": "", "TERM": "xterm"},
            encoding="utf-8", codec_errors="replace", timeout=LINE_S, dimensions=(24, 80), echo=False,
        )  # fmt: skip
        self._bash.expect(_PROMPT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, lines: str, answer: str = "y") -> str:
        """Type lines and wait for the prompt; a question is answered. Returns the output; asserts exit code 0."""
        output = ""
        for line in _commands(lines):
            self._bash.sendline(line)
            while self._bash.expect([_PROMPT, r"\[y/N\]: ?"]) == 1:
                self._bash.sendline(answer)
            said = _COLOUR.sub("", self._bash.before)
            assert self._bash.match[1] == "0", f"{line}\n{said}"
            output += said
        return output

    def start(self, line: str, until: str) -> str:
        """Type a line that keeps running; returns what it printed up to the text that says it is ready."""
        self._bash.sendline(line)
        found = self._bash.expect([re.escape(until), _PROMPT])
        assert found == 0, f"{line}\n{self._bash.before}"
        return _COLOUR.sub("", str(self._bash.before) + until)

    def run_to_eof(self, line: str) -> str:
        """Type a line, then Ctrl-D as its whole input; it must end with code 0."""
        self._bash.sendline(line)
        self._bash.sendeof()
        self._bash.expect(_PROMPT)
        said = _COLOUR.sub("", str(self._bash.before))
        assert self._bash.match[1] == "0", f"{line}\n{said}"
        return said

    def interrupt(self) -> str:
        """Ctrl-C, and what was printed until the prompt came back."""
        self._bash.sendintr()
        self._bash.expect(_PROMPT)
        return _COLOUR.sub("", str(self._bash.before))

    def close(self) -> None:
        """Ctrl-C for what still runs, so that it stops its own parts, then close the terminal."""
        with suppress(pexpect.ExceptionPexpect):  # a shell that has ended has nothing to stop
            self._bash.sendintr()
            self._bash.expect(_PROMPT)
        self._bash.close(force=True)


def _commands(lines: str) -> list[str]:
    """The lines as they are typed: a here-document is one command."""
    return [lines] if "<<" in lines else [line for line in lines.splitlines() if line.strip()]
