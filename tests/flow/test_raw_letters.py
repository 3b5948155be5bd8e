"""Dead letters of raw pushes, which anybody with an RPUSH account can make: capped by list and age, and counted."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest
import redis
from support import Cli, execute, next_millisecond, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.errors import Rejected
from memd.inbox import library, verbs
from memd.inbox.connection import send
from memd.inbox.verbs import RAW, P

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]
SHOP = f"{RAW}:shop"


@pytest.fixture
def few(configured: Configured, client: redis.Redis) -> Settings:
    """Settings that keep five letters a list, for a minute."""
    settings = configured(client__apps=["shop"], dead__raw_cap=5, dead__raw_ttl_s=60)
    library.install(client, settings)
    return settings


def flood(client: redis.Redis, source: str, count: int) -> list[bytes]:
    """Pushes that cannot be taken in, all of which have been looked at."""
    pushes = [b"bad %d" % number for number in range(count)]
    for raw in pushes:
        client.rpush(source, raw)
        assert send(client, verbs.take_dead(raw, source, Rejected("E_JSON", "not valid JSON")))
        next_millisecond(client)  # letters are told apart by it
    return pushes


def bury_a_context(memd: Memd, client: redis.Redis, settings: Settings) -> str:
    memd.push([{"role": "user", "content": "I own a boat.", "id": "1"}], thread_id="t", user_id="ana", now=True)
    [claim] = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    assert send(client, verbs.bury(claim.id, "E_TEST", "E_TEST: for a test"))
    return claim.id


def kept(client: redis.Redis) -> set[bytes]:
    """The raw bytes of all letters that are kept."""
    letters = execute(client, "ZRANGE", f"{P}:dead", 0, -1)
    return {raw for letter in letters if (raw := execute(client, "HGET", f"{P}:dead:{letter.decode()}", ".raw"))}


def test_a_flood_keeps_the_newest_and_counts_the_others(memd: Memd, client: redis.Redis, few: Settings) -> None:
    """Never more than the cap, the oldest gone, and a letter of a context beside them untouched."""
    letter = bury_a_context(memd, client, few)
    pushes = flood(client, RAW, 12)
    assert client.zcard(f"{P}:dead") == 6
    assert len(kept(client)) == 5
    assert pushes[0] not in kept(client)
    app = Memd(few)
    status = app.status()
    assert (status.raw_letters, status.discarded, status.dead) == ({RAW: 5}, {RAW: 7}, 6)
    assert app.dead_letter(letter) is not None
    app.close()


def test_a_flood_on_one_list_takes_no_letter_of_another(client: redis.Redis, few: Settings) -> None:
    """Each list has its own cap, and below it nothing goes."""
    mine = flood(client, SHOP, 5)
    flood(client, RAW, 20)
    assert {raw for raw in kept(client) if raw in mine} == set(mine)
    assert client.hget(f"{P}:stats", f"discarded:{SHOP}") is None


def test_letters_of_raw_pushes_end_with_their_time(
    memd: Memd, client: redis.Redis, configured: Configured, few: Settings
) -> None:
    """After the time to live they go; a letter of a context stays for ever."""
    letter = bury_a_context(memd, client, few)
    flood(client, RAW, 3)
    send(client, verbs.sweep())
    assert len(kept(client)) == 3
    library.install(client, configured(dead__raw_ttl_s=0.001))
    wait_for(lambda: send(client, verbs.sweep()) == 0 and not kept(client), "their time is over")
    assert execute(client, "ZRANGE", f"{P}:dead", 0, -1) == [letter.encode()]


def test_letters_of_an_older_version_are_capped_too(client: redis.Redis, few: Settings) -> None:
    """The letters of builds before 11, which are in no row, are found and counted."""
    flood(client, RAW, 5)
    for number in range(20):
        old = {".code": "E_JSON", ".error": "E_JSON", ".died": 1, ".raw": f"old {number}", ".origin": RAW}
        execute(client, "HSET", f"{P}:dead:old-{number}", *(part for pair in old.items() for part in pair))
        client.zadd(f"{P}:dead", {f"old-{number}": 1})
    client.hdel(f"{P}:config", "raw_letters")
    wait_for(lambda: send(client, verbs.sweep()) == 0 and len(kept(client)) == 5, "the old ones are gone")
    assert len(set(bytes_of(client, RAW))) == 1
    assert all(raw.startswith(b"bad") for raw in kept(client))


def test_a_letter_that_was_moved_makes_room(memd: Memd, client: redis.Redis, few: Settings) -> None:
    """Retried and dropped letters leave their row with everything else."""
    turn = {"role": "user", "content": "I like tea."}
    for number in range(4):  # refused by other settings, so that a retry moves them
        raw = orjson.dumps({"thread_id": f"t{number}", "user_id": "ana", "messages": [turn]})
        client.rpush(RAW, raw)
        send(client, verbs.take_dead(raw, RAW, Rejected("E_PUSH_SIZE", "a smaller limit, once")))
    first, second, *others = memd.dead()
    assert (memd.retry([first]), memd.drop([second])) == (1, 1)
    assert client.zcard(f"{P}:deadraw:{RAW}") == 2
    assert memd.drop(others) == 2
    assert not client.exists(f"{P}:deadraw:{RAW}")
    assert client.llen(RAW) == 1


def test_status_and_doctor_say_so(client: redis.Redis, few: Settings, cli: Cli) -> None:
    """A full list is a warning of the doctor, and status counts what was discarded."""
    flood(client, RAW, 7)
    limits = {"MEMD_DEAD__RAW_CAP": "5"}
    assert f"{RAW} 2" in cli("status", **limits).stdout
    report = cli("doctor", **limits).stdout
    assert "2 letters were discarded" in report


def test_the_scheduler_caps_a_real_flood(client: redis.Redis, few: Settings) -> None:
    """Many bad pushes by RPUSH: all are taken in, and the cap holds at every moment after."""
    client.rpush(RAW, *(b"bad %d" % number for number in range(500)))
    with part("scheduler", few):
        wait_for(lambda: client.llen(RAW) == 0, "all are taken in")
    assert len(kept(client)) == 5
    assert client.hget(f"{P}:stats", "dead") == b"500"


def bytes_of(client: redis.Redis, source: str) -> tuple[int, int]:
    """The bytes of a list's letters, and what the counter says."""
    letters = execute(client, "ZRANGE", f"{P}:deadraw:{source}", 0, -1)
    held = sum(len(execute(client, "HGET", f"{P}:dead:{letter.decode()}", ".raw")) for letter in letters)
    return held, int(client.hget(f"{P}:stats", f"raw_bytes:{source}") or 0)


