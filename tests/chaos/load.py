"""The load: numbered contexts, from which the right documents at the end of a run can be computed.

One agent follows the other; within an agent the conversations take turns, one context each. The same thread and
message ids occur under every user, so that a mix-up of two users shows. The producers repeat themselves as real ones
do: every fifth push repeats the turn before it, and after every twentieth push an older turn is sent again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.plan import Plan
from memd.context import DEFAULT_AGENT, Bucket

LINE_BYTES = 9
"""A line of a producer's log: the number of an acknowledged context in eight digits."""

_OWNED = re.compile(r"item (\d+) of (\S+) with (\S+) in (\S+)\.$")


@dataclass(frozen=True, slots=True)
class Turn:
    """One context: its number in the whole run, its bucket and its thread."""

    number: int
    bucket: Bucket
    thread: str
    place: int
    """Its place in its thread, from 0."""

    @property
    def statement(self) -> str:
        """The user's sentence, which becomes a fact word by word."""
        agent = self.bucket.agent_name or "nobody"
        return f"The user owns item {self.number} of {self.bucket.user_id} with {agent} in {self.thread}."

    @property
    def messages(self) -> list[dict[str, str]]:
        """The user's message with an id, and a reply without one."""
        return [
            {"role": "user", "content": self.statement, "id": f"m{self.place}"},
            {"role": "assistant", "content": f"You own item {self.number}, as I see."},
        ]


def turn(plan: Plan, number: int) -> Turn:
    """Context `number`."""
    agent, within = divmod(number, -(-plan.contexts // plan.agents))
    place, conversation = divmod(within, plan.conversations)
    user, thread = divmod(conversation, plan.threads)
    return Turn(number, Bucket(f"user-{user}", _agent(plan, agent)), f"thread-{thread}", place)


def _agent(plan: Plan, index: int) -> str:
    return f"agent-{index}" if plan.agents > 1 else DEFAULT_AGENT


def pace(plan: Plan) -> Iterator[dict[str, Any]]:
    """The pushes whose drain shows the pace of the machine, in the format of the raw door.

    Each of these users has as many threads and turns as one of the run, so that they cost as much.
    """
    for number in range(plan.pace_users * plan.threads * plan.turns):
        place, conversation = divmod(number, plan.pace_users * plan.threads)
        user, thread = divmod(conversation, plan.threads)
        this = Turn(number, Bucket(f"pace-{user}", _agent(plan, 0)), f"thread-{thread}", place)
        yield _body(this, this.messages)


def mark(plan: Plan, number: int) -> str:
    """The project that a context is marked for; "" for most.

    Each round of the conversations has others, but none of a push that repeats the turn before it.
    """
    if number % plan.marked_every != (3 + 5 * turn(plan, number).place) % plan.marked_every:
        return ""
    return project(number // plan.marked_every % plan.projects)


def project(index: int) -> str:
    """The id of a project."""
    return f"project-{index}"


def buckets(plan: Plan) -> list[Bucket]:
    """All buckets of a plan."""
    return [Bucket(f"user-{user}", _agent(plan, agent)) for user in range(plan.users) for agent in range(plan.agents)]


def owner(statement: str) -> tuple[int, str, str, str] | None:
    """Number, user, agent (`nobody`: no agent) and thread that a statement names; None for any other sentence."""
    found = _OWNED.search(statement)
    return (int(found[1]), found[2], found[3], found[4]) if found else None


def push(plan: Plan, number: int) -> dict[str, Any]:
    """The push of a context, in the format of the raw door."""
    this = turn(plan, number)
    messages = this.messages
    if number % 5 == 0 and this.place > 0:
        messages = turn(plan, number - plan.conversations).messages + messages
    body = _body(this, messages)
    if marked := mark(plan, number):
        body["project_id"] = marked
    return body


def _body(this: Turn, messages: list[dict[str, str]]) -> dict[str, Any]:
    body: dict[str, Any] = {"thread_id": this.thread, "user_id": this.bucket.user_id, "messages": messages}
    if this.bucket.agent_name:
        body["agent_name"] = this.bucket.agent_name
    return body


def repeated(plan: Plan, number: int) -> int | None:
    """The older context that is sent again after this one, or None."""
    return number - 2 * plan.conversations if number % 20 == 7 and turn(plan, number).place >= 2 else None


def share(plan: Plan, producer: int) -> range:
    """The contexts of one producer, in order. A thread has one producer, since the run checks its order."""
    return range(producer, plan.contexts, plan.producers)


def log_file(folder: Path, producer: int) -> Path:
    """The file in which a producer records its acknowledged contexts."""
    return folder / f"acknowledged-{producer}.log"


def acknowledged(folder: Path, plan: Plan) -> int:
    """How many contexts were acknowledged so far."""
    files = (log_file(folder, producer) for producer in range(plan.producers))
    return sum(file.stat().st_size // LINE_BYTES for file in files if file.exists())


def accepted(folder: Path, plan: Plan) -> list[int]:
    """The numbers of the acknowledged contexts, producer by producer."""
    files = (log_file(folder, producer) for producer in range(plan.producers))
    return [int(line) for file in files if file.exists() for line in file.read_bytes().splitlines()]
