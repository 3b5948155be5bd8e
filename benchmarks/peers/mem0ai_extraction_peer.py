"""mem0's own extraction: `Memory.add` with `infer=True`, by as many threads as conversations are to be in flight.

`python mem0ai_extraction_peer.py CONVERSATIONS IN_FLIGHT WARM FOLDER`: CONVERSATIONS is a file, WARM of them come first
and are not timed. As its documentation sets it up: the embedded Qdrant and the SQLite history, here in FOLDER. The
model and the embedder are at BENCH_MODEL. The embedded Qdrant fails with an IndexError when one thread searches while
another inserts, so its calls take turns. Runs in its own environment and prints one line of JSON.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

os.environ["MEM0_TELEMETRY"] = "false"  # nothing is to leave this machine
os.environ["MEM0_DIR"] = sys.argv[4]

from mem0 import Memory  # (it reads the environment when it is imported)


def opened(folder: str) -> Memory:
    """mem0 with the played model and embedder."""
    address = os.environ["BENCH_MODEL"]
    llm = {"model": "claude-haiku-5-5", "api_key": "bench", "anthropic_base_url": address}
    llm["enable_sampling_parameters"] = False  # anthropic 2 takes no temperature
    embedder = {"model": "bench", "api_key": "bench", "openai_base_url": f"{address}/v1"}
    vectors = {"collection_name": "bench", "path": f"{folder}/qdrant", "embedding_model_dims": 64, "on_disk": True}
    return Memory.from_config(
        {
            "llm": {"provider": "anthropic", "config": llm},
            "embedder": {"provider": "openai", "config": embedder},
            "vector_store": {"provider": "qdrant", "config": vectors},
            "history_db_path": f"{folder}/history.db",
        }
    )


def in_turn(store: object) -> None:
    """Let the calls of a vector store take turns."""
    lock = threading.Lock()

    def guarded(method: Callable) -> Callable:
        def call(*words: object, **named: object) -> object:
            with lock:
                return method(*words, **named)

        return call

    for name in ("search", "insert"):
        setattr(store, name, guarded(getattr(store, name)))


def kept(memory: Memory, users: list[str]) -> dict[str, list[str]]:
    """The texts of all memories by user."""
    return {
        user: [row["memory"] for row in memory.get_all(filters={"user_id": user}, top_k=100)["results"]]
        for user in users
    }


def main() -> None:
    """Add the conversations, then read what was kept."""
    conversations = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    in_flight, warm = int(sys.argv[2]), int(sys.argv[3])
    memory = opened(sys.argv[4])
    in_turn(memory.vector_store)
    failures: list[str] = []

    def add(conversation: dict) -> None:
        messages = [{"role": one["role"], "content": one["content"]} for one in conversation["messages"]]
        try:
            memory.add(messages, user_id=conversation["user_id"], infer=True)
        except Exception as error:  # noqa: BLE001  (each is counted; the figures are not printed then)
            failures.append(f"{type(error).__name__}: {error}"[:200])

    with ThreadPoolExecutor(in_flight) as threads:
        list(threads.map(add, conversations[:warm]))
        started, cpu = time.perf_counter(), time.process_time()
        list(threads.map(add, conversations[warm:]))
        wall, used = time.perf_counter() - started, time.process_time() - cpu
    found = {"wall_s": wall, "cpu_s": used, "failures": failures, "version": version("mem0ai")}
    print(json.dumps({**found, "kept": kept(memory, [one["user_id"] for one in conversations])}))
    memory.close()


main()
