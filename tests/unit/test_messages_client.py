"""memd's own client of the Messages API beside Anthropic's SDK: both send the same requests, and fail alike."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import structs

from memd.config import ExtractionSettings, Secret
from memd.errors import ConfigError
from memd.extraction import Learnt
from memd.extraction.anthropic import request_options
from memd.extraction.anthropic_client import MessagesClient, check, describe, open_clients, post
from memd.extraction.batch.api import AnthropicBatches
from memd.extraction.transport import Pool
from memd.testing.dialects import message_body
from memd.testing.http import ModelRequest, head, read_request

SDKS_OWN = ("x-stainless-", "user-agent", "host")
"""Headers in which the two differ: what the SDK tells about itself, and the port of the server."""

BATCH = {"id": "msgbatch_1", "type": "message_batch", "processing_status": "ended", "archived_at": None}
BODY = {
    **request_options(ExtractionSettings()),
    "messages": [{"role": "user", "content": "Ich wohne in Köln & 上海 😀"}],
}


@asynccontextmanager
async def recording() -> AsyncIterator[tuple[str, list[ModelRequest]]]:
    """The address of a server that records each request and answers it with something valid."""
    taken: list[ModelRequest] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            taken.append(request)
            body = message_body("{}", {}, "end_turn", True)
            if "/batches" in request.path:
                body = json.dumps(BATCH).encode()
            writer.write(head(200, {}, len(body)) + body)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", taken


def settings_of(address: str, key: str = "test-key") -> ExtractionSettings:
    return structs.replace(ExtractionSettings(), extractor="anthropic", base_url=address, api_key=Secret(key))


def plain(request: ModelRequest) -> tuple[str, str, dict[str, str], Any]:
    """What a request says, without what the SDK says about itself; an empty body has no length."""
    headers = {name: value for name, value in request.headers.items() if not name.startswith(SDKS_OWN)}
    length = int(headers.pop("content-length", "0"))
    assert length == len(request.body)
    return request.method, request.path, headers, json.loads(request.body or b"null")


Own = Callable[[Pool[MessagesClient], AnthropicBatches], Awaitable[object]]
Theirs = Callable[[Any], Awaitable[object]]

CALLS: dict[str, tuple[Own, Theirs]] = {
    "a message": (
        lambda clients, _: post(clients, BODY, 30),
        lambda sdk: sdk.messages.create(**BODY),
    ),
    "the description of a model": (
        lambda clients, _: describe(clients, "claude/x y", 30),
        lambda sdk: sdk.models.retrieve("claude/x y"),
    ),
    "a batch": (
        lambda _, batches: batches.create([("one", BODY)]),
        lambda sdk: sdk.messages.batches.create(requests=[{"custom_id": "one", "params": BODY}]),
    ),
    "the state of a batch": (
        lambda _, batches: batches.state("msgbatch_1"),
        lambda sdk: sdk.messages.batches.retrieve("msgbatch_1"),
    ),
    "the end of a batch": (
        lambda _, batches: batches.cancel("msgbatch_1"),
        lambda sdk: sdk.messages.batches.cancel("msgbatch_1"),
    ),
    "the removal of a batch": (
        lambda _, batches: batches.delete("msgbatch_1"),
        lambda sdk: sdk.messages.batches.delete("msgbatch_1"),
    ),
}


async def said_by_both(own: Own, theirs: Theirs) -> list[ModelRequest]:
    """memd's request and the SDK's."""
    import anthropic  # a second of CPU, for this test alone

    async with recording() as (address, taken):
        clients = open_clients(settings_of(address), 1)
        assert clients is not None
        batches = AnthropicBatches(settings_of(address), 1, Learnt())
        http = anthropic.DefaultAsyncHttpxClient(headers={"accept-encoding": "identity"})
        async with anthropic.AsyncAnthropic(
            api_key="test-key", base_url=address, max_retries=0, http_client=http
        ) as sdk:
            await own(clients, batches)
            await theirs(sdk)
        await clients.aclose()
        await batches.aclose()
        return taken


def test_every_request_says_what_the_sdks_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Method, path, version of the API, key, further headers and body. With a newer SDK this tells what has changed."""
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Team: memory\nno header\nanthropic-beta: a, b")
    for name, (own, theirs) in CALLS.items():
        ours, sdks = asyncio.run(said_by_both(own, theirs))
        assert plain(ours) == plain(sdks), name
        assert ours.headers["x-team"] == "memory"
        assert ours.headers["user-agent"] == "memd"


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({"ANTHROPIC_AUTH_TOKEN": "token"}, "Bearer token"),
        ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_AUTH_TOKEN": "token"}, "Bearer key"),
        ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_CUSTOM_HEADERS": "Authorization: Basic eA=="}, "Basic eA=="),
    ],
)
def test_the_environment_names_the_credential(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], sent: str
) -> None:
    """A key goes before a token; a header of one's own replaces memd's, as with the SDK."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def authorization() -> str:
        async with recording() as (address, taken):
            clients = open_clients(structs.replace(settings_of(address), api_key=None), 1)
            assert clients is not None
            await post(clients, BODY, 30)
            await clients.aclose()
            return taken[0].headers["authorization"]

    assert asyncio.run(authorization()) == sent


@pytest.mark.parametrize("header", ["X Team: memory", "X-Team: \x07", "X-Team: größe", ": nothing"])
def test_a_header_that_no_request_can_carry_stops_the_start(monkeypatch: pytest.MonkeyPatch, header: str) -> None:
    """It is not repeated: it may hold a key."""
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Ok: yes\n{header}")
    with pytest.raises(ConfigError, match="ANTHROPIC_CUSTOM_HEADERS") as refused:
        check(settings_of("http://127.0.0.1:1"))
    assert header not in str(refused.value)


@pytest.mark.parametrize("path", ["", "/", "/gateway", "/gateway/"])
def test_the_address_may_have_a_path(path: str) -> None:
    async def asked() -> str:
        async with recording() as (address, taken):
            clients = open_clients(settings_of(address + path), 1)
            assert clients is not None
            await post(clients, BODY, 30)
            await clients.aclose()
            return taken[0].path

    assert asyncio.run(asked()) == path.rstrip("/") + "/v1/messages"


def test_a_worker_with_a_model_loads_no_sdk() -> None:
    """Neither Anthropic's nor pydantic: they would take a second of each worker's start and 50 MB of its memory."""
    code = (
        "import sys; from memd.config import ExtractionSettings, Secret; from memd.extraction import preload; "
        "import memd.workers.worker; preload(ExtractionSettings(extractor='anthropic', api_key=Secret('x'))); "
        "print([m for m in ('anthropic', 'openai', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
