"""What memd serve refuses: too much, too slow, not JSON, not for us. Over raw sockets where the form matters."""

from __future__ import annotations

import asyncio
import json
import select
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.datastructures import Headers
from support import exit_code, wait_for
from support.http_support import JSON, Site, head, install, read_all, serving, status_of

from memd.context import Bucket
from memd.http.fields import MAX_BODY_BYTES
from memd.http.request_body import MOST_LARGE, SMALL_BYTES, LargeBodies, Place, read_body
from memd.memory.document import empty_document
from memd.memory.store.json_store import open_store

pytestmark = pytest.mark.timing

CANARY = "canary-4711"
MESSAGES = [{"role": "user", "content": "I live in Porto.", "id": "1"}]
PUSH = {"user_id": "ana", "thread_id": "t", "messages": MESSAGES}
LIMIT = 20_000
TYPED = f"Content-Type: {JSON}"


@pytest.fixture(scope="module", params=["httptools", "h11"])
def site(request: pytest.FixtureRequest, server_url: str) -> Iterator[Site]:
    """A server with short times and a small limit, with either parser of HTTP that uvicorn may find."""
    changes: dict[str, Any] = {
        "http__read_timeout_s": 0.6,
        "http__request_timeout_s": 2,
        "client__max_read_bytes": LIMIT,
        "client__max_push_bytes": LIMIT,
    }
    with serving(server_url, only_h11=request.param == "h11", **changes) as found:
        install(found)
        yield found


@pytest.fixture(scope="module")
def calm(server_url: str) -> Iterator[Site]:
    """A server with the times of the defaults."""
    with serving(server_url) as found:
        install(found)
        yield found


def once(site: Site, *sent: bytes) -> bytes:
    """What comes back until the server closes."""
    with site.line(*sent) as line:
        return read_all(line)


def test_a_body_over_the_limit_is_refused_before_it_comes(site: Site) -> None:
    """By its declared length, with nothing of it sent; and while it comes, when no length was declared."""
    with site.line(head("POST", "/v1/push", TYPED, f"Content-Length: {LIMIT + 1}")) as line:
        raw = read_all(line)
    assert status_of(raw) == 413
    assert json.loads(raw.split(b"\r\n\r\n")[1])["limit"] == LIMIT
    chunk = b"1000\r\n" + b" " * 0x1000 + b"\r\n"
    with site.line(head("POST", "/v1/push", TYPED, "Transfer-Encoding: chunked"), *[chunk] * 6) as line:
        assert status_of(line.recv(4096)) == 413
    exact = json.dumps(PUSH).encode().ljust(LIMIT)
    assert site.ask("POST", "/v1/push", exact).status in (200, 202)
    assert site.ask("POST", "/v1/flush", b" " * (MAX_BODY_BYTES + 1)).code == "E_BODY_SIZE"


def test_large_pushes_are_read(calm: Site) -> None:
    """Six at once of 2 MiB that a tool filled, with more messages and more text than is kept: each is accepted."""
    said = [{"role": "user", "content": f"no {n}"} for n in range(1_001)]
    said.insert(0, {"role": "tool", "content": "x" * 2_000_000})
    said.append({"role": "user", "content": "I live in Porto. " + "x" * 100_000})
    with ThreadPoolExecutor(6) as clients:
        pushes = [{"user_id": "ana", "thread_id": f"large-{n}", "messages": said} for n in range(6)]
        answers = list(clients.map(lambda push: calm.ask("POST", "/v1/push", push), pushes))
    assert [answer.status for answer in answers] == [202] * 6
    counts = answers[0].json
    assert (counts["messages"], counts["dropped"]) == (1_000, {"tool": 1, "over_limit": 2, "truncated": 1})


def test_few_large_bodies_are_held_at_once() -> None:
    """The next one waits, half read, longer than a body may take to arrive; small ones do not wait."""

    async def read(bodies: LargeBodies, size: int, held: asyncio.Event, end: asyncio.Event) -> int:
        parts: list[dict[str, Any]] = [{"body": b"x" * size, "more_body": True}, {"body": b"x"}]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", **parts.pop(0)}

        with Place(bodies) as place:
            body = await read_body(Headers({"content-type": JSON}), receive, 10 * SMALL_BYTES, 0.05, place)
            held.set()
            await end.wait()
        return len(body)

    async def story() -> None:
        bodies, end = LargeBodies(), asyncio.Event()
        held = [asyncio.Event() for _ in range(MOST_LARGE + 2)]
        large = [asyncio.create_task(read(bodies, SMALL_BYTES + 1, one, end)) for one in held[:-1]]
        await asyncio.gather(*(one.wait() for one in held[:MOST_LARGE]))
        small = asyncio.create_task(read(bodies, SMALL_BYTES - 1, held[-1], end))
        await held[-1].wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(large[MOST_LARGE]), 0.1)
        assert [one.is_set() for one in held] == [True] * MOST_LARGE + [False, True]
        end.set()
        assert await asyncio.gather(*large, small) == [SMALL_BYTES + 2] * (MOST_LARGE + 1) + [SMALL_BYTES]

    asyncio.run(story())


