"""Growth: the CPU of a context, a search and inject by the facts of a memory, and by the users on disk.

All sizes are there at once and take turns, so that ratios of sizes do not depend on how fast the machine is at the
moment. By users, each size has a data folder and a server of its own; the users have 100 facts and differ in their ids
alone. Their files stay in the page cache where it has room for them: CPU is measured, not the disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.cost import STEPS, Steps, fill
from benchmarks.drain import push_all
from benchmarks.figures import Figure, Measurement, Plot, Skip, at_most
from benchmarks.ground import Ground, ground
from benchmarks.reading import QUERY
from benchmarks.sizes import Size
from benchmarks.timing import interleaved, median, spread
from memd.client import Memd
from memd.context import Bucket
from memd.memory.store import paths

AREA = "store growth"
NAMES = ("context, all steps", "search, cold", "search, warm", "inject, cold", "inject, warm")
CONTEXTS = 32
"""Contexts of one turn at most, each of another user."""

READERS = 8
"""Users whose memories are read in one turn."""

WARM = 5
"""Reads of each of them while its memory is cached."""

APART = 1_000_000
"""The first users of two groups are so far apart that no group reaches the next."""

FLAT = 1.3
"""Most that the last size may cost, in units of the first one, where the cost should not grow."""

FILES = 3
"""Inodes of a user: the folder, the document, what was said."""

ROOM = 1.5
"""Free bytes and inodes that are asked for, in units of what the users take."""

Read = Callable[[Memd, str], object]
"""A read of a user's memory."""

Taken = Mapping[int, Sequence[Mapping[str, float]]]
"""By size: for each turn the CPU milliseconds of NAMES."""


