"""A newcomer types the README and the pages of docs/, line by line as they are printed, into a real shell.

The folder has a space and a letter that is no ASCII in its name, a `workers/` and a `config.yaml` of something else.
memd is built from this checkout and installed into an environment of its own by the README's own line.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from support import ROOT, TESTS, make_settings
from support.shell import Shell

from memd.client import Memd

pytestmark = pytest.mark.timing

PAGES = ("README.md", *sorted(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")))

NOT_TYPED = {
    "make demo": "sets up an environment from a package index; test_cli runs `memd demo`",
    "make test": "runs this test",
    "memd acl --setuser | redis-cli": "needs a server of the reader's own; test_acl loads these lines into one",
    "MEMD_REDIS_URL=redis://memd-daemon:…@host:6379 memd scheduler": "as above",
    "memd facts approve USER FACT": "needs a doubtful fact; test_doubtful has one",
    "memd facts drop USER FACT": "as above",
    "memd up --console": "takes the port at which http.md serves; test_console_link runs it",
}
"""Lines that a test cannot type, and why."""

NOT_HERE = {
    "js": "run by test_docs where Node is",
    "py": "run by make test-frameworks, where the framework is",
    "ts": "run by make test-clients",
    "go": "a fragment",
    "nginx": "a fragment",
    "yaml": "a fragment",
    "text": "not code",
}
"""Languages of blocks that are not typed into a shell."""

READY = {
    "memd up": "Push a message",
    "MEMD_SERVER__PORT=6390 memd up": "Push a message",
    "memd watch": "oldest waiting",
    "honcho start": "scheduler_started",
    "memd serve": "http_ready",
    "MEMD_HTTP__CONSOLE=true memd serve": "http_ready",
    "memd mcp --user ana --http --port 8478": "mcp_ready",
    "memd mcp --http": "mcp_ready",
}
"""Lines that keep running, and what they print when they are ready. A new one takes the place of its like."""

UNTIL_EOF = {"memd mcp --user ana", "memd mcp --user ana --tasks"}
"""Lines that run until their input ends."""

IDS = {
    "memd token rm ID": "memd token list | awk 'NR == 2 {print $1}'",
    "memd dead show ID": "memd dead list | awk 'NR == 2 {print $1}'",
}
"""Lines with an id that a reader takes from the line before: here a command finds it."""

USERS = (
    "ana",
    "bea",
    "sessions",
    "agents-langchain",
    "agents-agentscope",
    "agents-anthropic",
    "python-raw",
    "python-fcall",
    "cli-raw",
    "cli-port",
)
"""The users of the pages' examples."""

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"\s+#.*")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A fresh user's environment: an empty home, and a Python environment that has memd's dependencies, not memd."""
    fresh = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(fresh)], check=True)
    packages = next(fresh.glob("lib/python*/site-packages"))
    (packages / "dependencies.pth").write_text(f"{Path(redis.__file__).parents[1]}\n")
    tool(fresh, "pip", "-m pip")
    tool(fresh, "honcho", "-m honcho")
    if shutil.which("redis-cli") is None:
        tool(fresh, "redis-cli", f"{TESTS}/support/redis_cli.py")
    (tmp_path / "home").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{fresh}/bin:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        # What a reader's machine gets from its package index is in the environment already.
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
    }


def tool(environment: Path, name: str, call: str) -> None:
    """A command of the environment that runs a module or a script with its Python."""
    file = environment / "bin" / name
    file.write_text(f'#!/bin/sh\nexec "{environment}/bin/python" {call} "$@"\n')
    file.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Somebody's project."""
    here = tmp_path / "my project ä"
    (here / "workers").mkdir(parents=True)
    (here / "workers" / "__init__.py").write_text("raise SystemExit('a package of the project was executed')\n")
    (here / "config.yaml").write_text("server:\n  port: 8080\nlog:\n  level: INFO\ntitle: 我的项目\n")
    return here