def test_who_has_no_business_here_sends_no_body(server_url: str) -> None:
    """Without a token the body is not waited for: 401 at once, and the connection ends."""
    with serving(server_url, locked=True) as site:
        raw = once(site, head("POST", "/v1/push", TYPED, "Content-Length: 1000"))
    assert status_of(raw) == 401
    assert b"connection: close" in raw.lower()


def test_a_slow_second_head_is_cut_too(site: Site) -> None:
    """A connection that has been answered once gets no more time for its next head."""
    with site.line(head("GET", "/health")) as line:
        answer = line.recv(4096)
        while not answer.endswith(b"}"):  # the body may come by itself
            answer += line.recv(4096)
        assert status_of(answer) == 200
        line.sendall(b"GET /hea")
        assert read_all(line) == b""


def test_a_slow_body_is_refused(site: Site) -> None:
    """A body that does not come in time is 408, and the connection ends."""
    raw = once(site, head("POST", "/v1/push", TYPED, "Content-Length: 100"), b'{"user_id"')
    assert (status_of(raw), b"E_BODY_SLOW" in raw) == (408, True)


def test_a_client_that_does_not_read_is_cut(site: Site) -> None:
    """An answer that nobody takes does not stay for ever: the connection is reset, and others are served meanwhile."""
    store, bucket = open_store(site.settings), Bucket("big")
    document = empty_document(bucket)
    document["facts"] = [{"id": f"fact_{n:08x}", "content": "x" * 1000} for n in range(6000)]
    store.commit(bucket, store.load(bucket), document | {"revision": 1}, lambda: True)
    wait_for(lambda: site.ask("GET", "/v1/memory?user_id=big").status == 200, "the answer comes in time")
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", site.port))
        line.sendall(head("GET", "/v1/memory?user_id=big"))
        assert status_of(line.recv(1000, socket.MSG_PEEK)) == 200
        poll = select.poll()
        poll.register(line, 0)
        assert site.ask("GET", "/health").status == 200
        wait_for(lambda: poll.poll(0), "the connection is cut", 15)
    store.erase("big", None)


def test_a_client_that_goes_away_harms_nobody(site: Site) -> None:
    """Half a body and a closed connection: nothing is pushed, nothing is logged as a fault."""
    for _ in range(5):
        with site.line(head("POST", "/v1/push", TYPED, "Content-Length: 100"), b'{"user_id"'):
            pass
    assert site.ask("GET", "/health").status == 200
    assert "http_failed" not in (site.settings.data_dir / "serve0.log").read_text()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:1234", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("localhost@evil.example", 400),
        ("", 400),
        (None, 400),
    ],
)
def test_only_our_own_names_are_answered(site: Site, host: str | None, status: int) -> None:
    """A page whose name was made to point here gets nothing, whatever it asks for."""
    for path in ("/health", "/v1/inject?user_id=ana", "/openapi.json", "/nothing"):
        line = "" if host is None else f"Host: {host}\r\n"
        raw = once(site, f"GET {path} HTTP/1.1\r\n{line}Connection: close\r\n\r\n".encode())
        assert status_of(raw) == (404 if status == 200 and path == "/nothing" else status), (path, raw)


def test_more_names_by_setting(server_url: str) -> None:
    """`http.hosts` are answered too, and no others."""
    with serving(server_url, http__hosts=["memory.example"]) as site:
        for host, status in (("memory.example", 200), ("Memory.Example:443", 200), ("other.example", 421)):
            assert site.ask("GET", "/health", headers={"host": host}).status == status


def test_requests_that_mean_two_things_are_refused(site: Site) -> None:
    """Two lengths, a length and chunks, two hosts, a broken line: 400, and the connection ends."""
    for fields in (
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Host: localhost",),
        ("no colon",),
        ("Content-Length: +2",),
    ):
        raw = once(site, head("POST", "/v1/flush", TYPED, *fields), b"{}")
        assert status_of(raw) == 400, (fields, raw)


