"""Nothing in the current folder is executed: a module there must not take the place of a library or of `workers`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
import redis
from support import TESTS, daemon, ended, environment, exit_code, make_settings, wait_for

from memd.cli.app import COMMANDS
from memd.client import Memd
from memd.config import Settings
from memd.errors import MemdError
from memd.inbox import library
from memd.inbox.connection import connect
from memd.inbox.figures import workers_listening

HOSTILE = ("json", "redis", "typing", "yaml", "typer", "anthropic", "httpx", "starlette", "sitecustomize", "fact_store")
"""Modules that memd, its libraries or Python itself import by name, and one that a user may name in a setting."""

MARK = "open(__file__ + '.executed', 'w').close()\n"

LASTING = {"up", "server", "scheduler", "worker", "serve", "mcp"}
"""Commands that keep running. The other tests of this file start them."""

CALLS: dict[str, tuple[str, ...]] = {
    "push": ("push", "push.json"),
    "flush": ("flush", "--wait", "--timeout", "30"),
    "receipt": ("receipt", "0" * 32 + ".00000000.1"),
    "status": ("status", "--cost"),
    "dead": ("dead", "list"),
    "show": ("show", "ana"),
    "why": ("why", "ana", "fact_0badcafe"),
    "inject": ("inject", "ana", "--include-pending"),
    "search": ("search", "ana", "Porto"),
    "facts": ("facts", "list", "ana"),
    "export": ("export", "ana"),
    "import": ("import", "export.json", "--user", "ana", "--dry-run"),
    "audit": ("audit", "--all"),
    "forget": ("forget", "ana", "--yes"),
    "doctor": ("doctor",),
    "acl": ("acl",),
    "token": ("token", "add", "--app", "shop", "--all-users"),
    "config": ("config",),
    "where": ("where",),
}
"""Calls in an order in which each has something to do. Any other command prints its help."""

RUN_ALL = """
import json, sys
from memd.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["memd", *words]
    try:
        main()
    except SystemExit as end:
        print("ended:", words[0], file=sys.stderr)
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose modules note that they were executed."""
    folder = tmp_path / "my project ä"
    (folder / "workers").mkdir(parents=True)
    for name in ("__init__", "drain", "job", "worker"):
        (folder / "workers" / f"{name}.py").write_text(MARK)
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(MARK)
    push = {"thread_id": "t", "user_id": "ana", "messages": [{"role": "user", "content": "I live in Porto."}]}
    (folder / "push.json").write_bytes(orjson.dumps(push))
    (folder / "export.json").write_text('{"facts": []}')
    return folder


def executed(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*.executed"))


def script() -> str:
    """The installed command."""
    return str(Path(sys.executable).parent / "memd")


@contextmanager
def running(folder: Path, settings: Settings, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command in that folder, ended at the end."""
    env = environment(settings)
    with (settings.data_dir / "commands.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def ready(settings: Settings) -> bool:
    """Whether the scheduler has set up the inbox and a worker listens."""
    try:
        with connect(settings, retries=0) as client:
            return library.installed(client) and workers_listening(client) > 0
    except MemdError:
        return False


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("command", [(script(),), (sys.executable, "-m", "memd")], ids=["memd", "python -m memd"])
def test_up_executes_nothing_of_the_current_folder(hostile: Path, data_dir: Path, command: tuple[str, ...]) -> None:
    """`memd up` there starts all its parts, which turn a push into memory."""
    settings = make_settings(data_dir, None, drain__workers=1, http__enabled=True, http__port=0)
    with running(hostile, settings, *command, "up"), Memd(settings) as app:
        wait_for(lambda: ready(settings), "memd up is ready")
        app.push([{"role": "user", "content": "I live in Porto."}], thread_id="t", user_id="ana")
        assert ended(app) == {"stored": 1}
    assert executed(hostile) == []


def test_no_command_executes_anything_of_the_current_folder(
    hostile: Path, tmp_path: Path, settings: Settings, client: redis.Redis
) -> None:
    """Each of them, with the path that an installed script has: the script's folder, and no current one."""
    caller = tmp_path / "bin" / "caller.py"
    caller.parent.mkdir()
    caller.write_text(RUN_ALL)
    env = environment(settings) | {"MEMD_HTTP__TOKENS": str(tmp_path / "tokens.json")}
    calls = [*CALLS.values(), *((name, "--help") for name in COMMANDS if name not in CALLS and name not in LASTING)]
    with daemon(settings):
        done = subprocess.run(
            [sys.executable, str(caller), orjson.dumps(calls).decode()],
            cwd=hostile, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
    ended_calls = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("ended: ")]
    assert ended_calls == [words[0] for words in calls], done.stderr
    assert "Porto" in done.stdout
    assert executed(hostile) == []


@pytest.mark.long
def test_mcp_executes_nothing_of_the_current_folder(hostile: Path, settings: Settings, client: redis.Redis) -> None:
    """`memd mcp` ends with its input."""
    with running(hostile, settings, sys.executable, "-m", "memd", "mcp", "--user", "ana") as process:
        exit_code(process, 20)
    assert process.returncode == 0
    assert executed(hostile) == []


def test_a_store_of_the_users_own_needs_a_path(hostile: Path, settings: Settings, client: redis.Redis) -> None:
    """`store.class` is not looked for in the current folder; with its folder in PYTHONPATH it is found."""
    env = environment(settings) | {"MEMD_STORE__CLASS": "fact_store.Store"}
    refused = subprocess.run(
        [script(), "show", "ana"], cwd=hostile, env=env, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 78
    assert "PYTHONPATH" in refused.stderr
    assert executed(hostile) == []
    own = env | {"PYTHONPATH": TESTS, "MEMD_STORE__CLASS": "support.fault_stores.FullStore"}
    found = subprocess.run([script(), "show", "ana"], cwd=hostile, env=own, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