def bad(client: redis.Redis, source: str, size: int) -> bytes:
    """One push that cannot be taken in, of this many bytes."""
    raw = b"bad".ljust(size)
    client.rpush(source, raw)
    assert send(client, verbs.take_dead(raw, source, Rejected("E_JSON", "not valid JSON")))
    return raw


def test_a_flood_of_large_letters_is_capped_by_its_bytes(
    memd: Memd, client: redis.Redis, configured: Configured, cli: Cli
) -> None:
    """However few: never more than the cap, the newest stay, the others are counted, and the doctor says so."""
    settings = configured(client__apps=["shop"], dead__raw_cap_mb=1)
    library.install(client, settings)
    letter = bury_a_context(memd, client, settings)
    mine = flood(client, SHOP, 3)
    for size in (300_000, 300_001, 300_002, 300_003, 300_004):
        newest = bad(client, RAW, size)
        held, counted = bytes_of(client, RAW)
        assert (held <= 1_000_000, held) == (True, counted)
        assert newest in kept(client)
    assert len(kept(client) - set(mine)) == 3
    assert set(mine) <= kept(client)
    with Memd(settings) as app:
        assert (app.status().discarded, app.dead_letter(letter) is not None) == ({RAW: 2}, True)
    assert "2 letters were discarded" in cli("doctor", MEMD_DEAD__RAW_CAP_MB="1").stdout


def test_small_letters_give_way_to_a_large_one(memd: Memd, client: redis.Redis, configured: Configured) -> None:
    """As many as it takes; one that is larger than the cap is not kept; and dropped letters leave the count."""
    library.install(client, configured(dead__raw_cap_mb=1))
    for _ in range(60):
        bad(client, RAW, 10_000)
    bad(client, RAW, 900_000)
    assert (client.zcard(f"{P}:deadraw:{RAW}"), bytes_of(client, RAW)) == (11, (1_000_000, 1_000_000))
    first, second = memd.dead()[:2]
    assert (memd.retry([first]), memd.drop([first, second])) == (0, 2)
    assert len(set(bytes_of(client, RAW))) == 1
    bad(client, RAW, 2_000_000)
    assert (kept(client), bytes_of(client, RAW)) == (set(), (0, 0))


def test_the_defaults() -> None:
    """10,000 letters and 64 MB a list, for 30 days."""
    dead = Settings().dead
    assert (dead.raw_cap, dead.raw_cap_mb, dead.raw_ttl_s) == (10_000, 64, 30 * 86_400)