@pytest.mark.parametrize(
    "fields",
    [
        {"content-type": ""},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/jsonp"},
        {"content-type": JSON, "content-encoding": "gzip"},
    ],
)
def test_only_json_as_it_is(calm: Site, fields: dict[str, str]) -> None:
    """Any other type is 415, also none at all: what a page can send without being asked is refused."""
    for path in ("/v1/push", "/v1/flush", "/v1/search", "/v1/forget"):
        answer = calm.ask("POST", path, json.dumps(PUSH).encode(), headers=fields)
        assert (answer.status, answer.code[:10]) == (415, "E_CONTENT_")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "E_JSON"),
        (b"{", "E_JSON"),
        (b'{"user_id": "ana"} x', "E_JSON"),
        (b"{'user_id': 'ana'}", "E_JSON"),
        (b'{"user_id": NaN}', "E_JSON"),
        (b'\xef\xbb\xbf{"user_id": "ana"}', "E_JSON"),
        (b'{"user_id": "\xff"}', "E_UTF8"),
        (b'{"user_id": "\\ud800"}', "E_SURROGATE"),
        (b'{"user_id": "ana", "user_id": "bob"}', "E_DUPLICATE_KEY"),
        (b'{"user_id": ' + b"9" * 100 + b"}", "E_NUMBER"),
        (b'{"user_id": ' + b"[" * 100_000, "E_JSON"),
        (b'{"user_id": ' + b"[" * 70 + b"]" * 70 + b"}", "E_DEPTH"),
    ],
)
def test_broken_json(calm: Site, body: bytes, code: str) -> None:
    """Every body is read as strictly as the raw door reads: 400 with what is wrong."""
    for path in ("/v1/push", "/v1/flush", "/v1/inject", "/v1/search", "/v1/facts", "/v1/forget"):
        answer = calm.ask("POST", path, body)
        assert (answer.status, answer.code) == (400, code), path


REFUSED: list[tuple[str, str, Any, str, str]] = [
    ("POST", "/v1/push", {**PUSH, "user_id": f"{CANARY}\u0000"}, "E_USER_ID_CTRL", "user_id"),
    ("POST", "/v1/push", {**PUSH, "thread_id": CANARY * 40}, "E_THREAD_ID_LENGTH", "thread_id"),
    ("POST", "/v1/push", {**PUSH, CANARY: 1}, "E_UNKNOWN_FIELD", ""),
    ("POST", "/v1/push", {**PUSH, "messages": [{"role": CANARY, "content": 7}]}, "E_CONTENT_TYPE", "content"),
    ("POST", "/v1/push", {**PUSH, "signals": [CANARY]}, "E_SIGNALS", "signals"),
    ("POST", "/v1/push", {"thread_id": CANARY, "messages": MESSAGES}, "E_USER_ID_MISSING", "user_id"),
    ("POST", "/v1/push", [CANARY], "E_PUSH_TYPE", ""),
    ("POST", "/v1/flush", [CANARY], "E_BODY", ""),
    ("POST", "/v1/flush", {"wait": CANARY}, "E_WAIT", "wait"),
    ("POST", "/v1/flush", {"timeout_s": 4711}, "E_TIMEOUT_S", "timeout_s"),
    ("POST", "/v1/flush", {CANARY: True}, "E_UNKNOWN_FIELD", ""),
    ("GET", "/v1/inject", None, "E_USER_ID_MISSING", "user_id"),
    ("GET", f"/v1/inject?user_id={CANARY}%20", None, "E_USER_ID_SPACE", "user_id"),
    ("GET", f"/v1/inject?user_id=ana&max_tokens={CANARY}", None, "E_MAX_TOKENS", "max_tokens"),
    ("GET", "/v1/inject?user_id=ana&max_tokens=0", None, "E_MAX_TOKENS", "max_tokens"),
    ("GET", "/v1/inject?user_id=ana&max_tokens=1e3", None, "E_MAX_TOKENS", "max_tokens"),
    ("GET", "/v1/inject?user_id=ana&include_pending=1", None, "E_INCLUDE_PENDING", "include_pending"),
    ("GET", f"/v1/inject?user_id=ana&{CANARY}=1", None, "E_UNKNOWN_FIELD", ""),
    ("GET", "/v1/inject?user_id=ana&user_id=bob", None, "E_QUERY", ""),
    ("GET", "/v1/inject?" + "&".join(f"{CANARY}{n}=1" for n in range(40)), None, "E_QUERY", ""),
    ("GET", f"/v1/receipts/{CANARY}?user_id=ana", None, "E_RECEIPT_ID", "receipt"),
    ("POST", "/v1/search", {"user_id": "ana", "query": ""}, "E_QUERY_EMPTY", "query"),
    ("POST", "/v1/search", {"user_id": "ana", "query": " \n"}, "E_QUERY_EMPTY", "query"),
    ("POST", "/v1/search", {"user_id": "ana", "query": CANARY * 10_000}, "E_QUERY_LENGTH", "query"),
    ("POST", "/v1/search", {"user_id": "ana", "query": "茶" * 100_000}, "E_QUERY_LENGTH", "query"),
    ("POST", "/v1/search", {"user_id": "ana", "query": [CANARY]}, "E_QUERY_TYPE", "query"),
    ("POST", "/v1/search", {"user_id": "ana", "query": "x", "limit": 501}, "E_LIMIT", "limit"),
    ("POST", "/v1/search", {"user_id": "ana", "query": "x", "since": CANARY}, "E_TIME", "since"),
    ("POST", "/v1/search", {"user_id": "ana", "query": "x", "until": "2026-02-30"}, "E_TIME", "until"),
    ("POST", "/v1/facts", {"user_id": "ana", "content": 7}, "E_CONTENT", "content"),
    ("POST", "/v1/facts", {"user_id": "ana", "content": "x"}, "E_FACT_TOO_SHORT", "content"),
    ("POST", "/v1/facts", {"user_id": "ana", "content": CANARY, "category": CANARY}, "E_CATEGORY", "category"),
    ("PATCH", "/v1/facts/fact_0", {"user_id": "ana", "agent_name": "\u202e"}, "E_AGENT_NAME_CTRL", "agent_name"),
    ("POST", "/v1/forget", {"user_id": None}, "E_USER_ID_MISSING", "user_id"),
    ("POST", "/v1/forget", {"user_id": "ana", "dry_run": "yes"}, "E_DRY_RUN", "dry_run"),
]


