"""The services of docs/deploy/compose.yaml as processes, in its order: commands, variables, accounts, roles, health."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import ENDS_S, ROOT, free_port, wait_for
from support.databases import Missing

from memd.ops import server

pytestmark = pytest.mark.store

DEPLOY = ROOT / "docs" / "deploy"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
PUSH = {
    "thread_id": "t",
    "user_id": "shop:ana",
    "messages": [{"role": "user", "content": "I live in Porto.", "id": "1"}],
}


class Site:
    """The folders and ports that stand for the volumes and names of the compose file."""

    def __init__(self, folder: Path) -> None:
        """Write the secrets, and make PostgreSQL as its image does. Raises Missing."""
        from support.postgres_server import PostgresServer, programs

        self.folder = folder
        for name in ("setup", "bin", "inbox", "tokens", "memories"):
            (folder / name).mkdir(mode=0o700 if name == "tokens" else 0o755)
        subprocess.run([DEPLOY / "secrets.sh"], cwd=folder, check=True)
        self.http, self.inbox = free_port(), free_port()
        self.programs = programs()
        self.postgres = PostgresServer(folder / "memories")
        self._tool("memd", f'"{sys.executable}" -m memd')
        self._tool("python", f'"{sys.executable}"')
        self._tool("valkey-server", f'"{server.binary()}" --bind 127.0.0.1 --dir {folder}/inbox --port {self.inbox}')

    def _tool(self, name: str, call: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
        file.chmod(0o755)

    def variables(self, *files: str) -> dict[str, str]:
        """The variables in these files."""
        lines = [line for file in files for line in (self.folder / file).read_text().splitlines()]
        return dict(line.split("=", 1) for line in lines)

    def here(self, text: str) -> str:
        """A word of the compose file with what stands here for its volumes and names."""
        local = {
            "/setup": str(self.folder / "setup"), "/var/lib/memd": str(self.folder / "tokens"),
            "@server:6379": f"@127.0.0.1:{self.inbox}", "@postgres/": f"@127.0.0.1:{self.postgres.port}/",
            ":8477": f":{self.http}",
        }  # fmt: skip
        for there, found in local.items():
            text = text.replace(there, found)
        return "127.0.0.1" if text == "postgres" else text

    def environ(self, name: str) -> dict[str, str]:
        """The variables of a service, and none of ours."""
        service = SERVICES[name]
        given = self.variables(*service.get("env_file", [])) | service.get("environment", {})
        common = {
            "PATH": f"{self.folder}/bin:{self.programs}:{os.environ['PATH']}", "HOME": str(self.folder),
            "MEMD_DATA_DIR": str(self.folder / "tokens"), "MEMD_HTTP__PORT": str(self.http),
            "PGPORT": str(self.postgres.port), "PYTHONPATH": os.pathsep.join(sys.path),
        }  # fmt: skip
        return common | {key: self.here(value) for key, value in given.items()}

    def run(self, name: str, *words: str) -> str:
        """Run the command of a service, or these words with its variables; returns what it prints."""
        done = subprocess.run(
            [self.here(word) for word in words or SERVICES[name]["command"]],
            env=self.environ(name), cwd=self.folder, capture_output=True, text=True, timeout=ENDS_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """A service that runs on, until the block ends; then it ends by itself, as it was asked to."""
        words = [self.here(word) for word in SERVICES[name]["command"]]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(words, env=self.environ(name), cwd=self.folder, stdout=log, stderr=log)
        try:
            yield
            assert process.poll() is None, (self.folder / f"{name}.log").read_text()
        finally:
            process.terminate()
            process.wait(ENDS_S)

    def is_healthy(self, name: str) -> bool:
        """Whether the health check of a service passes."""
        kind, *words = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        environ = self.environ(name)
        words = [self.here(word) for word in words]
        return subprocess.run(words, env=environ, capture_output=True, check=False).returncode == 0

    def ask(self, token: str, path: str, body: object = None) -> dict[str, Any]:
        """A request to `memd serve`."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=ENDS_S) as answer:  # noqa: S310  (our own server)
            found: dict[str, Any] = json.load(answer)
        return found


@pytest.fixture
def site() -> Iterator[Site]:
    """A site without anything running."""
    folder = Path(tempfile.mkdtemp(prefix="memd-"))
    folder.chmod(0o711)
    try:
        found = Site(folder)
    except Missing as error:
        shutil.rmtree(folder)
        pytest.skip(f"not run: {error}")
    yield found
    found.postgres.stop()
    shutil.rmtree(folder)


def make_postgres(site: Site) -> None:
    """What the image makes of POSTGRES_USER, _DB and _PASSWORD; every login needs a password."""
    site.postgres.start()
    environ = site.environ("postgres")
    owner, name = environ["POSTGRES_USER"], environ["POSTGRES_DB"]
    site.postgres.sql(f"CREATE ROLE {owner} SUPERUSER LOGIN PASSWORD '{environ['POSTGRES_PASSWORD']}'")
    site.postgres.sql(f"CREATE DATABASE {name} OWNER {owner}")
    rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
    (site.postgres.data / "pg_hba.conf").write_text(rules)
    site.postgres.sql("SELECT pg_reload_conf()")


def says_noauth(port: int) -> bool:
    """What `valkey-cli ping` prints, which the health check looks for."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as line:
            line.sendall(b"PING\r\n")
            return line.recv(100).startswith(b"-NOAUTH")
    except OSError:
        return False


def test_what_compose_runs_works_together(site: Site) -> None:
    """Accounts, tables and roles are made with the least rights; a push over HTTP is remembered; twice is harmless."""
    make_postgres(site)
    wait_for(lambda: site.is_healthy("postgres"), "PostgreSQL is healthy")
    for _ in range(2):
        for name in ("accounts", "init", "roles"):
            site.run(name)
    token = site.run("http", "memd", "token", "add", "--app", "shop", "--prefix", "shop:", "--json")
    secret = json.loads(token)["token"]
    with ExitStack() as stack:
        stack.enter_context(site.running("server"))
        wait_for(lambda: says_noauth(site.inbox), "the server responds and lets nobody in")
        for name in ("scheduler", "worker", "http"):
            stack.enter_context(site.running(name))
        wait_for(lambda: site.is_healthy("http"), "http is healthy")
        assert site.ask(secret, "/v1/push", PUSH)["status"] == "queued"
        assert site.ask(secret, "/v1/flush", {"user_id": "shop:ana", "wait": True})["timed_out"] is False
        assert "Porto" in site.ask(secret, "/v1/inject?user_id=shop:ana")["text"]
        site.run("worker", "memd", "doctor")  # its exit code says that nothing is bad
