"""langmem's ReflectionExecutor, with a reflector that waits as for a model: `python langmem_peer.py COUNT DELAY LATER`.

Its documentation passes a memory manager; here only the executor is measured: its order, rate and lateness.
Runs in its own environment and prints one line of JSON.
"""

import json
import sys
import time

from langchain_core.runnables import RunnableLambda
from langgraph.store.memory import InMemoryStore
from langmem import ReflectionExecutor


class Reflector:
    """The part of a memory manager that the executor uses: a namespace and `invoke`."""

    namespace = ("memories",)

    def __init__(self, delay_s: float) -> None:
        self.ran: dict[int, float] = {}
        self._wait = RunnableLambda(lambda number: (self.ran.setdefault(number, time.time()), time.sleep(delay_s)))

    def invoke(self, payload: dict, config: dict | None = None, **_: object) -> None:
        """One reflection."""
        self._wait.invoke(payload["number"])


def main() -> None:
    """Reflections a second, and the lateness of the first of each in seconds."""
    count, delay, later = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    reflector = Reflector(delay)
    executor = ReflectionExecutor(reflector, store=InMemoryStore())
    started = time.time()
    due = {}
    futures = []
    for number in range(count):
        due[number] = time.time() + later
        config = {"configurable": {"thread_id": f"t{number}"}}
        futures.append(executor.submit({"number": number}, config=config, after_seconds=later))
        time.sleep(0.001)  # equal due times end its thread with a TypeError
    for future in futures:
        future.result(timeout=60 + count * delay)
    per_s = count / (time.time() - started - later)
    executor.shutdown(wait=False)
    lateness = [reflector.ran[n] - due[n] for n in range(count) if n in reflector.ran]
    print(json.dumps({"per_s": per_s, "lateness": lateness, "succeeded": len(lateness)}))


main()
