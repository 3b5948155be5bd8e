"""pydocket with a task that asks the model by memd's own request and keeps the fact: what a queue alone leaves to do.

`python pydocket_extraction_peer.py CONVERSATIONS IN_FLIGHT WARM`: CONVERSATIONS is a file, WARM of them come first and
are not timed. BENCH_URL names the server, BENCH_MODEL the model, BENCH_OPTIONS has the part that all requests share.
Runs in its own environment and prints one line of JSON.
"""

import asyncio
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

import anthropic
from docket import Docket, Worker

OPTIONS = json.loads(os.environ["BENCH_OPTIONS"])
client = anthropic.AsyncAnthropic(api_key="bench", base_url=os.environ["BENCH_MODEL"], max_retries=0)
kept: dict[str, list[str]] = {}
failures: list[str] = []


async def extract(user_id: str, prompt: str) -> None:
    """One call to the model; its facts are kept in this process."""
    try:
        reply = await client.messages.create(**OPTIONS, messages=[{"role": "user", "content": prompt}])
        facts = json.loads(reply.content[0].text)["newFacts"]
    except Exception as error:
        failures.append(f"{type(error).__name__}: {error}"[:200])
        raise
    kept.setdefault(user_id, []).extend(fact["content"] for fact in facts)


async def drain(docket: Docket, conversations: list[dict], in_flight: int) -> tuple[float, float]:
    """Add a task for each conversation and run all; wall and CPU seconds from the first task on."""
    for one in conversations:
        await docket.add(extract)(one["user_id"], one["prompt"])
    async with Worker(docket, concurrency=in_flight) as worker:
        started, cpu = time.perf_counter(), time.process_time()
        await worker.run_until_finished()
        return time.perf_counter() - started, time.process_time() - cpu


async def main(conversations: list[dict], in_flight: int, warm: int) -> None:
    """Extract from the conversations, then say what was kept."""
    async with Docket(name="bench-extraction", url=os.environ["BENCH_URL"]) as docket:
        docket.register(extract)
        await drain(docket, conversations[:warm], in_flight)
        wall, used = await drain(docket, conversations[warm:], in_flight)
    found = {"wall_s": wall, "cpu_s": used, "failures": failures, "version": version("pydocket"), "kept": kept}
    print(json.dumps(found))


asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), int(sys.argv[2]), int(sys.argv[3])))
