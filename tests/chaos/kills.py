"""The kills: the seed alone gives the order of the roles, the clock the moments."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from chaos.fleet import Fleet, Role
from chaos.plan import Plan

STAND_INS = (Role.PRODUCER, Role.CHILD, Role.SCHEDULER, Role.SERVER, Role.POSTGRES, Role.WORKER)
"""Roles to hit when the role in turn has no process; roles that start cheaply come first."""

BUSY_ONLY = frozenset({Role.PRODUCER, Role.CHILD})
"""Roles that have processes only while contexts are pushed."""


def order(plan: Plan, rng: random.Random) -> list[Role]:
    """The roles in the order of their kills: rounds that hold each role by its share, each shuffled anew."""
    round_ = [Role(role) for role, share in plan.shares for _ in range(share)]
    rounds = -(-plan.kills // len(round_))
    return [role for _ in range(rounds) for role in rng.sample(round_, len(round_))][: plan.kills]


class Killer:
    """Kills one process every `kill_every_s`, until all planned kills are done and each role had its least number.

    When a role has no process at its turn, another role is hit instead: a process that is killed as soon as it appears
    would never do any work. The last kills are reserved for roles that would otherwise miss their least number; if
    these do not suffice, more are added.
    """

    def __init__(self, plan: Plan, fleet: Fleet, start: float) -> None:
        """`start`: the monotonic moment of the first kill."""
        self._plan = plan
        self._fleet = fleet
        self._rng = random.Random(plan.seed)  # noqa: S311  (a repeatable choice of victims)
        self._order = order(plan, self._rng)
        self._next = start
        self.ended = start
        """The monotonic moment of the last kill so far."""

    @property
    def finished(self) -> bool:
        """Whether no kill is left that could still be made."""
        return not self._order and not self._short()

    def tick(self) -> None:
        """Kill when it is time. When no role has a process, this kill is left out."""
        now = time.monotonic()
        if self.finished or now < self._next:
            return
        self._next = max(self._next + self._plan.kill_every_s, now)
        if any(self._fleet.kill(role, self._rng) for role in self._targets()):
            self._order = self._order[1:]
            self.ended = now

    def _targets(self) -> Sequence[Role]:
        """The roles to try now, the preferred one first."""
        short = self._short()
        if len(short) >= len(self._order):
            return short
        return (self._order[0], *STAND_INS)

    def _short(self) -> list[Role]:
        """The roles that miss kills, once for each missing kill, without the roles that will have no more processes."""
        return [
            role
            for role in map(Role, dict(self._plan.shares))
            if not (role in BUSY_ONLY and self._fleet.pushed)
            for _ in range(self._plan.least_kills - self._fleet.tally.kills[role])
        ]
