"""An HTTP model as a process: prints its address and replies to each call after a delay.

`python -m benchmarks.model 2 --host 127.0.0.1 --limit 80`: 2 s for each reply, at most 80 requests at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from contextlib import AbstractAsyncContextManager, nullcontext

from memd.testing.dialects import message_body
from memd.testing.http import head, read_request
from memd.testing.replies import UPDATE_PARTS

MAX_HEAD = 65_536
FACT = {
    "category": "context",
    "confidence": 0.9,
    "scope": "user",
    "durability": "durable",
    "authority": "descriptive",
}


class Model:
    """Replies with one fact, which quotes the first words of the first new message: the cheapest valid reply."""

    def __init__(self, delay_s: float, limit: int) -> None:
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
            async with self._room:
                await asyncio.sleep(self._delay_s)
            body = answer(request.body)
            writer.write(head(200, {}, len(body)) + body)
        writer.close()


def answer(request: bytes) -> bytes:
    """The reply to a request: about the first new message of memd's prompt, or the first words of any other prompt."""
    prompt = json.loads(request)["messages"][-1]["content"]
    start, end = 0, len(prompt)
    if "\n<messages>\n" in prompt:
        start = prompt.index(">", prompt.rindex("\n<messages>\n") + 12) + 1
        end = prompt.index("</m>", start)
    return reply(prompt[start : min(start + 60, end)].strip())


def reply(quote: str, content: str = "") -> bytes:
    """A reply with one new fact, whose content is its quote if no other one is given."""
    fact = {"content": content or quote, "evidence": [{"message": 0, "quote": quote}], **FACT}
    return message_body(json.dumps({**UPDATE_PARTS, "newFacts": [fact]}), {}, "end_turn", cached=True)


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
