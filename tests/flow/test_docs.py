"""What is written is true: the README's size and commands, and the blocks for Node. test_newcomer types the others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from support import ENDS_S, code_blocks, daemon, wait_for

from memd.client import Memd
from memd.config import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def running(settings: Settings, client: redis.Redis) -> Iterator[Settings]:
    """A scheduler and a worker at work."""
    with daemon(settings):
        yield settings


def redis_url(settings: Settings) -> str:
    assert settings.redis_url
    return settings.redis_url.reveal()


def remembered(settings: Settings, user: str) -> Callable[[], bool]:
    app = Memd(settings)
    return lambda: bool(app.document(user)["facts"])


def test_the_readme_is_short_and_names_real_commands() -> None:
    """At most 120 lines; every `memd` command that its table names exists."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    listed = subprocess.run([sys.executable, "-m", "memd", "--help"], capture_output=True, text=True, check=True).stdout
    for command in set(re.findall(r"`memd ([a-z]+)", text)):
        assert command in listed, command


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Node's own redis client, from the npm registry."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("not run: Node and npm are not installed")
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text('{"type": "module"}')
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "redis@5"], cwd=folder, check=True, capture_output=True
    )
    return folder


@pytest.mark.long
def test_the_node_blocks_of_the_wire_contract_run(running: Settings, node_folder: Path) -> None:
    """Both Node examples of wire.md, with Node's real client, end in a memory."""
    for number, code in enumerate(code_blocks("docs/wire.md", "js")):
        script = node_folder / f"example{number}.mjs"
        script.write_text(code, encoding="utf-8")
        socket = redis_url(running).removeprefix("unix://")
        env = {**os.environ, "REDIS_SOCKET": socket}
        done = subprocess.run(
            ["node", str(script)], env=env, capture_output=True, text=True, timeout=ENDS_S, check=False
        )
        assert done.returncode == 0, done.stderr
    for user in ("node-raw", "node-fcall"):
        wait_for(remembered(running, user), f"the push of {user} is remembered")
