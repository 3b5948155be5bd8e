"""The plan of one run: its load, producers, kills and settings. All processes of the run read it from a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memd.config import Settings

FILE = "plan.json"
DATA = "data"
"""memd's data folder, inside the folder of the run."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All parameters of a run; times in seconds. The presets below are named after their make targets."""

    seed: int
    contexts: int = 10_000
    users: int = 40
    agents: int = 1
    """Agents of a user: each is a bucket of its own."""

    threads: int = 5
    """Threads of a bucket."""

    marked_every: int = 40
    """One context in so many is marked for a project, whose members are all users."""

    producers: int = 8
    """Even ones push by RPUSH, odd ones by `Memd.push`."""

    schedulers: int = 2
    workers: int = 2
    pushing_s: float = 42.0
    """The pushes are spread evenly over this time, from the first one on."""

    calm_s: float = 2.0
    """Time before the first kill; the descriptors open at its end are the baseline."""

    kill_every_s: float = 0.3
    kills: int = 134
    shares: tuple[tuple[str, int], ...] = (
        ("server", 2),
        ("child", 10),
        ("producer", 5),
        ("scheduler", 2),
        ("worker", 1),  # starting one takes two seconds of a core
    )
    """The share of each role in the kills."""

    least_kills: int = 5
    """Least number of kills for each role in `shares`; if necessary, more follow the planned kills."""

    lease_s: float = 2.0
    quiet_s: float = 0.2
    appendfsync: str = "always"
    """With everysec the server replies although a slow fsync holds its writes back; a kill then loses up to two seconds
    of acknowledged writes."""

    concurrency: int = 16
    model_delay_s: float = 0.02
    pace_users: int = 4
    """Users besides those of the run, with as many contexts each. They are drained before the first kill: the pace of
    the same machine, fleet and store. 0: no pace is measured, and the last drain has `recover_s` alone."""

    pace_times: float = 2.0
    """After the last kill and the last push a context may take so many times as long as at that pace."""

    recover_s: float = 10.0
    """Seconds on free cores that the drain may take beyond that: for leases, pauses and parts that start again."""

    patience_s: float = 180.0
    """A run that has not drained by then is ended. The time allowed grows with the load, this does not."""

    watch_pause_s: float = 0.02
    """Pause of the watcher between two looks at all documents."""

    socket: str = ""
    """The server's socket; filled in by the run."""

    database: str = ""
    """The address of the store's database; empty for files. Filled in by the run."""

    begin: float = 0.0
    """`time.monotonic()` of the first push; filled in by the run."""

    @property
    def projects(self) -> int:
        """Projects, of at most some 400 facts each."""
        return max(2, -(-self.contexts // (400 * self.marked_every)))

    @property
    def turns(self) -> int:
        """Contexts of one thread of one bucket."""
        return self.contexts // self.agents // self.conversations

    @property
    def conversations(self) -> int:
        """Threads of one agent over all users: so many run at the same time."""
        return self.users * self.threads

    def settings(self, folder: Path, model_url: str) -> Settings:
        """memd's settings for the run in this folder."""
        from support import make_settings  # producers read the plan too, and start faster without it

        data_dir = folder / DATA
        data_dir.mkdir(mode=0o700, exist_ok=True)
        return make_settings(
            data_dir,
            None,
            server__appendfsync=self.appendfsync,
            scheduler__quiet_s=self.quiet_s,
            scheduler__max_wait_s=2,
            drain__workers=self.workers,
            drain__concurrency=self.concurrency,
            drain__lease_s=self.lease_s,
            drain__max_attempts=100,
            drain__linger_s=0.5,
            apply__max_facts=500,
            extraction__extractor="anthropic",
            extraction__base_url=model_url,
            extraction__api_key="chaos-key",
        )

    def check(self) -> None:
        """Raise ValueError for a plan whose result could not be computed exactly."""
        if self.conversations % self.producers:
            raise ValueError("each thread needs one producer: users * threads must divide by producers")
        if self.contexts // self.agents % self.producers or self.contexts % self.agents:
            raise ValueError("each thread needs one producer: the contexts of an agent must divide by producers")
        if self.contexts > 500 * self.users * self.agents:
            raise ValueError("a memory holds at most 500 facts: more agents are needed")

    def write(self, folder: Path) -> None:
        """Write the plan to the file that the run's processes read."""
        (folder / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")


def read_plan(folder: Path) -> Plan:
    """The plan of the run in this folder."""
    fields = json.loads((folder / FILE).read_text(encoding="utf-8"))
    fields["shares"] = tuple((role, share) for role, share in fields["shares"])
    return Plan(**fields)


def gate(seed: int) -> Plan:
    """`make chaos`: under 90 s."""
    return Plan(seed)


def half(seed: int) -> Plan:
    """Within `make test`: half of `make chaos`."""
    return Plan(seed, contexts=5_000, pushing_s=21, kills=67, least_kills=3)


def long(seed: int) -> Plan:
    """`make chaos-long`: half an hour, 250,000 contexts."""
    return Plan(
        seed,
        contexts=250_000,
        agents=25,
        pushing_s=1_750,
        kills=5_700,
        patience_s=60,
        watch_pause_s=0.2,
        least_kills=100,
    )


def small(seed: int) -> Plan:
    """A few seconds, for the ordinary tests."""
    return Plan(
        seed,
        contexts=300,
        users=10,
        threads=2,
        producers=2,
        schedulers=1,
        pushing_s=5,
        calm_s=1,
        kills=10,
        kill_every_s=0.4,
        least_kills=0,  # in so short a time a role can lack a process at its turn
        shares=(("server", 2), ("child", 4), ("producer", 2), ("scheduler", 1), ("worker", 1)),
        lease_s=1.0,
        pace_users=0,
        recover_s=30,  # a worker needs seconds to start where other tests run at the same time
        patience_s=60,
    )


def on_postgres(plan: Plan) -> Plan:
    """The same with PostgreSQL among the targets of the kills."""
    return replace(plan, shares=(*plan.shares, ("postgres", 2)))


def shortened(plan: Plan, times: int) -> Plan:
    """A plan with fewer agents, and contexts, kills and time in proportion."""
    agents = max(1, plan.agents // times)
    keep = agents / plan.agents
    return replace(
        plan,
        agents=agents,
        contexts=int(plan.contexts * keep),
        pushing_s=plan.pushing_s * keep,
        kills=int(plan.kills * keep),
        least_kills=int(plan.least_kills * keep),
    )


PRESETS = {"gate": gate, "half": half, "long": long, "small": small}
