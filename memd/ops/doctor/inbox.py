"""The inbox: its functions, what waits, what died, and who works on it."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import redis

from memd import __version__
from memd.context import WIRE_VERSION
from memd.inbox import library
from memd.inbox.verbs import RAW, P, raw_lists
from memd.ops.doctor.patient import Patient, Verdict, bad, ok, warn

SCAN_S, SCAN_PAGE = 2.0, 5_000
SHOWN = 5
"""Names in one sentence."""

LATE_S = 60.0
"""Beyond `max_wait_s`, before a key that waits is worth a word."""

KEY_CODES = frozenset({"unauthorized", "payment", "forbidden", "model_not_found", "no_key"})
"""Codes that no waiting mends."""


def functions(patient: Patient) -> Verdict:
    """The function libraries are there, and of this version."""
    build = patient.ask(lambda client: client.hget(f"{P}:config", "build"))
    if build is None:
        return bad("the inbox is not set up: start memd up or memd scheduler once on this server")
    found = patient.ask(_library_names)
    missing = {"memd_push", f"memd_drain_{WIRE_VERSION}"} - found
    if missing:
        return bad(f"{', '.join(sorted(missing))} is not loaded: start a scheduler of this version")
    if int(build) != library.BUILD:
        what = "newer: upgrade this memd" if int(build) > library.BUILD else "older: restart the scheduler"
        return warn(f"the functions are of build {int(build)}, this memd's of {library.BUILD}; they are {what}")
    others = sorted(found - {"memd_push", f"memd_drain_{WIRE_VERSION}"})
    return ok(f"build {int(build)}" + (f"; of other versions: {', '.join(others)}" if others else ""))


def _library_names(client: redis.Redis) -> set[str]:
    listed: Any = client.function_list("memd_*")  # flat rows of names and values, whose second is the library's name
    return {_plain(row[b"library_name"] if isinstance(row, dict) else row[1]) for row in listed}


def raw(patient: Patient) -> Verdict:
    """No list of the raw door lies there unread."""
    known = raw_lists(patient.settings)
    names, complete = patient.ask(_raw_names)
    unread = sorted(names - {name.encode() for name in known})
    if unread:
        shown = ", ".join(map(_plain, unread[:SHOWN])) + (", …" if len(unread) > SHOWN else "")
        return bad(f"nobody reads {shown}: name the apps in client.apps, or the pushes stay there")
    waiting = sum(patient.shot.raw.values())
    partly = "" if complete else "; not all keys were looked at"
    return ok(f"{', '.join(known[:SHOWN])}: {waiting} pushes to take in{partly}")


def _raw_names(client: redis.Redis) -> tuple[set[bytes], bool]:
    """The names of all raw lists, and whether the look was complete: it takes two seconds at most."""
    names, until = set[bytes](), time.monotonic() + SCAN_S
    cursor: Any = 0
    while True:
        cursor, page = client.scan(cursor, match=f"{RAW}:*", count=SCAN_PAGE)
        names.update(name for name in page if isinstance(name, bytes))
        if cursor == 0 or time.monotonic() > until:
            return names, cursor == 0


def waiting(patient: Patient) -> Verdict:
    """What is pending gets its turn."""
    shot = patient.shot
    oldest = shot.oldest_waiting_s
    if oldest is None:
        return ok("nothing waits")
    said = f"{shot.due + shot.parked} keys wait, the oldest for {oldest:.0f} s"
    if oldest > patient.settings.scheduler.max_wait_s + LATE_S:
        return warn(f"{said}, longer than max_wait_s: no worker, too few, or the model is paused")
    return ok(said)


def dead(patient: Patient) -> Verdict:
    """Nothing gave up."""
    shot = patient.shot
    if not shot.dead:
        return ok("none")
    codes = {name.removeprefix("dead:"): count for name, count in shot.stats.items() if name.startswith("dead:")}
    most = ", ".join(f"{code} {count}" for code, count in Counter(codes).most_common(SHOWN))
    return warn(f"{shot.dead} contexts gave up and are kept (so far: {most}); memd status has the reasons")


def workers(patient: Patient) -> Verdict:
    """Somebody works, and all of one version."""
    alive = [worker for worker in patient.shot.workers if worker["state"]]
    if not alive:
        said = "none runs: start memd up or memd worker"
        return bad(said) if patient.shot.due else warn(said)
    versions = Counter(worker["version"] or "unknown" for worker in alive)
    shown = ", ".join(f"{count} of {_plain(version.encode())}" for version, count in sorted(versions.items()))
    if set(versions) != {__version__}:
        return warn(f"workers by version: {shown}; this is {__version__}: restart what is older")
    return ok(f"{len(alive)}, all of {__version__}")


def breaker(patient: Patient) -> Verdict:
    """No model endpoint is paused."""
    paused = patient.shot.breakers
    if not paused:
        return ok("closed")
    first = paused[0]
    said = f"paused for {first['open_s']:.0f} s ({first['code']}), next try in {first['next_try_s']:.0f} s"
    return bad(f"{said}; no waiting mends that") if first["code"] in KEY_CODES else warn(said)


def _plain(name: bytes | str) -> str:
    """A name from the server, fit for a terminal."""
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    return "".join(char if char.isprintable() else "?" for char in text)[:80]
