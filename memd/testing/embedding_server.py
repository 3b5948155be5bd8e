"""A real HTTP server on 127.0.0.1 that plays the embedder, in threads of its own."""

from __future__ import annotations

import json
import math
import sys
import threading
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Embed = Callable[[str], Sequence[float]]

DIMENSIONS = 64


def by_letters(text: str) -> list[float]:
    """A vector by the pairs of letters of a text: texts that look alike are near. Any language."""
    numbers = [0.0] * DIMENSIONS
    for pair in zip(text.casefold(), text.casefold()[1:], strict=False):
        numbers[zlib.crc32("".join(pair).encode(errors="replace")) % DIMENSIONS] += 1.0
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers] if any(numbers) else [1.0, *numbers[1:]]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who gives up waiting is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class EmbeddingServer:
    """A server that speaks OpenAI's embeddings API; `embed` makes each vector.

        from memd.testing import EmbeddingServer

        with EmbeddingServer() as server:
            ...                       # vectors.url: server.base_url, vectors.model: any
            server.fail(503)          # the next request
            assert server.texts       # everything that it was sent

    `hold()` keeps all answers back until `release()`. `refuses`: texts that get a 400.
    """

    def __init__(self, embed: Embed = by_letters) -> None:
        self.embed = embed
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.refuses: set[str] = set()
        self._failures: deque[tuple[int, bytes]] = deque()
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, name="embedding-server", daemon=True)

    def __enter__(self) -> EmbeddingServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        """The address for `vectors.url`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def texts(self) -> list[str]:
        """All texts so far, in the order of their requests."""
        with self._lock:
            return [text for request in self.requests for text in request["input"]]

    def fail(self, status: int, body: bytes = b"{}", times: int = 1) -> None:
        """Answer the next requests with this status (200: with a body that is no answer)."""
        with self._lock:
            self._failures.extend([(status, body)] * times)

    def recover(self) -> None:
        """Fail no more."""
        with self._lock:
            self._failures.clear()

    def hold(self) -> None:
        """Keep answers back."""
        self._open.clear()

    def release(self) -> None:
        """Give the answers that are kept back, and all further ones."""
        self._open.set()

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        request = json.loads(body)
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            failure = self._failures.popleft() if self._failures else None
        self._open.wait()
        if failure is not None:
            return failure
        if path != "/v1/embeddings":
            return 404, b"{}"
        if self.refuses.intersection(request["input"]):
            return 400, b'{"error": {"message": "scripted"}}'
        shorter = request.get("dimensions")
        rows = [
            {"object": "embedding", "index": place, "embedding": list(self.embed(text))[:shorter]}
            for place, text in enumerate(request["input"])
        ]
        return 200, json.dumps({"object": "list", "model": request["model"], "data": rows}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, body = answer(self.path, headers, self.rfile.read(int(headers.get("content-length", "0"))))
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is printed."""

        return Handler