@pytest.fixture
def ports() -> Iterator[None]:
    """The ports that the pages print are taken by one such test at a time on this machine."""
    with (Path(tempfile.gettempdir()) / "memd-pages-ports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """The language and the text of each block."""
    yield from _FENCE.findall((ROOT / page).read_text(encoding="utf-8"))


def commands(page: str) -> list[str]:
    """The commands of a page's shell blocks, without their comments."""
    return [_COMMENT.sub("", line) for language, text in blocks(page) if language == "sh" for line in text.splitlines()]


class Reader:
    """Types a page; what keeps running gets a terminal of its own."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder, self._env = folder, env
        self.shell = Shell(folder, env)
        self._exports: list[str] = []
        self._lasting: dict[str, Shell] = {}

    def read(self, page: str) -> str:
        """Type all blocks of a page, in their order, into a new terminal; returns what was printed."""
        self.shell.close()
        self.shell, self._exports = Shell(self._folder, self._env), []
        output = ""
        for language, text in blocks(page):
            if language == "python":
                output += self.shell.run(f"python - <<'END_OF_BLOCK'\n{text}END_OF_BLOCK")
            elif language == "sh":
                output += "".join(map(self._type, filter(str.strip, text.splitlines())))
            else:
                assert language in NOT_HERE
        return output

    def _type(self, line: str) -> str:
        command = _COMMENT.sub("", line)
        if command in NOT_TYPED:
            return ""
        if command in READY:
            return self._keep(line, command)
        if command in UNTIL_EOF:
            with Shell(self._folder, self._env) as shell:
                return shell.run_to_eof(line)
        if command.startswith("pip install '."):
            with Shell(ROOT, self._env) as checkout:
                return checkout.run(line)
        if command.startswith("export "):
            self._exports.append(line)
        if command in IDS:
            line = command.replace("ID", f'"$({IDS[command]})"')
        return self.shell.run(line)

    def _keep(self, line: str, command: str) -> str:
        kind = "door" if re.search(r"memd (serve|mcp|watch)", command) else "up"
        if kind in self._lasting:
            self._lasting.pop(kind).close()
        self._lasting[kind] = Shell(self._folder, self._env)
        self._lasting[kind].run("\n".join(self._exports))
        return self._lasting[kind].start(line, READY[command])

    def stop(self) -> None:
        """Ctrl-C in each terminal."""
        for shell in self._lasting.values():
            shell.interrupt()

    def close(self) -> None:
        """Close all terminals."""
        for shell in (*self._lasting.values(), self.shell):
            shell.close()


@pytest.fixture
def reader(folder: Path, env: dict[str, str]) -> Iterator[Reader]:
    """The newcomer, whose terminals are closed at the end."""
    found = Reader(folder, env)
    yield found
    found.close()


def facts_of(env: dict[str, str], user: str) -> list[Any]:
    """The stored facts of a user, in the data folder of a fresh home."""
    settings = make_settings(Path(env["HOME"]) / ".local" / "share" / "memd", None)
    with Memd(settings) as app:
        return list(app.document(user)["facts"])


def test_the_lists_of_exceptions_are_not_stale() -> None:
    """Each line that is not typed, or typed otherwise, is printed on a page."""
    printed = [command for page in PAGES for command in commands(page)]
    assert NOT_TYPED.keys() | IDS.keys() | READY.keys() | UNTIL_EOF <= set(printed)


@pytest.mark.timeout(200)
@pytest.mark.usefixtures("ports")
def test_every_line_of_the_readme(reader: Reader, folder: Path) -> None:
    """From top to bottom, and then Ctrl-C."""
    read_readme(reader, folder)
    reader.stop()


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("ports")
def test_every_line_of_the_pages(reader: Reader, folder: Path, env: dict[str, str]) -> None:
    """The pages of docs/, after the README, while its `memd up` still runs."""
    read_readme(reader, folder)
    reader.shell.run("redis-cli -s \"$(memd where --socket)\" RPUSH memd:in '{'")  # a dead letter, for watching.md
    shutil.copy(ROOT / "Procfile", folder)
    printed = "".join(map(reader.read, PAGES[1:]))
    for sentence in ("short answers", "lives in Porto", "would escape /memories", "绿茶"):
        assert sentence in printed, sentence
    reader.shell.run("memd flush --wait")
    for user in USERS:
        assert facts_of(env, user), user
    reader.stop()


def read_readme(reader: Reader, folder: Path) -> None:
    """Type the README: the memory that it promises is there, and nothing of the project was touched."""
    printed = reader.read("README.md")
    assert "<memory>" in printed
    assert "I live in Porto" in printed.rpartition("Memory of ana")[2]
    assert sorted(file.name for file in folder.iterdir()) == ["config.yaml", "workers"]
