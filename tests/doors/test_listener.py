"""What `memd serve` and `memd mcp --http` share: limits on the head of a request and on slow clients; either parser."""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from support import environment, exit_code, slowdown, wait_for
from support.http_support import JSON, Site, head, install, read_all, serving, status_of

from memd.config import Settings
from memd.http.connections import MAX_HEAD_BYTES, MAX_HEADERS
from memd.http.crowd import SPARE

pytestmark = pytest.mark.timing

LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
TYPED = f"Content-Type: {JSON}"
PIECE = b"x" * 1000
CHUNKED = head("POST", "/mcp", TYPED, "Transfer-Encoding: chunked")


@pytest.fixture(scope="module", params=["serve, httptools", "serve, h11", "mcp, httptools", "mcp, h11"])
def site(request: pytest.FixtureRequest, server_url: str) -> Iterator[Site]:
    """Either server with either parser, with a short time for a head."""
    server, _, parser = request.param.partition(", ")
    user = "ana" if server == "mcp" else ""
    with serving(server_url, only_h11=parser == "h11", mcp_user=user, http__read_timeout_s=0.6) as found:
        yield found


def sent_until_cut(line: socket.socket, piece: bytes) -> int:
    """How many bytes the server takes until it responds or cuts the connection."""
    sent = 0
    while not select.select([line], [], [], 0)[0]:
        try:
            sent += line.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            break
    return sent


@pytest.mark.long
def test_a_slow_head_is_cut(site: Site) -> None:
    """Nothing at all, half a line, or a byte now and then: after the time for a head the connection ends."""
    for sent in (b"", b"GET /v1/in", head("GET", "/health")[:-2]):
        with site.line(sent) as line:
            assert read_all(line) == b""
    with site.line() as line:
        began = time.monotonic()
        for byte in head("GET", "/health").ljust(1000, b"x"):
            try:
                line.send(bytes([byte]))
            except (BrokenPipeError, ConnectionResetError):
                break
            if select.select([line], [], [], 0.05)[0]:
                break
        assert time.monotonic() - began < 10 * slowdown()
        assert read_all(line) == b""


def test_a_head_without_end_is_refused(site: Site) -> None:
    """One header that never ends, or headers without end: 431 after 64 KiB and what the sockets hold, then the end."""
    for piece in (PIECE, b"x: y\r\n"):
        with site.line(head("GET", "/health")[:-2] + b"X: ") as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            sent_until_cut(line, piece)
            assert status_of(read_all(line)) == 431


HOSTILE = {
    "a long header": head("GET", "/health", f"X: {'x' * 65_000}")[:-4],
    "short headers": head("GET", "/health")[:-2] + b"a:b\r\n" * 13_000,
    "a long address": b"GET /" + b"x" * 65_000,
    "as many headers as allowed": head("GET", "/health")[:-2]
    + b"".join(b"a%d: %s\r\n" % (n, b"x" * 600) for n in range(98)),
}
CONNECTIONS = 500
MAX_GROWTH_MB = 100


