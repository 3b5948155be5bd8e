"""A real HTTP server on 127.0.0.1 that plays the model's endpoint, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from memd.testing.batch_api import BATCHES, JSON, BatchDesk
from memd.testing.dialects import DIALECTS, MESSAGES, Dialect, error_body
from memd.testing.http import MAX_HEAD, ModelRequest, head, read_request
from memd.testing.replies import UPDATE_PARTS, Refused, Reply, facts_from_messages

Responder = Callable[[dict[str, Any]], dict[str, Any]]
Voice = Callable[[str, dict[str, Any]], tuple[str, str]]

__all__ = ["ModelServer", "Recorded", "Reply", "Responder", "facts_from_messages"]


def plain_voice(update: str, _: dict[str, Any]) -> tuple[str, str]:
    """The update as it is, complete."""
    return update, "end_turn"


@dataclass(frozen=True)
class Recorded:
    """One request: its JSON, its headers (names in lower case), and the `time.monotonic()` of its arrival."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float


class ModelServer:
    """A server that speaks the Messages and the Chat Completions API, with scripted replies and a record of requests.

        from memd.config import ExtractionSettings, Secret
        from memd.extraction import open_extractor
        from memd.testing import ModelServer

        with ModelServer() as server:
            extractor = open_extractor(
                ExtractionSettings(extractor="anthropic", base_url=server.base_url, api_key=Secret("test"))
            )
            server.fail(529, headers={"retry-after": "3"})       # the first call
            server.reply({"newFacts": []}, delay_s=0.2)          # the second one
            ...                                                  # all further ones: `responder`
            assert server.calls == 2
            assert server.requests[0].body["model"] == "claude-haiku-5-5"

    Scripted replies are used in their order, each `times` times (None: until `clear`). After the last one, `responder`
    makes an update for the JSON of each request; the default is `facts_from_messages`. Thousands of calls can overlap:
    each costs a task, not a thread. `batches` plays the Message Batches API with the same replies. The key may come as
    `Authorization: Bearer` or `x-api-key`; it must be `api_key` when that is set, and must not be empty otherwise.
    """

    def __init__(
        self,
        responder: Responder = facts_from_messages,
        *,
        port: int = 0,
        delay: float = 0.0,
        api_key: str | None = None,
        keep: int = 10_000,
        refuses: Iterable[str] = (),
        voice: Voice = plain_voice,
    ) -> None:
        """`delay`: seconds before each reply, besides the delay of the reply itself. `keep`: newest requests kept.

        `refuses`: request fields that get a 400 which names them. `voice`: how the model words the responder's update:
        from its JSON and the request to a text and a stop reason.
        """
        self.responder = responder
        self.delay = delay
        self.api_key = api_key
        self.refuses = tuple(refuses)
        self.voice = voice
        self.calls = 0
        self.concurrent = 0
        self.max_concurrent = 0
        self._port = port
        self._script: deque[tuple[Reply, int | None]] = deque()
        self._requests: deque[Recorded] = deque(maxlen=keep)
        self._prefixes: set[int] = set()
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._answering = asyncio.Event()
        self._answering.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model-server", daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self.batches = BatchDesk(self._outcome)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._connected, "127.0.0.1", self._port, limit=MAX_HEAD))
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def base_url(self) -> str:
        """The address for `extraction.base_url` or ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> list[Recorded]:
        """The requests so far, oldest first."""
        with self._changed:
            return list(self._requests)

    def reply(self, update: dict[str, Any], *, times: int | None = 1, **options: Any) -> None:
        """Answer with an update; missing parts are empty. `options`: fields of Reply."""
        self.text(json.dumps({**UPDATE_PARTS, **update}, ensure_ascii=False), times=times, **options)

    def text(self, text: str, *, times: int | None = 1, **options: Any) -> None:
        """Answer with any text instead of an update."""
        self._add(Reply(text=text, **options), times)

    def fail(self, status: int, *, message: str = "scripted", times: int | None = 1, **options: Any) -> None:
        """Answer with the API's error envelope; `headers={"retry-after": "2"}` is one of the `options`."""
        self._add(Reply(status=status, text=message, **options), times)

    def raw(
        self, body: bytes, *, content_type: str = "application/json", times: int | None = 1, **options: Any
    ) -> None:
        """Answer with these bytes."""
        headers = {"content-type": content_type, **options.pop("headers", {})}
        self._add(Reply(body=body, headers=headers, **options), times)

    def answer(self, *, times: int | None = 1, **options: Any) -> None:
        """Answer with the responder's update and these fields of Reply: delay_s, stop_reason, drip, drop_after."""
        self._add(Reply(**options), times)

    def drop(self, *, after: int = 0, times: int | None = 1) -> None:
        """Close the connection after this many bytes of the body; 0: before the status line."""
        self.answer(times=times, drop_after=after)

    def clear(self) -> None:
        """Discard the scripted replies: from now on the responder answers."""
        with self._changed:
            self._script.clear()

    def hold(self) -> None:
        """Answer no request until `go_on`."""
        self._loop.call_soon_threadsafe(self._answering.clear)

    def go_on(self) -> None:
        """Answer the waiting requests and all later ones."""
        self._loop.call_soon_threadsafe(self._answering.set)

    def wait_for_calls(self, count: int, timeout_s: float = 10.0) -> None:
        """Wait until this many calls have arrived in all. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.calls >= count, timeout_s):
                raise TimeoutError(f"{self.calls} of {count} calls after {timeout_s:g} s")

    def _add(self, reply: Reply, times: int | None) -> None:
        with self._changed:
            self._script.append((reply, times))

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _stop(self) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a callback of start_server always runs in a task
        self._connections.add(task)
        try:
            while (request := await read_request(reader)) is not None and await self._serve(request, writer):
                pass
        except (ConnectionError, asyncio.CancelledError):
            return  # the client has closed the connection, or the server stops
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, request: ModelRequest, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; returns whether the connection stays open."""
        if request.path.startswith(BATCHES):
            await _send(writer, await self._batch_answer(request), None)
            return True
        if request.method == "GET":
            await _send(writer, self._description(request), None)
            return True
        reply = self._arrived(request)
        try:
            await asyncio.sleep(self.delay + reply.delay_s)
            await self._answering.wait()
            reply = self._worded(request.body, reply, DIALECTS.get(request.path, MESSAGES))
            body = reply.body or b""
            if reply.drop_after == 0:
                return False
            writer.write(head(reply.status, dict(reply.headers), len(body)))
            await _send(writer, body[: reply.drop_after], reply.drip)
            return reply.drop_after is None
        finally:
            with self._changed:
                self.concurrent -= 1

    async def _batch_answer(self, request: ModelRequest) -> bytes:
        """The response of the Message Batches API; `hold` delays it like any other, after its effect."""
        status = self._key_refused(request)
        answer = (
            (status, error_body(status, "refused"), JSON) if status else self.batches.handle(request, self.base_url)
        )
        await self._answering.wait()
        return head(answer[0], {"content-type": answer[2]}, len(answer[1])) + answer[1]

    def _outcome(self, params: dict[str, Any]) -> tuple[int, bytes]:
        """Status and body for a request in a batch: the next scripted reply, else the responder's."""
        with self._changed:
            reply = self._next()
        reply = self._worded(json.dumps(params).encode(), reply, MESSAGES)
        return reply.status, reply.body or b""

    def _arrived(self, request: ModelRequest) -> Reply:
        try:
            body = json.loads(request.body)
        except ValueError:
            body = None
        usable = body if isinstance(body, dict) else {}
        with self._changed:
            self.concurrent += 1
            self.max_concurrent = max(self.max_concurrent, self.concurrent)
            self.calls += 1
            self._requests.append(Recorded(usable, request.headers, time.monotonic()))
            self._changed.notify_all()
            status = self._refusal(request) or (0 if usable else 400)
            if status:
                return Reply(status=status, text="refused")
            refused = next((name for name in self.refuses if name in usable), None)
            return Reply(status=400, text=f"{refused}: not supported here") if refused else self._next()

    def _refusal(self, request: ModelRequest) -> int:
        """The status that refuses a request which is not a call with an accepted key; 0 for such a call."""
        return self._key_refused(request) if request.method == "POST" and request.path in DIALECTS else 404

    def _description(self, request: ModelRequest) -> bytes:
        """The response to GET /v1/models/…, which does not count as a call; `claude-` and `gpt-` models exist."""
        name = request.path.removeprefix("/v1/models/")
        status = self._key_refused(request) or (200 if name.startswith(("claude-", "gpt-")) else 404)
        model = {"type": "model", "id": name, "display_name": name, "created_at": "2026-10-07T00:00:00Z"}
        body = json.dumps(model).encode() if status == 200 else error_body(status, "refused")
        return head(status, {}, len(body)) + body

    def _key_refused(self, request: ModelRequest) -> int:
        key = request.headers.get("x-api-key") or request.headers.get("authorization", "")
        key = key.removeprefix("Bearer ")
        return 0 if key and self.api_key in (None, key) else 401

    def _next(self) -> Reply:
        if not self._script:
            return Reply()
        reply, times = self._script.popleft()
        if times is None or times > 1:
            self._script.appendleft((reply, None if times is None else times - 1))
        return reply

    def _worded(self, request: bytes, reply: Reply, dialect: Dialect) -> Reply:
        """The reply with its body in this protocol: the scripted text, or the responder's update or refusal."""
        if reply.body is not None:
            return reply
        if reply.status >= 300:
            return replace(reply, body=dialect.error(reply.status, reply.text or ""))
        try:
            return replace(reply, body=self._answer(json.loads(request), reply, dialect))
        except Refused as refused:
            return replace(reply, status=refused.status, body=dialect.error(refused.status, refused.message))

    def _answer(self, request: dict[str, Any], reply: Reply, dialect: Dialect) -> bytes:
        text, stop_reason = reply.text, reply.stop_reason
        if text is None:
            update = json.dumps({**UPDATE_PARTS, **self.responder(request)}, ensure_ascii=False)
            text, spoken = self.voice(update, request)
            stop_reason = stop_reason if stop_reason != "end_turn" else spoken
        prefix = hash(dialect.prefix(request))
        cached = prefix in self._prefixes
        self._prefixes.add(prefix)
        return dialect.reply(text, request, stop_reason, cached)


async def _send(writer: asyncio.StreamWriter, body: bytes, drip: tuple[int, float] | None) -> None:
    size, pause_s = drip or (len(body) or 1, 0.0)
    for start in range(0, len(body), size):
        writer.write(body[start : start + size])
        await writer.drain()
        if pause_s:
            await asyncio.sleep(pause_s)
