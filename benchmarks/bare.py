"""The bare SDK loop: the given number of concurrent calls and nothing else. No drain can be faster.

`python -m benchmarks.bare ADDRESS COUNT CONCURRENCY` prints one line of JSON: wall and CPU seconds, memory in MB,
and the calls that succeeded.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from datetime import date

import anthropic
import httpx2

from benchmarks.load import conversation
from benchmarks.timing import memory_mb
from memd.config import ExtractionSettings
from memd.context import Bucket, Message
from memd.extraction.anthropic import request_options
from memd.extraction.prompt import build
from memd.extraction.protocol import Request
from memd.memory.document import empty_document


async def _loop(address: str, count: int, concurrency: int) -> dict[str, float]:
    options = request_options(ExtractionSettings())
    said = tuple(Message(each["role"], each["content"]) for each in conversation(1)["messages"])
    prompt = build(Request(empty_document(Bucket("user")), said), date(2026, 11, 1))
    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    client = anthropic.AsyncAnthropic(
        api_key="bench", base_url=address, max_retries=0, http_client=anthropic.DefaultAsyncHttpxClient(limits=limits)
    )
    left, succeeded = count, 0

    async def caller() -> None:
        nonlocal left, succeeded
        while left > 0:
            left -= 1
            reply = await client.messages.create(**options, messages=[{"role": "user", "content": prompt}])
            succeeded += reply.stop_reason == "end_turn" and bool(reply.content)

    await client.messages.create(
        **options, messages=[{"role": "user", "content": prompt}]
    )  # lazy imports, a connection
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(caller() for _ in range(concurrency)))
    wall = time.perf_counter() - started
    used = time.process_time() - cpu
    rss, _ = memory_mb(os.getpid())
    await client.close()
    return {"wall_s": wall, "cpu_s": used, "rss_mb": rss, "succeeded": succeeded}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_loop(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
