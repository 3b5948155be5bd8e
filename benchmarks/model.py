"""An HTTP model as a process: prints its address, answers each call after a delay. `python -m benchmarks.model 2`"""

from __future__ import annotations

import signal
import sys
from typing import Any

from memd.testing import ModelServer

FACT = {
    "category": "context",
    "confidence": 0.9,
    "scope": "user",
    "durability": "durable",
    "authority": "descriptive",
}


def one_fact(request: dict[str, Any]) -> dict[str, Any]:
    """One fact that quotes the first words of the first new message; as cheap to make as an answer can be."""
    prompt = request["messages"][-1]["content"]
    start = prompt.index(">", prompt.rindex("\n<messages>\n") + 12) + 1
    quote = prompt[start : min(start + 60, prompt.index("</m>", start))].strip()
    return {"newFacts": [{"content": quote, "evidence": [{"message": 0, "quote": quote}], **FACT}]}


def main() -> None:
    """Serve until SIGTERM."""
    with ModelServer(one_fact, delay=float(sys.argv[1]), keep=10) as server:
        print(server.base_url, flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
