"""A long run: contexts at a steady rate for an hour, or 200,000 of them; memory, files and keys must not grow.

Outcomes and hints, which the default settings keep for a day, are kept for a minute here, and the ledgers have a low
cap, so that all of them are full within the first quarter of the run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Figure, Measurement, Plot, at_most
from benchmarks.ground import Ground, Process, daemon, ground
from benchmarks.load import statement, text
from benchmarks.sizes import Size
from benchmarks.timing import children, median, memory_mb, wait_until
from memd.client import Memd
from memd.inbox.connection import Flight
from memd.inbox.verbs import push
from memd.memory.store import paths
from memd.push.filtering import to_context
from memd.push.validation import check_push

AREA = "long"
CONTEXTS = 200_000
SECONDS = {"tiny": 5.0, "short": 3_600.0, "full": 3_600.0}
LOOKS = 120
USERS = 500
RATE = 100.0
"""Contexts a second: a third of the capacity of two cores, so that no backlog grows; 200,000 take 34 minutes."""

SHORT = {
    "scheduler__quiet_s": 1,
    "scheduler__max_wait_s": 5,
    "inbox__receipt_ttl_s": 60,
    "inbox__known_ttl_s": 60,
    "apply__ledger_cap": 100,
    "apply__archive_cap": 20,
}


@dataclass(frozen=True, slots=True)
class Look:
    """One moment: seconds since the start, and the values that must not grow."""

    at_s: float
    things: dict[str, float]


def measure(size: Size) -> Iterator[Measurement]:
    """Each value's median in the last quarter, compared with the second quarter, when everything is warm."""
    seconds = SECONDS[size.name]
    with ground(**SHORT) as place, daemon(place, workers=2) as parts, Memd(place.settings) as memd:
        looks, pushed = _run(place, parts, seconds)
        wait_until(lambda: place.ended(pushed), "everything has ended", 600, 0.1)
        status = memd.status()
        temps = len(list(Path(place.settings.data_dir).glob(f"**/{paths.TEMP}")))
    quarter = max(1, len(looks) // 4)
    for name in looks[0].things:
        second = median([look.things[name] for look in looks[quarter : 2 * quarter]])
        last = median([look.things[name] for look in looks[-quarter:]])
        yield Figure(
            AREA, f"{name}, last quarter", last, "", peer="second quarter", peer_value=second or None,
            target=at_most(1.1, of="ratio") if second else None,
        )  # fmt: skip
    lost = pushed - status.stored - status.skipped - status.dead_so_far
    yield Figure(AREA, f"contexts lost of {pushed:,}", lost, "", target=at_most(0), note=f"{status.dead_so_far} dead")
    yield Figure(AREA, "temp files left", temps, "", target=at_most(0))
    lines = {
        name: [(max(1.0, look.at_s), look.things[name]) for look in looks]
        for name in looks[0].things
        if name.endswith("MB")
    }
    yield Plot("long", f"{pushed:,} contexts at a steady rate", "seconds", "MB", lines)


def _run(place: Ground, parts: list[Process], seconds: float) -> tuple[list[Look], int]:
    looks: list[Look] = []
    number = 0
    started = time.monotonic()
    while (now := time.monotonic() - started) < seconds and number < CONTEXTS:
        wanted = min(CONTEXTS, int(now * RATE) + 1) - number
        pushes = (check_push(_push(number + place_), place.settings.client) for place_ in range(wanted))
        for answer in Flight(place.client, [push(to_context(each)) for each in pushes]).land():
            if isinstance(answer, Exception):
                raise answer
        number += wanted
        if now >= len(looks) * seconds / LOOKS:
            looks.append(Look(now, _things(place, parts)))
        time.sleep(0.05)
    return looks, number


def _push(number: int) -> dict[str, object]:
    said = [
        {"role": "user", "content": statement(number, 200), "id": f"u{number}"},
        {"role": "assistant", "content": text(200, number % 1_000), "id": f"a{number}"},
    ]
    return {"thread_id": f"thread-{number % 3}", "user_id": f"user-{number % USERS}", "messages": said}


def _things(place: Ground, parts: list[Process]) -> dict[str, float]:
    scheduler, *workers = (part.pid for part in parts)
    memory = place.client.info("memory")
    return {
        "scheduler, MB": memory_mb(scheduler)[0],
        "listening workers, MB": max(memory_mb(pid)[0] for pid in workers),
        "draining children, MB": max([_rss(pid) for worker in workers for pid in children(worker)], default=0.0),
        "server, MB": float(memory["used_memory"]) / 1e6,
        "descriptors of scheduler and workers": sum(
            len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in (scheduler, *workers)
        ),
        "keys on the server": float(place.client.dbsize()),
        "files in the data folder": float(sum(1 for _ in place.settings.data_dir.glob("users/**/*"))),
    }


def _rss(pid: int) -> float:
    try:
        return memory_mb(pid)[0]
    except (FileNotFoundError, ProcessLookupError):  # a drain that has just ended
        return 0.0
