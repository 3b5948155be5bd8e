"""The inbox: its functions, waiting keys, dead contexts, workers, and pauses of the model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import redis

from memd import __version__
from memd.context import FUNCTIONS_VERSION
from memd.extraction import endpoint
from memd.inbox import endpoints, library
from memd.inbox.app_events import EVENTS
from memd.inbox.breaker import UNFIT, UNFIT_HELP
from memd.inbox.figures import Figures
from memd.inbox.verbs import RAW, P, raw_lists
from memd.ops.doctor.checkup import Checkup, Verdict, bad, ok, warn
from memd.printable import counted, noun

SCAN_S, SCAN_PAGE = 2.0, 5_000
SHOWN = 5
"""Most names in one sentence."""

LOOKED_AT = 1_000
"""Most pending keys whose type is checked."""

NEARLY = 0.9
"""A raw list counts as full at this share of `dead.raw_cap_mb`, because the next large letter would not fit."""

LATE_S = 60.0
"""Seconds that a key may wait beyond `max_wait_s` before it is a warning."""

TYPES = {
    "zset": ("due", "rationed", "batched", "batches", "claimed", "dead", "ended"),
    "hash": ("busy", "config", "stats", "taken", "held", "waiting_parts"),
    "set": ("breakers", "unread", "wrong"),
    "list": ("wake", "notices", "hours"),
    "string": ("order",),
}
"""The types of the inbox's single keys."""

KEY_CODES = frozenset({"unauthorized", "payment", "forbidden", "model_not_found", "no_key", "max_tokens"})
"""Codes of errors that only a person can fix."""


def functions(checkup: Checkup) -> Verdict:
    """The function libraries are loaded, and of this version."""
    build = checkup.ask(lambda client: client.hget(f"{P}:config", "build"))
    if build is None:
        return bad("the inbox is not set up: start memd up or memd scheduler once on this server")
    loaded = checkup.ask(_library_names)
    missing = {"memd_push", f"memd_drain_{FUNCTIONS_VERSION}"} - loaded
    if missing:
        return bad(f"{', '.join(sorted(missing))} is not loaded: start a scheduler of this version")
    number = library.build_of(build)
    if number != library.BUILD:
        what = "newer: upgrade this memd" if number > library.BUILD else "older: restart the scheduler"
        return warn(f"the functions are of build {number} and this memd's of {library.BUILD}; they are {what}")
    others = sorted(loaded - {"memd_push", f"memd_drain_{FUNCTIONS_VERSION}"})
    return ok(f"build {number}" + (f"; of other versions: {', '.join(others)}" if others else ""))


def _library_names(client: redis.Redis) -> set[str]:
    listed: Any = client.function_list("memd_*")  # flat rows of names and values; the second is the library's name
    return {_plain(row[b"library_name"] if isinstance(row, dict) else row[1]) for row in listed}


def raw(checkup: Checkup) -> Verdict:
    """A scheduler reads every raw list."""
    known = raw_lists(checkup.settings)
    names, complete = checkup.ask(_raw_names)
    unread = sorted(names - {name.encode() for name in known})
    if unread:
        shown = ", ".join(map(_plain, unread[:SHOWN])) + (", …" if len(unread) > SHOWN else "")
        return bad(f"nobody reads {shown}: name the apps in client.apps, or these pushes are never read")
    waiting = sum(checkup.figures.raw.values())
    partly = "" if complete else "; not all keys were scanned"
    return ok(f"{', '.join(known[:SHOWN])}: {counted(waiting, 'push', 'pushes')} to take in{partly}")


def _raw_names(client: redis.Redis) -> tuple[set[bytes], bool]:
    """The names of all raw lists, and whether all keys were scanned: a scan ends after SCAN_S."""
    names, until = set[bytes](), time.monotonic() + SCAN_S
    cursor: Any = 0
    while True:
        cursor, page = client.scan(cursor, match=f"{RAW}:*", count=SCAN_PAGE)
        names.update(name for name in page if isinstance(name, bytes))
        if cursor == 0 or time.monotonic() > until:
            return names, cursor == 0


def types(checkup: Checkup) -> Verdict:
    """Every single key, the first pending keys and the first raw lists have the types that memd gave them."""
    expected = {f"{P}:{name}": kind for kind, names in TYPES.items() for name in names}
    expected |= {**dict.fromkeys(raw_lists(checkup.settings), "list"), EVENTS: "stream"}
    expected[endpoints.key(endpoint(checkup.settings.extraction))] = "string"
    wrong = checkup.ask(lambda client: _wrong_types(client, expected))
    if not wrong:
        first: Any = checkup.ask(lambda client: client.zrange(f"{P}:due", 0, LOOKED_AT - 1))
        expected |= {f"{P}:ctx:{key.decode(errors='replace')}": "hash" for key in first}
        wrong = checkup.ask(lambda client: _wrong_types(client, expected))
    if wrong:
        shown = ", ".join(map(_plain, wrong[:SHOWN])) + (", …" if len(wrong) > SHOWN else "")
        return bad(f"{shown}: not of the type that memd gives it, so another program wrote it; remove or rename it")
    return ok(f"{counted(len(expected), 'key')} looked at")


