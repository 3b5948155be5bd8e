"""One inbox, one set of settings: a scheduler with others waits for nobody, and takes over only when it is told to."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
import pytest
import redis
from support import MakeSettings, ended, execute, exit_code, part, wait_for
from support.fault_support import events, has_logged
from support.running_up import up

from memd.client import Memd
from memd.errors import OtherSettings
from memd.inbox import library
from memd.inbox.decoding import text
from memd.inbox.ruling import Ruling
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
        with part("scheduler", other, words=["--take-over"]):
            assert exit_code(first, 20) == 78
            with part("scheduler", one) as third:
                assert exit_code(third, 20) == 78
            assert quiet_ms(client) == b"500"
        with part("scheduler", one) as fourth, part("scheduler", other, words=["--take-over"]):
            assert exit_code(fourth, 20) == 78
            assert quiet_ms(client) == b"500"
    said = "".join(log.read_text() for log in sorted(one.data_dir.glob("scheduler*.log")))
    assert said.count("E_OTHER_SETTINGS") >= 2
    assert "quiet_ms, lease_ms" in said
    assert "Traceback" not in said


def test_settings_replace_only_those_that_were_seen(client: redis.Redis, configured: MakeSettings) -> None:
    """Whoever was faster than a scheduler that starts keeps its settings; a beat meanwhile is nobody's settings."""
    client.delete(f"{P}:config")
    one, other = configured(scheduler__quiet_s=1), configured(scheduler__quiet_s=0.5)
    nothing = library.differing(client, one).seen
    assert library.install(client, one, nothing)
    ones = library.differing(client, one).seen
    assert not library.install(client, other, nothing)
    assert quiet_ms(client) == b"1000"
    client.hset(f"{P}:config", "beat", 1)
    assert library.install(client, other, ones)
    assert not library.install(client, one, ones)
    assert quiet_ms(client) == b"500"


def test_one_that_is_replaced_before_its_first_beat_ends(client: redis.Redis, configured: MakeSettings) -> None:
    """It has set the inbox up, and finds other settings: two with different ones never go on side by side."""
    client.delete(f"{P}:config")
    one, other = configured(scheduler__quiet_s=1), configured(scheduler__quiet_s=0.5)
    first = Ruling(one, client)
    assert library.install(client, one, first.require_no_rival(lambda: False))
    first.installed()
    assert library.install(client, other, Ruling(other, client).require_no_rival(lambda: False))
    with pytest.raises(OtherSettings):
        first.beat()


def test_on_a_full_server_a_scheduler_with_other_settings_ends_as_well(
    client: redis.Redis, configured: MakeSettings
) -> None:
    """Its limit does not keep the one that runs from saying that it is alive."""
    client.delete(f"{P}:config")
    one, other = configured(scheduler__quiet_s=1), configured(scheduler__quiet_s=0.5)
    with part("scheduler", one):
        wait_for(lambda: client.hget(f"{P}:config", "beat"), "the first one is alive")
        client.config_set("maxmemory", 1)
        try:
            with part("scheduler", other) as second:
                assert exit_code(second, 20) == OtherSettings.exit_code
        finally:
            client.config_set("maxmemory", 0)
    assert quiet_ms(client) == b"1000"


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


def test_one_that_stops_beside_others_lets_nobody_in(client: redis.Redis, configured: MakeSettings) -> None:
    """Those with the same settings go on; when the last of them has stopped, nobody has to wait."""
    one, other = configured(scheduler__quiet_s=1, log__format="json"), configured(scheduler__quiet_s=0.5)
    client.delete(f"{P}:config")
    with part("scheduler", one) as second:
        has_logged(one, "scheduler_started", 1)
        beats = {client.hget(f"{P}:config", "beat")}
        with part("scheduler", one):
            has_logged(one, "scheduler_started", 2)
            for _ in range(4):  # each has seen a beat of the other
                wait_for(lambda: client.hget(f"{P}:config", "beat") not in beats, "they beat")
                beats.add(client.hget(f"{P}:config", "beat"))
        with part("scheduler", other) as rival:
            assert exit_code(rival, 20) == 78
        assert second.poll() is None


def test_an_upgrade_host_by_host_is_nobodys_rival(client: redis.Redis, configured: MakeSettings) -> None:
    """The newer build starts, even where a default has another value there; its settings hold, and the older one goes
    on beside it, and starts again."""
    client.delete(f"{P}:config")
    older, newer = configured(scheduler__quiet_s=1, log__format="json"), configured(scheduler__quiet_s=0.5)
    before = {"memd.inbox.library.BUILD": library.BUILD - 1}
    with part("scheduler", older, constants=before) as first:
        has_logged(older, "scheduler_started", 1)
        assert client.hget(f"{P}:config", "build") == str(library.BUILD - 1).encode()
        with part("scheduler", newer), part("scheduler", older, constants=before) as again:
            wait_for(lambda: quiet_ms(client) == b"500", "the newer one's settings hold")
            has_logged(older, "scheduler_started", 3)
            beat = client.hget(f"{P}:config", "beat")
            wait_for(lambda: client.hget(f"{P}:config", "beat") != beat, "they go on")
            assert (first.poll(), again.poll(), quiet_ms(client)) == (None, None, b"500")