@pytest.mark.parametrize(("method", "path", "body", "code", "field"), REFUSED)
def test_what_is_refused_is_named_without_its_value(
    calm: Site, method: str, path: str, body: Any, code: str, field: str
) -> None:
    """Code and field, the limit where there is one, and nothing of what was sent."""
    answer = calm.ask(method, path, body)
    assert (answer.status, answer.code, answer.json.get("field", "")) == (422, code, field), answer
    assert CANARY.encode() not in answer.body
    assert "4711" not in answer.json["detail"]
    if code.endswith(("_LENGTH", "_COUNT")) or code in ("E_LIMIT", "E_TIMEOUT_S"):
        assert answer.json["limit"] > 0


def test_operators_of_search_engines_are_text(calm: Site) -> None:
    """What FTS, Redis or a shell would obey is only looked for; and a long query in an address is refused whole."""
    calm.ask("POST", "/v1/facts", {"user_id": "joy", "content": "Joy drinks tea AND coffee."})
    for query in ('tea" OR 1=1 --', "content:tea*", "NEAR(tea, 2)", "(((", '"', "* AND NOT", "茶'; DROP TABLE facts;"):
        assert calm.ask("POST", "/v1/search", {"user_id": "joy", "query": query}).status == 200
        assert calm.ask("POST", "/v1/inject", {"user_id": "joy", "query": query}).status == 200
    assert calm.ask("POST", "/v1/search", {"user_id": "joy", "query": "tea AND"}).json["found"]
    with calm.line(head("GET", f"/v1/inject?user_id=joy&query={'x' * 100_000}")) as line:
        assert status_of(line.recv(4096)) == 431
    assert calm.ask("GET", f"/v1/inject?user_id=joy&query={'x' * 50_000}").code == "E_QUERY_LENGTH"


def test_more_connections_than_allowed_are_turned_away(server_url: str) -> None:
    """Where none of `http.max_connections` is idle a request is 503 at once; when there is room again it is served."""
    with serving(server_url, http__max_connections=4, http__read_timeout_s=60) as site:
        lines: list[socket.socket] = []

        def is_full() -> bool:
            lines.append(socket.create_connection(("127.0.0.1", site.port)))
            lines[-1].sendall(b"GET /hea")  # while this is on its way, the connection is idle and may lose its place
            return site.ask("GET", "/health").status == 503

        wait_for(is_full, "the server is full")
        for line in lines:
            line.close()
        wait_for(lambda: site.ask("GET", "/health").status == 200, "there is room again")


def test_sigterm_lets_running_requests_finish(server_url: str) -> None:
    """A request that is being worked on is answered; then the process ends with code 0."""
    with serving(server_url) as site:
        install(site)
        body = json.dumps(PUSH).encode()
        with site.line(head("POST", "/v1/push", TYPED, f"Content-Length: {len(body)}"), body[:50]) as line:
            wait_for(lambda: b'"inbox"' in site.ask("GET", "/health").body, "the server is at work")
            site.process.send_signal(signal.SIGTERM)
            line.sendall(body[50:])
            assert status_of(line.recv(4096)) == 202
        assert exit_code(site.process, 10) == 0
        assert "Traceback" not in (site.settings.data_dir / "serve0.log").read_text()