def measure(size: Size) -> Iterator[Measurement]:
    """Each cost at each size, and that at the last size in units of that at the first."""
    rounds, each = size.rounds * 2, min(CONTEXTS, size.contexts // 4)
    yield from _by_facts(size.facts, rounds, each)
    yield from _by_users(size.users, rounds, each)


@dataclass(frozen=True, slots=True)
class Group:
    """Users whose memories are alike. `turns`: the numbers of the users of each turn."""

    place: Ground
    steps: Steps
    turns: Iterator[Sequence[int]]

    def turn(self) -> dict[str, float]:
        """A context of each of these users, then reads of some of them: medians."""
        numbers = next(self.turns)
        users = [f"user-{number}" for number in numbers[:READERS]]
        reads: tuple[Read, ...] = (_search, _inject)
        values = [self._contexts(numbers)]
        values += [taken(users, read) for read in reads for taken in (self._cold, self._warm)]
        return dict(zip(NAMES, values, strict=True))

    def _contexts(self, numbers: Sequence[int]) -> float:
        for number in numbers:
            push_all(self.place, 1, number)
        with Memd(self.place.settings) as memd:
            memd.flush()
        self.steps.taken.clear()
        self.steps.run(len(numbers))
        return median([sum(one) for one in zip(*(self.steps.taken[name] for name in STEPS), strict=True)])

    def _cold(self, users: Sequence[str], read: Read) -> float:
        """As in a process that has read no memory yet: with a new client each time."""

        def read_once(user: str) -> None:
            with Memd(self.place.settings) as memd:
                read(memd, user)

        return median([_cpu_ms(read_once, user) for user in users])

    def _warm(self, users: Sequence[str], read: Read) -> float:
        with Memd(self.place.settings) as memd:
            for user in users:
                read(memd, user)
            return median([_cpu_ms(read, memd, user) for user in [*users] * WARM])


def _search(memd: Memd, user: str) -> object:
    return memd.search(user, QUERY)


def _inject(memd: Memd, user: str) -> object:
    return memd.inject(user)


def _cpu_ms(work: Callable[..., object], *arguments: object) -> float:
    """Milliseconds of this thread's CPU."""
    started = time.thread_time_ns()
    work(*arguments)
    return (time.thread_time_ns() - started) / 1e6


def _by_facts(sizes: Sequence[int], rounds: int, each: int) -> Iterator[Measurement]:
    """All sizes on one server. Each user has other facts, and room for more, so that none are evicted."""
    users = rounds * each
    with ground(scheduler__quiet_s=300, apply__max_facts=2 * max(*sizes, 100)) as place:
        groups = {}
        for first, facts in zip(range(0, APART * len(sizes), APART), sizes, strict=True):
            fill(place, users, first, facts)
            turns = (range(at, at + each) for at in range(first, first + users, each))
            groups[facts] = Group(place, Steps(place, facts), turns)
        taken = _taken(groups, rounds)
    yield from _figures("facts", taken, flat=False)
    yield _plot("growth_by_facts", "A context and a read by the facts of the memory", "facts", taken)


def _by_users(sizes: Sequence[int], rounds: int, each: int) -> Iterator[Measurement]:
    """Each size on a server of its own. The users of the turns are spread over all that are there."""
    with ExitStack() as stack:
        groups = {}
        for users in sizes:
            place = stack.enter_context(ground(scheduler__quiet_s=300))
            if not _populate(place, users):
                yield Skip(AREA, f"{users:,} users", "the disk has no room for their files", failed=True)
                continue
            groups[users] = Group(place, Steps(place), _spread(users, rounds, each))
        os.sync()  # or the first commits wait for all these files
        taken = _taken(groups, rounds)
    yield from _figures("users", taken, flat=True)
    yield _plot("growth_by_users", "A context and a read by the users on disk, 100 facts each", "users", taken)


def _populate(place: Ground, users: int) -> bool:
    """Write the files of `user-0` for all users, with the id changed; False when the disk has no room for them."""
    fill(place, 1)
    own = paths.folder(place.settings.data_dir, Bucket("user-0"), shared=False)
    files = {file.name: file.read_bytes() for file in own.iterdir()}
    disk = os.statvfs(own)
    blocks = 1 + sum(-(-len(data) // disk.f_frsize) for data in files.values())  # one of the folder
    if disk.f_bavail < users * blocks * ROOM or disk.f_favail < users * FILES * ROOM:
        return False
    for number in range(1, users):
        folder = own.with_name(f"user-{number}")
        folder.mkdir(0o700)
        for name, data in files.items():
            (folder / name).write_bytes(data.replace(b'"user-0"', b'"user-%d"' % number))
    return True


def _spread(users: int, rounds: int, each: int) -> Iterator[Sequence[int]]:
    """For each turn users between the first and the last, other ones each time: there are enough of them."""
    for turn in range(rounds):
        yield [(turn + rounds * place) * users // (rounds * each) for place in range(each)]


def _taken(groups: Mapping[int, Group], rounds: int) -> Taken:
    """The turns of all groups. What a process does only once, such as compiling patterns, is done before."""
    first = next(iter(groups.values()))
    with Memd(first.place.settings) as memd:
        _search(memd, "user-0")
    names = {str(size): group.turn for size, group in groups.items()}
    return {int(size): turns for size, turns in interleaved(rounds, names).items()}


def _values(name: str, taken: Taken) -> dict[int, list[float]]:
    """By size: the CPU milliseconds of one cost in each turn."""
    return {size: [turn[name] for turn in turns] for size, turns in taken.items()}


def _medians(name: str, taken: Taken) -> list[tuple[float, float]]:
    return [(size, median(values)) for size, values in _values(name, taken).items()]


def _figures(by: str, taken: Taken, *, flat: bool) -> Iterator[Measurement]:
    """Each cost at each size, and how it grows. `flat`: it should not."""
    for name in NAMES:
        values = _values(name, taken)
        for size, found in values.items():
            yield Figure(AREA, f"{name}, {size:,} {by}", median(found), "ms of CPU", spread=spread(found))
        first, last = min(values), max(values)
        ratios = [large / small for small, large in zip(values[first], values[last], strict=True)]
        yield Figure(
            AREA, f"{name}, {first:,} → {last:,} {by}", median(ratios), "×", spread=spread(ratios),
            target=at_most(FLAT) if flat else None, note="" if flat else _shape(_medians(name, taken)),
        )  # fmt: skip


def _shape(points: Sequence[tuple[float, float]]) -> str:
    """The straight line through the first and the last point, and how far the others are from it."""
    (low, base), (high, top) = points[0], points[-1]
    if top < base * FLAT:
        return "flat"
    slope = (top - base) / (high - low)
    fixed = base - slope * low
    off = max(abs(value / (fixed + slope * size) - 1) for size, value in points)
    return f"{fixed:.2g} ms and {slope * 1e3:.2g} µs a fact; {off:.0%} off that line in between"


def _plot(name: str, title: str, by: str, taken: Taken) -> Plot:
    return Plot(name, title, by, "ms of CPU", {cost: _medians(cost, taken) for cost in NAMES})
