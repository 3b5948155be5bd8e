"""The model, as a process: one fact for each new user message; it records requests that mix two buckets."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Any

from chaos.plan import read_plan
from memd.testing import ModelServer, facts_from_messages

MIXED = "mixed-prompts.log"
"""The file with a line for each request that held messages of more than one bucket."""

_PROJECTS = re.compile(r"<project n=.*?</project>", re.S)
_MARKED = re.compile(r'<m i="(\d+)" role="user"[^>]* project="\d+"')
_WHOSE = re.compile(r"item \d+ of (\S+ with \S+) in ")


def for_projects(update: dict[str, Any], prompt: str) -> dict[str, Any]:
    """The update with the facts of marked messages labelled as the project's."""
    marked = {int(number) for number in _MARKED.findall(prompt)}
    for fact in update["newFacts"]:
        if fact["evidence"][0]["message"] in marked:
            fact["scope"] = "project"
    return update


def main() -> None:
    """`python -m chaos.model FOLDER`; the address is the first line of the output."""
    folder = Path(sys.argv[1])
    mixed = folder / MIXED

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        # The facts of projects, which are other members' too, stand before the user's own messages.
        prompt = request["messages"][-1]["content"]
        whose = set(_WHOSE.findall(_PROJECTS.sub("", prompt)))
        if len(whose) > 1:
            with mixed.open("a", encoding="utf-8") as file:
                file.write(f"{sorted(whose)}\n")
        return for_projects(facts_from_messages(request), prompt)

    stop = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    with ModelServer(answer, delay=read_plan(folder).model_delay_s, keep=10) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        signal.sigwait(stop)


if __name__ == "__main__":
    main()
