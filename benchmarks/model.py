"""An HTTP model as a process: prints its address and replies to each call after a delay.

`python -m benchmarks.model 2 --host 127.0.0.1 --limit 80`: 2 s for each reply, at most 80 requests at once.

Each prompt gets one fact in the form that it asks for (`played`). Besides the Messages API the process plays an
embedder without a delay, `POST /v1/embeddings`, and `GET /tally` returns what it was asked so far.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.played import answer
from memd.context import estimate_tokens
from memd.testing.embedding_server import by_letters
from memd.testing.http import ModelRequest, head, read_request

MAX_HEAD = 65_536


@dataclass
class Tally:
    """What was asked so far: calls of the model, estimated tokens of their prompts, calls of the embedder.

    `cached`: the tokens before a mark of the Messages API that tells the endpoint to cache.
    """

    calls: int = 0
    tokens: int = 0
    cached: int = 0
    embeddings: int = 0


class Model:
    """Replies with one fact, which quotes the first words of the first new message: the cheapest valid reply."""

    tally: Tally
    """Of all requests that have arrived."""

    def __init__(self, delay_s: float, limit: int) -> None:
        self.tally = Tally()
        self._delay_s = delay_s
        self._room: AbstractAsyncContextManager[None] = asyncio.Semaphore(limit) if limit else nullcontext()

    async def serve(self, host: str) -> None:
        """Serve until SIGTERM."""
        server = await asyncio.start_server(self._connected, host, 0, limit=MAX_HEAD, backlog=1_024)
        port = server.sockets[0].getsockname()[1]
        print(f"http://{host}:{port}", flush=True)
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        await ended.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            body = await self._body(request)
            writer.write(head(200, {}, len(body)) + body)
        writer.close()

    async def _body(self, request: ModelRequest) -> bytes:
        if request.path == "/tally":
            return json.dumps(asdict(self.tally)).encode()
        if request.path == "/v1/embeddings":
            self.tally.embeddings += 1
            return vectors(request.body)
        self.tally.calls += 1
        prefix, rest, marked = prompt_tokens(request.body)
        self.tally.tokens += prefix + rest
        self.tally.cached += prefix if marked else 0
        async with self._room:
            await asyncio.sleep(self._delay_s)
        return answer(request.body)


def prompt_tokens(request: bytes) -> tuple[int, int, bool]:
    """The estimated tokens of a request's prefix (tools, schema, system texts) and of its messages.

    The third value: whether the prefix is marked to be cached.
    """
    body = json.loads(request)
    forms = [body[name] for name in ("tools", "output_config") if name in body]
    system = _blocks(body.get("system", ""))
    prefix = [json.dumps(form, separators=(",", ":"), ensure_ascii=False) for form in forms] + _texts(system)
    rest = [text for message in body["messages"] for text in _texts(_blocks(message["content"]))]
    return sum(map(estimate_tokens, prefix)), sum(map(estimate_tokens, rest)), any("cache_control" in b for b in system)


def _texts(blocks: list[dict[str, Any]]) -> list[str]:
    return [block.get("text") or json.dumps(block) for block in blocks]


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"text": content}] if isinstance(content, str) else content


def vectors(request: bytes) -> bytes:
    """The embedder's reply: texts that look alike are near."""
    body = json.loads(request)
    rows = [
        {"object": "embedding", "index": place, "embedding": by_letters(text)}
        for place, text in enumerate(body["input"])
    ]
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    return json.dumps({"object": "list", "model": body["model"], "data": rows, "usage": usage}).encode()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=__doc__)
    parser.add_argument("delay", type=float, help="seconds before each reply")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--limit", type=int, default=0, help="requests at once; 0: any number")
    options = parser.parse_args()
    asyncio.run(Model(options.delay, options.limit).serve(options.host))


if __name__ == "__main__":
    main()
