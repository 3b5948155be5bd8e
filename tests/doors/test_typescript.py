"""clients/typescript: its types are those of the OpenAPI document, and its tests pass against a real `memd serve`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from support import ENDS_S, ROOT, daemon
from support.http_support import Site, install, serving
from support.typescript_types import COMMAND, stale

from memd import __version__
from memd.adapters.agent_memory import NOTE
from memd.http.keyring import Users

CLIENT = ROOT / "clients" / "typescript"
OLDEST_NODE = 20


def test_the_types_are_those_of_the_document() -> None:
    """Whoever changes an operation generates them again."""
    assert [file.name for file in stale()] == [], COMMAND


def test_the_ai_sdk_frames_the_block_as_the_other_adapters_do() -> None:
    """One note, in two languages."""
    for name in ("src/ai-sdk.ts", "lib/ai-sdk.js"):
        assert NOTE in (CLIENT / name).read_text(encoding="utf-8")


def test_the_lock_file_names_no_registry() -> None:
    """It pins versions and hashes; where packages come from is for each machine to say."""
    packages = json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert not packages[""].get("dependencies")


def test_the_client_has_the_version_of_memd() -> None:
    """They are one repository, and the types are those of this version."""
    assert json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))["version"] == __version__


@pytest.fixture(scope="module")
def node() -> str:
    """Node, if it is here and young enough."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        pytest.skip("not run: Node and npm are not installed")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.match(r"v(\d+)\.", version)
    if match is None or int(match[1]) < OLDEST_NODE:
        pytest.skip(f"not run: this is Node {version.strip()}, and the client needs {OLDEST_NODE}")
    return found


@pytest.fixture(scope="module")
def packages(node: str) -> None:
    """The packages of the AI SDK, which only `make test-clients` installs: that takes longer than the tests."""
    if not (CLIENT / "node_modules" / "ai").exists():
        pytest.skip("not run: the packages are not installed (make test-clients)")


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with tokens, which soon finds a conversation quiet."""
    with serving(server_url, locked=True, scheduler__quiet_s=0.3) as site:
        yield site


@pytest.fixture
def environ(running: Site) -> Iterator[dict[str, str]]:
    """The environment that tells the client's tests what runs already."""
    install(running)
    tokens = {"desk": running.token, "shop": running.give("shop", Users(prefix="shop:"))}
    served = {"url": f"http://127.0.0.1:{running.port}", "tokens": tokens}
    with daemon(running.settings):
        yield {**os.environ, "MEMD_SERVED": json.dumps(served)}


def run(node: str, name: str, environ: dict[str, str]) -> None:
    """Run one file of the client's tests; none of them is skipped."""
    words = [node, "--test", f"test/{name}"]
    done = subprocess.run(words, cwd=CLIENT, env=environ, capture_output=True, text=True, timeout=ENDS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\W*skipped 0$", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.long  # `make smoke` runs it, too
def test_the_client(node: str, environ: dict[str, str]) -> None:
    """Push, wait, inject, search, facts, refusals, time limits and repetitions: with Node alone."""
    run(node, "client.test.mjs", environ)


@pytest.mark.long  # `make smoke` runs it, too
def test_the_middleware(node: str, environ: dict[str, str]) -> None:
    """When a stream is pushed, and what may fail without costing the answer: with Node alone."""
    run(node, "middleware.test.mjs", environ)


@pytest.mark.long  # `make smoke` runs it, too
@pytest.mark.usefixtures("packages")
def test_the_ai_sdk_middleware(node: str, environ: dict[str, str]) -> None:
    """In the real AI SDK, of which npm installs two versions."""
    run(node, "ai-sdk.test.mjs", environ)
