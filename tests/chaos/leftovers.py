"""Leftovers of a run that must not exist: keys, temp files, open descriptors, processes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import redis
from support import execute

from chaos.fleet import Fleet, Role, children
from memd.inbox import verbs
from memd.inbox.verbs import BELLS
from memd.memory.store import paths

WORKING = (
    "ctx",
    "claim",
    "claimed",
    "busy",
    "parked",
    "due",
    "dead",
    "died",
    "rationed",
    "held",
    "batched",
    "batches",
    "batch",
)
"""Kinds of keys that exist only while contexts are in flight, or after some have died."""

KEPT = (Role.SERVER, Role.SCHEDULER, Role.WORKER)
"""Roles that run from the beginning to the end, restarts included."""

SCAN = 1_000


def working_keys(client: redis.Redis) -> Counter[str]:
    """The count of keys that mean contexts in flight, by kind."""
    kinds: Counter[str] = Counter()
    for name in client.scan_iter(match=f"{verbs.P}:*", count=SCAN):
        kind = name.decode().removeprefix(f"{verbs.P}:").partition(":")[0]
        if kind in WORKING:
            kinds[kind] += 1
    if client.exists(verbs.RAW):
        kinds["raw"] += 1
    return kinds


def idle(client: redis.Redis) -> bool:
    """Whether no context is in a raw list, pending, due or claimed; cheap enough for polling."""
    names = (f"{verbs.P}:due", f"{verbs.P}:claimed", f"{verbs.P}:busy", verbs.RAW)
    return not client.exists(*names)


def forgotten_jobs(client: redis.Redis) -> Counter[str]:
    """RQ's jobs that would stay forever: without a time to live, and not where RQ's maintenance looks."""
    places: list[list[bytes]] = [
        *(execute(client, "LRANGE", f"rq:queue:{BELLS}{end}", 0, -1) for end in ("", ":intermediate")),
        *(execute(client, "ZRANGE", f"rq:{registry}:{BELLS}", 0, -1) for registry in ("wip", "failed")),
    ]
    known = {member.partition(b":")[0] for members in places for member in members}
    jobs = client.scan_iter(match="rq:job:*", count=SCAN)
    forgotten = [job for job in jobs if client.ttl(job) == -1 and job.removeprefix(b"rq:job:") not in known]
    return Counter({"rq:job": len(forgotten)})


def temp_files(data_dir: Path) -> list[str]:
    """Temp files that a commit should have renamed or removed."""
    return sorted(str(file.relative_to(data_dir)) for file in data_dir.glob(f"**/{paths.TEMP}"))


def quarantined(data_dir: Path) -> list[str]:
    """Damaged documents that were set aside."""
    return sorted(str(file.relative_to(data_dir)) for file in data_dir.glob(f"**/{paths.FILE}.corrupt-*"))


def descriptors(fleet: Fleet) -> Counter[str]:
    """The most descriptors that one process of each lasting role has open."""
    return Counter({role.value: max(map(_open_files, fleet.pids(role)), default=0) for role in KEPT})


def drains(fleet: Fleet) -> int:
    """Forked children of the workers; once no key is due there must be no child."""
    return sum(len(children(pid)) for pid in fleet.pids(Role.WORKER))


def _open_files(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:  # killed meanwhile
        return 0