def memory_mb(site: Site) -> float:
    """The resident memory of the server."""
    lines = Path(f"/proc/{site.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


@pytest.mark.long
@pytest.mark.parametrize("user", ["", "ana"], ids=["serve", "mcp"])
def test_the_memory_of_hostile_connections_is_bounded(server_url: str, user: str) -> None:
    """500 connections that send as much of a head as they can, in every form, cost less than 100 MB."""
    with serving(server_url, mcp_user=user, http__read_timeout_s=60, http__max_connections=1_000) as site:
        before = memory_mb(site)
        for sent in HOSTILE.values():
            with ExitStack() as lines:
                for _ in range(CONNECTIONS):
                    line = lines.enter_context(socket.create_connection(("127.0.0.1", site.port)))
                    with suppress(OSError):  # cut meanwhile
                        line.sendall(sent)
                with site.line(head("GET", "/nothing")) as line:  # whatever was sent before has been read by now
                    assert status_of(line.recv(4096)) == 404
                assert memory_mb(site) - before < MAX_GROWTH_MB


def has_closed_all_but(most: int, port: int) -> None:
    wait_for(lambda: len(established(port)) <= most, "the others are closed")


def established(port: int) -> set[str]:
    """The inodes of the server's ends of all connections to this port."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"}


def test_connections_over_the_limit_are_not_kept(server_url: str) -> None:
    """Of 500 that stay open the server keeps its limit: idle ones make room for a request, busy ones for nobody."""
    limit, served, busy = 20, head("GET", "/nothing"), b"GET /nothing"
    with serving(server_url, http__read_timeout_s=60, http__max_connections=limit) as site:
        before = memory_mb(site)
        for sent, most in ((b"", limit), (served, limit), (busy, limit + SPARE)):
            with ExitStack() as lines:
                for _ in range(CONNECTIONS):
                    line = lines.enter_context(socket.create_connection(("127.0.0.1", site.port)))
                    with suppress(OSError):  # turned away
                        line.sendall(sent)
                has_closed_all_but(most, site.port)
                assert memory_mb(site) - before < MAX_GROWTH_MB
                if sent != busy:
                    with site.line(served) as line:
                        assert status_of(line.recv(4096)) == 404
        with site.line(served) as line:
            assert status_of(line.recv(4096)) == 404


def test_a_whole_head_over_the_limit_is_refused(site: Site) -> None:
    """A byte too many is 431, a long head within the limit is a request like any other."""
    empty = head("GET", "/nothing", "X: ")
    fitting = MAX_HEAD_BYTES - len(empty) + 4  # the blank line does not count
    with site.line(head("GET", "/nothing", f"X: {'x' * (fitting + 1)}")) as line:
        raw = read_all(line)
    assert (status_of(raw), b"E_HEAD" in raw) == (431, True)
    with site.line(head("GET", "/nothing", f"X: {'x' * fitting}")) as line:
        assert status_of(line.recv(4096)) == 404


def test_headers_are_counted(site: Site) -> None:
    """More headers than the limit are 431, however short."""
    for more, status in ((0, 404), (1, 431)):
        fields = [f"x{number}: y" for number in range(MAX_HEADERS - 1 + more)]  # one is the Host
        with site.line(head("GET", "/nothing", *fields)) as line:
            assert status_of(line.recv(4096)) == status


def test_a_large_body_does_not_count_as_head(site: Site) -> None:
    """Sent together with its head, or cut from it in the middle of the blank line."""
    body = LIST.ljust(500_000)
    text = head("POST", "/mcp", TYPED, f"Content-Length: {len(body)}", "Accept: application/json, text/event-stream")
    for place in (0, 1, 2, 3):
        with site.line() as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.sendall(text[: len(text) - place])
            line.sendall(text[len(text) - place :] + body)
            assert status_of(line.recv(4096)) in (200, 404)  # memd serve has no such path


def test_trailers_without_end_are_cut(site: Site) -> None:
    """Behind the last chunk of a body only so much may come: it is no body, and uvicorn would keep it."""
    with site.line(CHUNKED + b"2\r\n{}\r\n0\r\n") as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        began = time.monotonic()
        sent_until_cut(line, b"X: " + PIECE * 60 + b"\r\n")
        assert time.monotonic() - began < 10 * slowdown()


def test_a_second_head_without_end_is_cut(server_url: str) -> None:
    """Sent while the first request is being worked on; the request that waits is not answered any more."""
    with serving(server_url) as site:
        install(site)
        turns = [{"role": "user", "content": "I live in Lyon.", "id": "1"}]
        assert site.ask("POST", "/v1/push", {"user_id": "zoe", "thread_id": "t", "messages": turns}).status == 202
        body = b'{"user_id": "zoe", "wait": true}'
        with site.line(head("POST", "/v1/flush", TYPED, f"Content-Length: {len(body)}") + body + b"GET /") as line:
            began = time.monotonic()
            sent_until_cut(line, PIECE)
            assert time.monotonic() - began < 10 * slowdown()
            assert read_all(line) == b""


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("mcp", "--user", "ana", "--http", "--port", "0")])
def test_a_signal_right_after_the_start_stops_the_server(
    settings: Settings, words: tuple[str, ...], number: signal.Signals
) -> None:
    """The line that says it is ready and the signal may be a moment apart; the signal is not lost."""
    command = [sys.executable, "-m", "memd", *words]
    with subprocess.Popen(command, env=environment(settings), stderr=subprocess.PIPE) as process:
        assert process.stderr
        ready = next(line for line in process.stderr if b"_ready" in line)
        process.send_signal(number)
        assert json.loads(ready)["pid"] == process.pid
        assert exit_code(process, 10) == 0
