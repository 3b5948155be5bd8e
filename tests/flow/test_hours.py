"""The counters of the last 48 hours: each counted in its hour, once, whatever stops, and with numbers only."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import redis
from support import Cli, execute, make_settings, wait_for
from support.inbox_view import advance

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.inbox import library, verbs
from memd.inbox.connection import connect, send
from memd.inbox.decoding import text
from memd.inbox.hours import HOUR_MS, HOURS, Hour
from memd.inbox.verbs import P
from memd.ops import server

RING = f"{P}:hours"
STATS: dict[str, int] = {"facts_added": 3, "model_calls": 2, "input_tokens": 900, "output_tokens": 80, "stored": 1}


@pytest.fixture(autouse=True)
def _begun(client: redis.Redis) -> None:
    """The ring has begun, and no hour ends while a test runs."""
    wait_for(lambda: client.time()[0] % 3600 < 3570, "the hour has a while to go")
    sweep(client)


def sweep(client: redis.Redis) -> None:
    """As the scheduler does once a second."""
    send(client, verbs.sweep())


def push(app: Memd, number: int) -> None:
    turns = [{"role": "user", "content": f"I own boat {number}.", "id": f"m{number}"}]
    app.push(turns, thread_id=f"t{number}", user_id=f"user-{number}", now=True)


def claimed(client: redis.Redis, settings: Settings) -> list[str]:
    return [claim.id for claim in send(client, verbs.claim(settings, 10, 0, "w", "m")).taken]


def figures(row: Hour) -> dict[str, Any]:
    """The figures of a row that are not 0."""
    return {name: value for name, value in row.as_dict().items() if value != 0 and name != "start"}


def counted(rows: tuple[Hour, ...]) -> dict[str, Any]:
    """Those of all rows together."""
    return {name: sum(figures(row).get(name) or 0 for row in rows) for name in ("pushes", "stored", "dead", "tokens")}


def written(client: redis.Redis) -> int:
    """How many writes the server has seen."""
    return int(client.info("persistence")["rdb_changes_since_last_save"])


def test_each_hour_has_what_it_counted(memd: Memd, client: redis.Redis, settings: Settings, cli: Cli) -> None:
    """Pushes in one hour, their end in the next one; the row of the present hour grows. CLI and JSON say the same."""
    for number in range(3):
        push(memd, number)
    sweep(client)
    advance(client, HOUR_MS)
    first, second, third = claimed(client, settings)
    send(client, verbs.ack(first, {"state": "stored", "facts": []}, STATS))
    sweep(client)
    send(client, verbs.ack(second, {"state": "skipped", "reason": "x"}, {"skipped": 1}))
    send(client, verbs.bury(third, "E_X", "E_X: x", {"model_calls": 1, "cache_read_tokens": 20}))
    sweep(client)
    rows = memd.hours()
    assert [figures(row) for row in rows[-2:]] == [
        {"pushes": 3, "pending": 3, "most_pending": 3},
        {"stored": 1, "skipped": 1, "dead": 1, "facts": 3, "model_calls": 3, "tokens": 1000},
    ]
    assert [row.start.minute for row in rows] == [0] * len(rows)
    assert (rows[-1].start - rows[-2].start).total_seconds() == 3600
    shown = json.loads(cli("status", "--hours", "--json").stdout)
    assert [row["tokens"] for row in shown[-2:]] == [0, 1000]
    lines = cli("status", "--hours").stdout.splitlines()
    assert " ".join(lines[0].split()) == "hour (UTC) pushes stored skipped dead facts calls tokens pending most"
    assert lines[-1].split()[2:] == ["0", "1", "1", "1", "3", "3", "1,000", "0", "0"]
    assert cli("status", "--hours", "--cost").returncode == 2
    assert asyncio.run(_async_hours(settings)) == rows


async def _async_hours(settings: Settings) -> tuple[Hour, ...]:
    async with AsyncMemd(settings) as app:
        return await app.hours()


def test_the_most_that_were_pending_are_kept(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Parked and rationed keys count; the end of the hour may have fewer."""
    for number in range(2):
        push(memd, number)
    [first, _] = claimed(client, settings)
    turns = [{"role": "user", "content": "I own a kayak.", "id": "k"}]
    memd.push(turns, thread_id="other", user_id="user-0", now=True)  # parked by the next claim
    memd.push(turns, thread_id="other", user_id="user-1", now=True)
    assert claimed(client, settings) == []
    sweep(client)
    send(client, verbs.ack(first, {"state": "stored", "facts": []}, {"stored": 1}))
    assert len(claimed(client, settings)) == 1
    sweep(client)
    assert (memd.hours()[-1].pending, memd.hours()[-1].most_pending) == (1, 2)


def test_what_nobody_looked_at_is_counted_in_the_next_hour(memd: Memd, client: redis.Redis) -> None:
    """No scheduler for three hours: their rows say that nothing is known, and nothing is lost or counted twice."""
    push(memd, 0)
    sweep(client)
    advance(client, HOUR_MS)
    push(memd, 1)
    advance(client, 3 * HOUR_MS)
    assert [(row.pushes, row.pending) for row in memd.hours()[-5:]] == [(1, 1), *[(0, None)] * 4]
    sweep(client)
    sweep(client)
    assert [(row.pushes, row.pending) for row in memd.hours()[-5:]] == [(1, 1), *[(0, None)] * 3, (1, 2)]


