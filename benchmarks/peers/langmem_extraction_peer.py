"""langmem's own extraction: its memory store manager, awaited for as many conversations at once as are in flight.

`python langmem_extraction_peer.py CONVERSATIONS IN_FLIGHT WARM`: CONVERSATIONS is a file, WARM of them come first and
are not timed. As its documentation sets it up: a chat model, a namespace for each user, an InMemoryStore, which keeps
nothing on disk. The model is at BENCH_MODEL. Runs in its own environment and prints one line of JSON.
"""

import asyncio
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

from langchain.chat_models import init_chat_model
from langgraph.store.memory import InMemoryStore
from langmem import create_memory_store_manager


async def main(conversations: list[dict], in_flight: int, warm: int) -> None:
    """Extract from the conversations, then read what was kept."""
    address = os.environ["BENCH_MODEL"]
    model = init_chat_model("anthropic:claude-haiku-5-5", base_url=address, api_key="bench", max_retries=0)
    store = InMemoryStore()
    manager = create_memory_store_manager(model, namespace=("memories", "{langgraph_user_id}"), store=store)
    room = asyncio.Semaphore(in_flight)
    failures: list[str] = []

    async def extract(conversation: dict) -> None:
        messages = [{"role": one["role"], "content": one["content"]} for one in conversation["messages"]]
        config = {"configurable": {"langgraph_user_id": conversation["user_id"]}}
        async with room:
            try:
                await manager.ainvoke({"messages": messages}, config=config)
            except Exception as error:  # noqa: BLE001  (each is counted; the figures are not printed then)
                failures.append(f"{type(error).__name__}: {error}"[:200])

    await asyncio.gather(*map(extract, conversations[:warm]))
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(extract, conversations[warm:]))
    wall, used = time.perf_counter() - started, time.process_time() - cpu
    kept = {
        one["user_id"]: [row.value["content"]["content"] for row in store.search(("memories", one["user_id"]))]
        for one in conversations
    }
    found = {"wall_s": wall, "cpu_s": used, "failures": failures, "version": version("langmem"), "kept": kept}
    print(json.dumps(found))


asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), int(sys.argv[2]), int(sys.argv[3])))
