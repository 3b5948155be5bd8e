"""A `memd serve` for one test, with clients for whole requests and for raw bytes over a socket."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from memd.config import Settings
from memd.http import keyring
from memd.http.keyring import DEFAULT_SCOPES, Users
from memd.inbox import library
from memd.inbox.connection import connect
from memd.inbox.verbs import P
from support import ENDS_S, environment, free_port, make_settings, part, wait_for
from support.forkserver import Part

JSON = "application/json"
ALL = Users(every=True)


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of the problem; the response must be one."""
        assert self.headers["content-type"] == "application/problem+json", self
        tree = self.json
        assert (tree["status"], tree["type"]) == (self.status, f"urn:memd:problem:{tree['code']}")
        return str(tree["code"])

    @property
    def same(self) -> tuple[int, dict[str, str], bytes]:
        """The response without its date, for comparisons."""
        return self.status, {name: value for name, value in self.headers.items() if name != "date"}, self.body


@dataclass
class Site:
    """A running server and its clients."""

    settings: Settings
    process: Part | subprocess.Popen[bytes]
    token: str = ""

    @property
    def port(self) -> int:
        return self.settings.http.port

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a new connection; a body that is not bytes is sent as JSON."""
        given = {"authorization": f"Bearer {text}"} if (text := self.token if token is None else token) else {}
        if body is not None:
            given["content-type"] = JSON
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ENDS_S)
        try:
            connection.request(method, path, raw, {**given, **(headers or {})})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def give(self, app: str = "shop", users: Users = ALL, scopes: tuple[str, ...] = DEFAULT_SCOPES) -> str:
        """A new token, which the server knows within a second."""
        assert self.settings.http.tokens
        made, text = keyring.new(app, users, scopes)
        keyring.add(self.settings.http.tokens, made)
        wait_for(lambda: self.ask("GET", "/v1/memory", token=text).status != 401, "the server knows the token")
        return text

    @contextmanager
    def line(self, *sent: bytes) -> Iterator[socket.socket]:
        """A connection on which these bytes were sent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=ENDS_S) as line:
            for data in sent:
                line.sendall(data)
            yield line


def head(method: str, path: str, *fields: str) -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode()


def read_all(line: socket.socket) -> bytes:
    """All bytes until the server closes or resets the connection."""
    found = b""
    while True:
        try:
            chunk = line.recv(65536)
        except ConnectionResetError:
            return found
        if not chunk:
            return found
        found += chunk


def status_of(raw: bytes) -> int:
    """The status of a raw response."""
    return int(raw.split(b" ", 2)[1])


@contextmanager
def serving(
    server_url: str | None,
    *,
    locked: bool = False,
    only_h11: bool = False,
    mcp_user: str = "",
    environ: Mapping[str, str] = MappingProxyType({}),
    **changes: Any,
) -> Iterator[Site]:
    """`memd serve` as a process, or `memd mcp --http` for one user.

    `locked`: with tokens; the site's token has every scope. `only_h11`: as if httptools were not installed. `environ`:
    added to the environment of a `memd serve`.
    """
    folder = Path(tempfile.mkdtemp(prefix="memd-"))
    text = ""
    if locked:
        made, text = keyring.new("desk", ALL, keyring.SCOPES)
        keyring.add(folder / "tokens.json", made)
        changes["http__tokens"] = str(folder / "tokens.json")
    changes = {"scheduler__quiet_s": 60, "scheduler__max_wait_s": 60, "http__port": free_port(), **changes}
    settings = make_settings(folder, server_url, **changes)
    words = ["mcp", "--http", "--user", mcp_user, "--port", str(settings.http.port)] if mcp_user else ["serve"]
    try:
        with (
            _process(settings, words, only_h11) if only_h11 or mcp_user else part("serve", settings, environ) as process
        ):
            site = Site(settings, process, text)
            wait_for(lambda: _ready(site), f"memd {words[0]} is ready")
            yield site
    finally:
        shutil.rmtree(folder)


def project_requests(
    user_id: str, project_id: str = "apollo", fact_id: str = "fact_00000000", member: str = "mia"
) -> dict[str, tuple[str, str, Any]]:
    """One request of each operation on projects."""
    whose = {"user_id": user_id, "project_id": project_id}
    named = f"user_id={user_id}&project_id={project_id}"
    fact = f"/v1/projects/facts/{fact_id}"
    return {
        "projects": ("GET", f"/v1/projects?user_id={user_id}", None),
        "makeProject": ("POST", "/v1/projects", whose),
        "closeProject": ("DELETE", f"/v1/projects?{named}", None),
        "projectMembers": ("GET", f"/v1/projects/members?{named}", None),
        "setProjectMember": ("PUT", "/v1/projects/members", {**whose, "member": member, "role": "editor"}),
        "removeProjectMember": ("DELETE", f"/v1/projects/members?{named}&member={member}", None),
        "projectProfile": ("GET", f"/v1/projects/profile?{named}", None),
        "setProjectProfile": ("PUT", "/v1/projects/profile", {**whose, "field": "project_goal", "value": "To ship."}),
        "unsetProjectProfile": ("DELETE", f"/v1/projects/profile?{named}&field=project_goal", None),
        "projectTimeline": ("GET", f"/v1/projects/timeline?{named}", None),
        "projectFacts": ("GET", f"/v1/projects/facts?{named}", None),
        "addProjectFact": ("POST", "/v1/projects/facts", {**whose, "content": "The project is late."}),
        "whyProjectFact": ("GET", f"{fact}?{named}", None),
        "editProjectFact": ("PATCH", fact, {**whose, "content": "The project is early."}),
        "removeProjectFact": ("DELETE", f"{fact}?{named}", None),
        "publishFact": ("POST", f"{fact}/publish", whose),
        "hideFact": ("POST", f"{fact}/hide", whose),
        "decideDispute": ("POST", f"{fact}/decide", whose),
    }


def install(site: Site) -> None:
    """Load the functions of the inbox: another test may have emptied the server or bound it to another store."""
    with connect(site.settings) as client:
        client.hdel(f"{P}:config", "store")
        library.install(client, site.settings)


def _ready(site: Site) -> bool:
    assert site.process.poll() is None, (site.settings.data_dir / "serve0.log").read_text()
    try:
        return site.ask("GET", "/health").status in (200, 404)  # memd mcp does not have this page
    except ConnectionError:
        return False


@contextmanager
def _process(settings: Settings, words: list[str], only_h11: bool) -> Iterator[subprocess.Popen[bytes]]:
    """`memd <words>`. `only_h11`: uvicorn does not find httptools, as with the extra `http` alone."""
    env = environment(settings)
    if only_h11:
        hidden = settings.data_dir / "hidden"
        hidden.mkdir()
        (hidden / "httptools.py").write_text("raise ImportError\n")
        env["PYTHONPATH"] = str(hidden)
    with (settings.data_dir / "serve0.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "memd", *words], env=env, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(ENDS_S)