def test_the_ring_is_bounded(memd: Memd, client: redis.Redis) -> None:
    """48 rows, whatever the age of the inbox, and a gap of days leaves no older row."""
    for number in range(HOURS + 5):
        push(memd, number)
        sweep(client)
        advance(client, HOUR_MS)
    sweep(client)
    assert client.llen(RING) == HOURS + 1
    rows = memd.hours()
    assert (len(rows), counted(rows)["pushes"]) == (HOURS, HOURS - 1)
    assert max(map(len, client.lrange(RING, 0, -1))) < 200
    advance(client, 100 * HOUR_MS)
    push(memd, 99)
    sweep(client)
    assert [(row.pushes, row.pending) for row in memd.hours()] == [(0, None)] * (HOURS - 1) + [(1, HOURS + 6)]


def test_nothing_is_written_while_nothing_changes(memd: Memd, client: redis.Redis) -> None:
    """An idle scheduler, or a second one, makes the log of the server no longer."""
    push(memd, 0)
    sweep(client)
    before = written(client)
    for _ in range(20):
        sweep(client)
    assert written(client) == before


def test_counters_of_an_older_memd_are_no_hour(memd: Memd, client: redis.Redis) -> None:
    """The first look is what the first hour counts from; so is a counter that somebody set back."""
    client.delete(RING)
    assert memd.hours() == ()
    client.hset(f"{P}:stats", items=["pushes", 1_000, "input_tokens", 10**12])
    sweep(client)
    assert counted(memd.hours()) == {"pushes": 0, "stored": 0, "dead": 0, "tokens": 0}
    push(memd, 0)
    client.hincrby(f"{P}:stats", "input_tokens", 5)
    sweep(client)
    assert counted(memd.hours()) == {"pushes": 1, "stored": 0, "dead": 0, "tokens": 5}
    client.hset(f"{P}:stats", "pushes", 0)
    sweep(client)
    assert counted(memd.hours())["pushes"] == 0


def test_before_the_first_scheduler_there_are_none(client: redis.Redis, cli: Cli) -> None:
    """The command says so."""
    client.delete(RING)
    assert cli("status", "--hours").stdout == "no hours yet: the scheduler begins to count them when it starts\n"
    assert cli("status", "--hours", "--json").stdout == "[]\n"


def test_a_retry_takes_no_death_back(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """What died in an hour died, also if it is retried in another one."""
    for number in range(2):
        push(memd, number)
    for claim in claimed(client, settings):
        send(client, verbs.bury(claim, "E_X", "E_X: x"))
    sweep(client)
    advance(client, HOUR_MS)
    assert memd.retry(memd.dead()) == 2
    sweep(client)
    assert [row.dead for row in memd.hours()[-2:]] == [2, 0]
    for claim in claimed(client, settings):
        send(client, verbs.bury(claim, "E_X", "E_X: x"))
    sweep(client)
    assert [row.dead for row in memd.hours()[-2:]] == [2, 2]


@pytest.mark.parametrize("hours", [1, 3, 100])
def test_a_clock_that_is_set_back_loses_no_count(memd: Memd, client: redis.Redis, hours: int) -> None:
    """What was counted in a time to come is this hour's; no row lies ahead."""
    for number in range(2):
        push(memd, number)
        sweep(client)
        advance(client, HOUR_MS)
    push(memd, 9)
    sweep(client)
    advance(client, -hours * HOUR_MS)
    sweep(client)
    now = execute(client, "TIME")[0] * 1000
    rows = memd.hours()
    assert max(row.start.timestamp() * 1000 for row in rows) <= now
    assert counted(rows)["pushes"] == 3


@pytest.mark.parametrize("kind", ["SET", "SADD"])
def test_a_ring_of_a_wrong_type_stops_nothing(memd: Memd, client: redis.Redis, kind: str, cli: Cli) -> None:
    """Another program wrote it: the sweep goes on, and the doctor names it."""
    client.delete(RING)
    execute(client, kind, RING, "no list")
    client.zadd(f"{P}:ended", {"gone": 1})
    assert send(client, verbs.sweep()) == 1
    assert RING in cli("doctor").stdout


def test_it_goes_on_after_a_restart_of_the_server(data_dir: Path) -> None:
    """The ring is data like any other: nothing is lost and nothing counted twice."""
    settings = make_settings(data_dir, None)
    process = server.start(settings)
    try:
        with connect(settings) as client, Memd(settings) as app:
            library.install(client, settings)
            sweep(client)
            push(app, 0)
            sweep(client)
            push(app, 1)  # counted, and not yet looked at
            process.kill()
            process.wait()
            process = server.start(settings)
            library.install(client, settings)
            sweep(client)
            push(app, 2)
            sweep(client)
            assert [(row.pushes, row.pending) for row in app.hours()] == [(3, 3)]
    finally:
        server.stop(process)


def test_it_holds_no_ids(memd: Memd, client: redis.Redis) -> None:
    """Numbers and spaces only, so there is nothing to forget."""
    push(memd, 0)
    sweep(client)
    memd.forget("user-0")
    sweep(client)
    assert all(set(text(entry)) <= set("0123456789 ") for entry in client.lrange(RING, 0, -1))
