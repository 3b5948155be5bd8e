"""One inbox, one set of settings: a scheduler with others waits for nobody, and takes over only when it is told to."""

from __future__ import annotations

import redis
from support import MakeSettings, ended, execute, exit_code, part, wait_for

from memd.client import Memd
from memd.errors import OtherSettings
from memd.inbox.verbs import P
from memd.testing import ModelServer


def quiet_ms(client: redis.Redis) -> bytes | str | None:
    """The quiet time that the inbox goes by."""
    return client.hget(f"{P}:config", "quiet_ms")


def test_a_scheduler_with_other_settings_ends_unless_it_takes_over(
    client: redis.Redis, configured: MakeSettings
) -> None:
    """Code 78 and the names of the settings; after `--take-over` it is the one before that ends so."""
    client.delete(f"{P}:config")
    one, other = configured(scheduler__quiet_s=1), configured(scheduler__quiet_s=0.5, drain__lease_s=9)
    with part("scheduler", one) as first:
        wait_for(lambda: client.hget(f"{P}:config", "beat"), "the first one is alive")
        with part("scheduler", other) as second:
            assert exit_code(second, 20) == OtherSettings.exit_code == 78
        assert quiet_ms(client) == b"1000"
        with part("scheduler", one), part("scheduler", other, words=["--take-over"]):
            assert exit_code(first, 20) == 78
            assert quiet_ms(client) == b"500"
    said = "".join(log.read_text() for log in sorted(one.data_dir.glob("scheduler*.log")))
    assert said.count("E_OTHER_SETTINGS") >= 2
    assert "quiet_ms, lease_ms" in said
    assert "Traceback" not in said


def test_a_scheduler_that_was_killed_keeps_nobody_out(client: redis.Redis, configured: MakeSettings) -> None:
    """One with other settings starts when its beats are missing."""
    one, other = configured(scheduler__quiet_s=1), configured(scheduler__quiet_s=0.5)
    client.delete(f"{P}:config")
    with part("scheduler", one) as first:
        wait_for(lambda: client.hget(f"{P}:config", "beat"), "the first one is alive")
        first.kill()
        first.wait()
        with part("scheduler", other):
            wait_for(lambda: quiet_ms(client) == b"500", "the other one starts")


def test_a_worker_keeps_the_leases_that_the_inbox_gives(
    client: redis.Redis, memd: Memd, asking: MakeSettings, model: ModelServer
) -> None:
    """Its own settings may name longer ones: then it would renew a lease when that is long over."""
    model.hold()
    theirs, ours = asking(drain__lease_s=3_600), asking(drain__lease_s=3)
    leases: dict[bytes, float] = {}

    def renewed() -> bool:
        found = dict(execute(client, "ZRANGE", f"{P}:claimed", 0, -1, "WITHSCORES"))
        return any(end > leases.setdefault(claim, end) for claim, end in found.items())

    with part("scheduler", ours), part("worker", theirs):
        memd.push([{"role": "user", "content": "I live in Porto.", "id": "1"}], thread_id="t", user_id="ana", now=True)
        wait_for(renewed, "a lease is renewed")
        model.go_on()
        assert ended(memd) == {"stored": 1}


def test_orders_are_no_lower_where_a_server_took_over(client: redis.Redis, memd: Memd) -> None:
    """It may lack the last ones that the primary before gave, and what is stored, or to be forgotten, has these."""
    before = int(client.time()[0]) * 1000
    for fails_over in (0, 1):
        client.hset(f"{P}:config", "failover", fails_over)
        client.set(f"{P}:order", 7)
        memd.push([{"role": "user", "content": f"I live in Porto {fails_over}."}], thread_id="t", user_id="ana")
        last = int(client.get(f"{P}:order") or 0)
        assert last >= before if fails_over else last == 8