def _are(client: redis.Redis, names: list[str], good: dict[Any, Any]) -> bool:
    return all(client.hget(f"{P}:config", name) == good[name.encode()] for name in names if name != "beat")


def test_what_was_edited_by_hand_is_put_back(client: redis.Redis, configured: MakeSettings, memd: Memd) -> None:
    """Whatever stands there instead; neither a scheduler nor a worker ends of it, nor one that starts."""
    settings = configured(log__format="json")
    edits: list[dict[Any, Any]] = [{"quiet_ms": "9"}, {"lease_ms": b"\xff", "beat": "x", "max_attempts": "-"}]
    with part("scheduler", settings) as first, part("worker", settings) as worker:
        has_logged(settings, "scheduler_started", 1)
        good = client.hgetall(f"{P}:config")
        for edit in edits:
            client.hset(f"{P}:config", mapping=edit)
            client.hdel(f"{P}:config", "backoff_ms")
            wait_for(partial(_are, client, [*edit, "backoff_ms"], good), "put back")
        found = {name for event in events(settings, "scheduler", "settings_edited") for name in event["names"]}
        assert found == {"quiet_ms", "backoff_ms", "lease_ms", "max_attempts"}
        with part("scheduler", settings) as second:
            has_logged(settings, "scheduler_started", 2)
            memd.push([{"role": "user", "content": "I live in Porto."}], thread_id="t", user_id="ana", now=True)
            assert ended(memd) == {"stored": 1}
            assert (first.poll(), second.poll(), worker.poll()) == (None, None, None)
    client.hset(f"{P}:config", mapping={"build": "x", "lease_ms": "x", "beat": "x", "total_day_tokens": "x"})
    with part("scheduler", settings):
        wait_for(
            lambda: client.hget(f"{P}:config", "lease_ms") == good[b"lease_ms"], "a scheduler that starts mends it"
        )
        assert client.hget(f"{P}:config", "build") == str(library.BUILD).encode()


@pytest.mark.long
def test_up_is_restarted_at_once_and_does_not_take_over_twice(client: redis.Redis, configured: MakeSettings) -> None:
    """Beside a scheduler with other settings it ends, with code 78. After a kill -9 it is ready with others, for the
    beats of the one before are missing. One that took over and is taken over in turn leaves it at that, however often
    its scheduler is restarted."""
    first, second = (configured(drain__workers=1, scheduler__quiet_s=quiet, log__format="json") for quiet in (1, 0.5))

    log = first.data_dir / "up.log"

    def logged(name: str, times: int = 1) -> bool:
        lines = (orjson.loads(line) for line in log.read_bytes().splitlines() if line.startswith(b"{"))
        return [line.get("event") for line in lines].count(name) >= times

    client.delete(f"{P}:config")
    with part("scheduler", first), up(second) as (process, _):
        assert exit_code(process, 60) == 78
    with up(first) as (process, _):
        wait_for(lambda: logged("up_ready"), "memd up is ready")
        process.kill()
        process.wait()
    with up(second) as (process, _):
        wait_for(lambda: logged("up_ready") and quiet_ms(client) == b"500", "the next one is ready")
    with up(first, {"memd.ops.supervisor.BACKOFF_MAX_S": 0.5}, ["--take-over"]) as (process, _):
        wait_for(lambda: logged("up_ready"), "memd up is ready")
        with part("scheduler", second, words=["--take-over"]) as other:
            wait_for(lambda: logged("part_waits", 3), "its scheduler is refused, and again")
            assert (process.poll(), other.poll(), quiet_ms(client)) == (None, None, b"500")
        wait_for(lambda: quiet_ms(client) == b"1000", "when the other one has stopped, it schedules again")


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
        of_a_push = text(client.hget(f"{P}:config", "push")).split()
        of_a_push[library.OF_A_PUSH.index("failover")] = str(fails_over)
        client.hset(f"{P}:config", "push", " ".join(of_a_push))
        client.set(f"{P}:order", 7)
        memd.push([{"role": "user", "content": f"I live in Porto {fails_over}."}], thread_id="t", user_id="ana")
        last = int(client.get(f"{P}:order") or 0)
        assert last >= before if fails_over else last == 8