def _wrong_types(client: redis.Redis, expected: Mapping[str, str]) -> list[str]:
    pipeline = client.pipeline(transaction=False)
    for name in expected:
        pipeline.type(name)
    found = zip(expected.items(), pipeline.execute(), strict=True)
    return [name for (name, kind), actual in found if actual.decode() not in (kind, "none")]


def waiting(checkup: Checkup) -> Verdict:
    """Pending keys get their turn."""
    figures = checkup.figures
    if figures.stats.get("wrong_type") and (wrong := checkup.ask(_set_aside)):
        return warn(
            f"{counted(wrong, 'pending key')} of a wrong type, renamed to {P}:wrong:<key>: find the program that "
            f"writes to {P}*, then delete them"
        )
    oldest = figures.oldest_waiting_s
    if oldest is None:
        return ok(rationed_line(figures) if figures.rationed else "nothing is waiting")
    sentence = (
        f"{counted(figures.pending, 'key')} {noun(figures.pending, 'waits', 'wait')}, the oldest for {oldest:.0f} s"
    )
    if figures.rationed:
        sentence += f"; {rationed_line(figures)}"
    if oldest > checkup.settings.scheduler.max_wait_s + LATE_S:
        return warn(f"{sentence}, longer than max_wait_s: there are no workers, too few, or the model is paused")
    return ok(sentence)


def rationed_line(figures: Figures) -> str:
    """How many keys wait for a budget, and until when."""
    waits = f"{counted(figures.rationed, 'key')} {noun(figures.rationed, 'waits', 'wait')}"
    until = f"{figures.rationed_until:%Y-%m-%d %H:%M} UTC" if figures.rationed_until else "its time"
    return f"{waits} for a budget until {until}"


def _set_aside(client: redis.Redis) -> int:
    """How many keys of a wrong type were set aside and are still there."""
    names: Any = client.smembers(f"{P}:wrong")
    return len(_wrong_types(client, {f"{P}:wrong:{name.decode(errors='replace')}": "gone" for name in names}))


def dead(checkup: Checkup) -> Verdict:
    """No context is dead, and no raw list is flooded with pushes that cannot be taken in."""
    figures, limits = checkup.figures, checkup.settings.dead
    most_bytes = NEARLY * limits.raw_cap_mb * 1_000_000
    if full := [
        name
        for name, letters in figures.raw_letters.items()
        if letters >= limits.raw_cap or figures.stats.get(f"raw_bytes:{name}", 0) >= most_bytes
    ]:
        gone = sum(figures.stats.get(f"discarded:{name}", 0) for name in full)
        return warn(
            f"{', '.join(full[:SHOWN])}: pushes that cannot be taken in have filled dead.raw_cap ({limits.raw_cap}) or "
            f"dead.raw_cap_mb ({limits.raw_cap_mb}), and {gone} letters were discarded: find their producer (memd dead "
            "list), then drop them"
        )
    if not figures.dead:
        return ok("none")
    codes = {name.removeprefix("dead:"): count for name, count in figures.stats.items() if name.startswith("dead:")}
    most = ", ".join(f"{code} {count}" for code, count in Counter(codes).most_common(SHOWN))
    return warn(f"{figures.dead} contexts failed for good and are kept (all so far: {most}); see memd dead list")


def workers(checkup: Checkup) -> Verdict:
    """There are workers, and all are of this version."""
    alive = [worker for worker in checkup.figures.workers if worker["state"]]
    if not alive:
        sentence = "no worker runs: start memd up or memd worker"
        return bad(sentence) if checkup.figures.pending else warn(sentence)
    versions = Counter(worker["version"] or "unknown" for worker in alive)
    shown = ", ".join(f"{count} of {_plain(version.encode())}" for version, count in sorted(versions.items()))
    if set(versions) != {__version__}:
        return warn(f"workers by version: {shown}; this is {__version__}: restart the older ones")
    return ok(f"{len(alive)}, all of {__version__}")


def breaker(checkup: Checkup) -> Verdict:
    """No model endpoint is paused."""
    paused = checkup.figures.paused
    if not paused:
        return ok("closed")
    first = paused[0]
    sentence = f"paused for {first['open_s']:.0f} s ({first['code']}), next try in {first['next_try_s']:.0f} s"
    if first["code"] in KEY_CODES:
        return bad(f"{sentence}; this does not pass by itself: correct the key, the account or the model's name")
    if first["code"] == UNFIT:
        return bad(f"{sentence}; {UNFIT_HELP}")
    return warn(sentence)


def _plain(name: bytes | str) -> str:
    """A name from the server, safe to print to a terminal."""
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    return "".join(char if char.isprintable() else "?" for char in text)[:80]
