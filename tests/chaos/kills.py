"""The kills: which role is hit when. The order comes from the seed alone; the moments from the clock."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from chaos.fleet import Fleet, Role
from chaos.plan import Plan


def order(plan: Plan, rng: random.Random) -> list[Role]:
    """The roles in the order they are to be hit: round after round, each in its share, every round shuffled anew."""
    round_ = [Role(role) for role, share in plan.shares for _ in range(share)]
    rounds = -(-plan.kills // len(round_))
    return [role for _ in range(rounds) for role in rng.sample(round_, len(round_))][: plan.kills]


class Killer:
    """Kills one process every `kill_every_s`. A role with no process just now is kept for the next moment."""

    def __init__(self, plan: Plan, fleet: Fleet, start: float) -> None:
        """`start`: the monotonic moment of the first kill."""
        self._plan = plan
        self._fleet = fleet
        self._rng = random.Random(plan.seed)  # noqa: S311  (a repeatable choice of victims)
        self._waiting = order(plan, self._rng)
        self._start = start
        self._done = 0
        self.ended = start

    @property
    def finished(self) -> bool:
        """Whether all kills are done, or nobody is left whom the rest are meant for."""
        return not self._waiting

    def tick(self) -> None:
        """Kill when it is time."""
        if self.finished or time.monotonic() < self._start + self._done * self._plan.kill_every_s:
            return
        for index in self._candidates():
            if self._fleet.kill(self._waiting[index], self._rng):
                del self._waiting[index]
                self._done += 1
                self.ended = time.monotonic()
                return
        if self._fleet.pushed and set(self._waiting) == {Role.PRODUCER}:
            self._waiting.clear()

    def _candidates(self) -> Iterator[int]:
        """The first place of each role that still waits, in order."""
        seen: set[Role] = set()
        for index, role in enumerate(self._waiting):
            if role not in seen:
                seen.add(role)
                yield index
