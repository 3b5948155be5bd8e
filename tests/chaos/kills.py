"""The kills: which role is hit when. The order comes from the seed alone; the moments from the clock."""

from __future__ import annotations

import random
import time

from chaos.fleet import Fleet, Role
from chaos.plan import Plan

STANDING_IN = (Role.PRODUCER, Role.CHILD, Role.SCHEDULER, Role.SERVER, Role.WORKER)
"""Who is hit when the one whose turn it is is not there; those that are cheap to start come first."""


def order(plan: Plan, rng: random.Random) -> list[Role]:
    """The roles in the order they are to be hit: round after round, each in its share, every round shuffled anew."""
    round_ = [Role(role) for role, share in plan.shares for _ in range(share)]
    rounds = -(-plan.kills // len(round_))
    return [role for _ in range(rounds) for role in rng.sample(round_, len(round_))][: plan.kills]


class Killer:
    """Kills one process every `kill_every_s`.

    A role with no process at that moment is not lain in wait for: what is killed as soon as it is there never gets to
    do anything. Another one stands in.
    """

    def __init__(self, plan: Plan, fleet: Fleet, start: float) -> None:
        """`start`: the monotonic moment of the first kill."""
        self._every_s = plan.kill_every_s
        self._fleet = fleet
        self._rng = random.Random(plan.seed)  # noqa: S311  (a repeatable choice of victims)
        self._order = order(plan, self._rng)
        self._next = start
        self.ended = start
        """The monotonic moment of the last kill so far."""

    @property
    def finished(self) -> bool:
        """Whether all kills are done."""
        return not self._order

    def tick(self) -> None:
        """Kill when it is time. A moment at which nobody could be hit is let pass."""
        now = time.monotonic()
        if self.finished or now < self._next:
            return
        self._next = max(self._next + self._every_s, now)
        if any(self._fleet.kill(role, self._rng) for role in (self._order[0], *STANDING_IN)):
            self._order.pop(0)
            self.ended = now
