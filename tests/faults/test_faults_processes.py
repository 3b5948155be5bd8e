"""What happens to processes: killed, frozen, told to stop, doubled, mixed; a queue that loses keys, a full server."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
import redis
from support import ENDS_S, ended, environment, execute, exit_code, make_settings, part, wait_for
from support.fault_support import OwnServer, events, family, frozen, has_logged, is_stopped, once, raw, tell, tell_again
from support.proxy import Proxy

from memd.client import Memd
from memd.config import Settings
from memd.errors import InboxFull, ServerUnfit
from memd.inbox import library, verbs
from memd.inbox.connection import connect
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]
PATHS = {"PYTHONPATH": str(Path(__file__).parents[1])}
"""The environment of a worker that has a store of the tests."""

RANDOM = random.Random(11)  # noqa: S311  (a repeatable choice of victims)


@pytest.fixture
def own(data_dir: Path) -> Settings:
    """Settings whose server is one of this test's own, in the data folder."""
    return make_settings(data_dir, None)


def asking(settings: Settings, model: ModelServer, **changes: object) -> Settings:
    """The same settings, with the HTTP model."""
    return make_settings(
        settings.data_dir,
        settings.redis_url.reveal() if settings.redis_url else None,
        extraction__extractor="anthropic",
        extraction__base_url=model.base_url,
        extraction__api_key="test-key",
        **changes,
    )


# --- R2, R3: a server at its limit, or unfit ------------------------------------------------------------------------

FILLER = "x" * 20_000


def tell_much(app: Memd, number: int) -> None:
    """A context with something to remember and much beside it."""
    turns = [
        {"role": "user", "content": f"I like tea number {number}.", "id": f"u{number}"},
        {"role": "assistant", "content": FILLER, "id": f"a{number}"},
    ]
    app.push(turns, thread_id=f"thread-{number}", user_id=f"u{number % 7}")


@pytest.mark.long
def test_pushes_are_refused_near_the_memory_limit_until_the_backlog_has_drained(own: Settings) -> None:
    """R2: near the limit pushes are refused with InboxFull; the backlog drains to nothing, and they are taken again."""
    with OwnServer(own), Memd(own) as app, connect(own) as control, part("scheduler", own):
        has_logged(own, "scheduler_started", 1)
        limit = control.info("memory")["used_memory"] + 4_000_000
        control.config_set("maxmemory", limit)
        accepted = 0

        def is_filled() -> bool:
            """What the server frees meanwhile, buffers of its own, is filled again."""
            nonlocal accepted
            with suppress(InboxFull):
                while control.info("memory")["used_memory"] < 0.92 * limit:
                    tell_much(app, accepted)
                    accepted += 1
            return is_refused(app)

        wait_for(is_filled, "the door is closed")
        assert control.info("memory")["used_memory"] < limit
        with part("worker", own):
            assert set(app.flush(wait=True).counts) == {"stored"}
            wait_for(lambda: not is_refused(app), "the door is open again")
            assert not app.flush(wait=True).timed_out
            assert once(app, range(accepted), 7)


def is_refused(app: Memd) -> bool:
    """Whether a push, always the same one, is refused for memory."""
    try:
        tell(app, "another", 0)
    except InboxFull:
        return True
    return False


def test_at_the_memory_limit_workers_drain_without_rq(own: Settings) -> None:
    """R2: far beyond the limit RQ is refused everything; scheduler and worker start and drain all the same, also with
    other settings than the inbox's, which the server has no room for."""
    with OwnServer(own), Memd(own) as app, connect(own) as control:
        library.install(control, make_settings(own.data_dir, None, scheduler__quiet_s=0.2))
        for number in range(40):
            if number % 2:
                tell(app, f"u{number % 7}", number)
            else:
                control.rpush(verbs.RAW, raw(f"u{number % 7}", number))
        control.config_set("maxmemory", 1)
        with pytest.raises(redis.OutOfMemoryError):
            control.rpush(verbs.RAW, raw("u0", 40))
        with pytest.raises(InboxFull):
            tell(app, "u0", 40)
        with part("scheduler", own), part("worker", own):
            wait_for(lambda: app.status().stored == 40, "the backlog has drained")
            assert once(app, range(40), 7)
            assert len(events(own, "scheduler", "bell_refused")) <= 1
            status = app.status()
            assert (status.pending, status.claimed, sum(status.raw.values()), status.dead) == (0, 0, 0, 0)
            assert status.workers == ()
            control.config_set("maxmemory", 0)
            wait_for(lambda: app.status().workers, "the worker is one of RQ's again")
            tell_again(app, "u0", 42)
            assert ended(app) == {"stored": 41}


def test_a_worker_that_drains_without_rq_stops_when_told(own: Settings) -> None:
    """W6: at the memory limit, in the model call: SIGTERM reaches the drain, which gives its claim back; code 0."""
    with ModelServer(delay=30) as model, OwnServer(own), Memd(own) as app, connect(own) as control:
        settings = asking(own, model)
        library.install(control, settings)
        tell(app, "ana", 1)
        control.config_set("maxmemory", 1)
        with part("scheduler", settings), part("worker", settings) as worker:
            model.wait_for_calls(1, 20)
            worker.send_signal(signal.SIGTERM)
            assert exit_code(worker, 8) == 0
            assert (app.status().claimed, app.status().pending) == (0, 1)


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [("maxmemory-policy", "allkeys-lru", "allkeys-lru"), ("appendonly", "no", "appendonly is off")],
)
def test_an_unfit_server_is_refused_or_said(own: Settings, setting: str, value: str, words: str) -> None:
    """R3: a server that evicts or does not persist: no start, code 78; with the flag a start, and status says so."""
    with OwnServer(own), Memd(own) as app, connect(own) as control:
        control.config_set(setting, value)
        done = subprocess.run(
            [sys.executable, "-m", "memd", "scheduler"],
            env=environment(own),
            capture_output=True,
            text=True,
            check=False,
            timeout=ENDS_S,
        )
        assert done.returncode == ServerUnfit.exit_code == 78
        (line,) = done.stderr.splitlines()
        assert words in line
        with part("scheduler", make_settings(own.data_dir, None, inbox__allow_unfit_server=True)):
            has_logged(own, "scheduler_started", 1)
            (problem,) = app.status().server["unfit"]
            assert words in problem
            assert tell(app, "u0", 0)


# --- S1: many schedulers --------------------------------------------------------------------------------------------


def assert_each_once(app: Memd, control: redis.Redis, numbers: int, raws: int) -> None:
    """Each context was stored once, each raw push taken once, and no claim was ever lost."""
    assert set(app.flush(wait=True).counts) <= {"stored"}
    assert once(app, range(numbers), 7)
    status = app.status()
    assert (status.pushes, status.stored, status.dead) == (numbers, numbers, 0)
    assert (status.pending, status.claimed, sum(status.raw.values())) == (0, 0, 0)
    assert execute(control, "HGET", f"{verbs.P}:taken", verbs.RAW) == str(raws).encode()
    assert execute(control, "HGET", f"{verbs.P}:stats", "released:expired") is None


def tell_both(app: Memd, control: redis.Redis, number: int) -> None:
    """A context by either door, in turn."""
    if number % 2:
        tell(app, f"u{number % 7}", number)
    else:
        control.rpush(verbs.RAW, raw(f"u{number % 7}", number))


@pytest.mark.long
@pytest.mark.parametrize("schedulers", [2, 5])
def test_many_schedulers_do_what_one_does(memd: Memd, client: redis.Redis, settings: Settings, schedulers: int) -> None:
    """S1: two or five at once: each raw push is taken once, each context stored once."""
    with ExitStack() as stack:
        for _ in range(schedulers):
            stack.enter_context(part("scheduler", settings))
        stack.enter_context(part("worker", settings))
        has_logged(settings, "scheduler_started", schedulers)
        for number in range(200):
            tell_both(memd, client, number)
        assert_each_once(memd, client, 200, 100)


def test_a_scheduler_killed_again_and_again_loses_nothing(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """S1: killed at six random moments of its work, each time followed by another one: the same result."""
    with ExitStack() as stack:
        stack.enter_context(part("worker", settings))
        for kill in range(6):
            scheduler = stack.enter_context(part("scheduler", settings))
            for number in range(20 * kill, 20 * kill + 20):
                tell_both(memd, client, number)
            goal = 10 * kill + RANDOM.randrange(10)
            wait_for(partial(has_taken, client, goal), "it is at work")
            scheduler.kill()
            scheduler.wait()
        stack.enter_context(part("scheduler", settings))
        assert_each_once(memd, client, 120, 60)


def has_taken(client: redis.Redis, goal: int) -> bool:
    """Whether so many raw pushes were taken in."""
    return int(execute(client, "HGET", f"{verbs.P}:taken", verbs.RAW) or 0) >= goal


@pytest.mark.long
def test_a_frozen_scheduler_that_thaws_changes_nothing(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """S1: one of two stands still in the middle of its work while the other does all of it, and then goes on."""
    with ExitStack() as stack:
        first, _ = (stack.enter_context(part("scheduler", settings)) for _ in range(2))
        stack.enter_context(part("worker", settings))
        has_logged(settings, "scheduler_started", 2)
        for freeze in range(5):
            for number in range(40 * freeze, 40 * freeze + 20):
                tell_both(memd, client, number)
            wait_for(partial(has_taken, client, 20 * freeze + RANDOM.randrange(10)), "they are at work")
            with frozen([first.pid]):
                for number in range(40 * freeze + 20, 40 * freeze + 40):
                    tell_both(memd, client, number)
                assert not memd.flush(wait=True).timed_out
        assert_each_once(memd, client, 200, 100)


# --- Q1: RQ loses its keys ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_keys_that_rq_loses_cost_nothing(configured: Configured, client: redis.Redis) -> None:
    """Q1: keys of RQ are deleted at random all the time: bells are rung again, workers are found again."""
    settings = configured(drain__linger_s=0, drain__slice_s=1)
    library.install(client, settings)
    deleted: Counter[bytes] = Counter()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings), part("worker", settings):
        wait_for(lambda: len(app.status().workers) == 2, "both workers listen")
        for number in range(120):
            tell(app, f"u{number % 7}", number)
            keys: list[bytes] = execute(client, "KEYS", "rq:*")
            for key in RANDOM.sample(keys, RANDOM.randrange(len(keys) + 1)):
                client.delete(key)
                deleted[key.split(b":")[1]] += 1
            if number % 4 == 3:
                wait_for(partial(has_stored, app, number - 8), "it goes on")
        wait_for(lambda: not app.flush(wait=True, timeout_s=1).timed_out, "all has ended")
        assert once(app, range(120), 7)
        tell(app, "another", 1)
        assert ended(app) == {"stored": 121}
        assert set(deleted) >= {b"worker", b"workers", b"queue", b"job"}


def has_stored(app: Memd, goal: int) -> bool:
    """Whether so many contexts were stored."""
    return app.status().stored >= goal


# --- W4, W5: one writer ---------------------------------------------------------------------------------------------


def test_a_worker_frozen_past_its_leases_changes_nothing(own: Settings) -> None:
    """W4: frozen in 16 model calls while another worker stores the same and a later batch: its thaw changes no byte."""
    with ModelServer(delay=2) as model, OwnServer(own), Memd(own) as app:
        settings = asking(own, model, drain__lease_s=1, drain__concurrency=16)
        with part("scheduler", settings), ExitStack() as stack:
            stale = stack.enter_context(part("worker", settings))
            has_logged(own, "scheduler_started", 1)
            for number in range(16):
                tell(app, f"u{number}", number)
            model.wait_for_calls(16, 20)
            with frozen(family(stale.pid)):
                model.delay = 0
                for number in range(16, 32):
                    tell(app, f"u{number % 16}", number)
                stack.enter_context(part("worker", settings))
                assert not app.flush(wait=True).timed_out
                documents = {path: path.read_bytes() for path in own.data_dir.glob("users/*/memory.json")}
            wait_for(lambda: len(events(own, "worker", "claim_lost")) >= 16, "it has found out for each claim")
        assert documents == {path: path.read_bytes() for path in own.data_dir.glob("users/*/memory.json")}
        assert once(app, range(32), 16)
        assert app.status().dead == 0


def test_a_worker_frozen_in_a_commit_loses_nothing(memd: Memd, configured: Configured, client: redis.Redis) -> None:
    """W4: frozen with the lock held, past its leases: who took over waits for the lock, and finds what was stored."""
    settings = configured(drain__lease_s=1, store__class="support.fault_stores.FreezingStore")
    library.install(client, settings)
    with part("scheduler", settings), ExitStack() as stack:
        stale = stack.enter_context(part("worker", settings, PATHS))
        for number in range(20):
            tell(memd, f"u{number % 10}", number)
        wait_for(lambda: any(map(is_stopped, family(stale.pid))), "it stands still in a commit")
        has_logged(settings, "lease_expired", 10)
        stack.enter_context(part("worker", configured(drain__lease_s=1)))
        wait_for(lambda: memd.status().stored >= 5, "the other worker has taken over")
        os.kill(next(filter(is_stopped, family(stale.pid))), signal.SIGCONT)
        assert memd.flush(wait=True).counts.keys() <= {"stored"}
    assert once(memd, range(20), 10)
    assert {memd.document(f"u{user}")["revision"] for user in range(10)} == {2}


@pytest.mark.long
def test_a_hundred_contexts_of_one_user_have_one_writer_at_a_time(
    memd: Memd, configured: Configured, client: redis.Redis, data_dir: Path
) -> None:
    """W5: four workers, one user: each loads and commits before the next one loads, and no update is lost."""
    settings = configured(store__class="support.fault_stores.WritingDownStore", apply__max_facts=200)
    library.install(client, settings)
    with ExitStack() as stack:
        stack.enter_context(part("scheduler", settings))
        for _ in range(4):
            stack.enter_context(part("worker", settings, PATHS))
        wait_for(lambda: len(memd.status().workers) == 4, "all workers listen")
        for number in range(100):
            tell(memd, "u0", number)
        assert memd.flush(wait=True).counts.keys() <= {"stored"}
    assert memd.status().stored == 100
    assert once(memd, range(100), 1)
    assert memd.document("u0")["revision"] == 100
    steps = (data_dir / "steps").read_text().split()
    assert [step for step, _ in (row.split(":") for row in steps)] == ["load", "commit"] * 100
    assert steps[::2] == [step.replace("commit", "load") for step in steps[1::2]]


def test_a_lease_is_held_for_as_long_as_the_work_takes(
    memd: Memd, configured: Configured, client: redis.Redis, data_dir: Path
) -> None:
    """W5: a commit that takes three leases: they are renewed, nobody else gets the context, it is stored once."""
    settings = configured(store__class="support.fault_stores.HangingStore", drain__lease_s=1)
    library.install(client, settings)
    url = settings.redis_url.reveal() if settings.redis_url else ""
    with Proxy(url) as proxy, part("scheduler", settings):
        slow = make_settings(data_dir, proxy.url, store__class="support.fault_stores.HangingStore", drain__lease_s=1)
        with part("worker", slow, PATHS):
            tell(memd, "u0", 0)
            wait_for((data_dir / "in-commit").exists, "it is in the commit")
            proxy.commands.clear()
            wait_for(lambda: proxy.commands["memd_extend_1"] >= 9, "its lease was renewed every third of a second")
            (data_dir / "go").touch()
            assert memd.flush(wait=True).counts.keys() <= {"stored"}
    assert once(memd, range(1), 1)
    assert not events(settings, "scheduler", "lease_expired")


# --- W6: told to stop -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
def test_an_idle_worker_stops_when_told(memd: Memd, settings: Settings, client: redis.Redis, times: int) -> None:
    """W6: SIGTERM while it waits for a bell, once or twice: it ends at once, with code 0, and RQ forgets it."""
    with part("worker", settings) as worker:
        wait_for(lambda: "blmove" in {row["cmd"] for row in client.client_list()}, "it waits for a bell")
        for _ in range(times):
            worker.send_signal(signal.SIGTERM)
        assert exit_code(worker, 5) == 0
        assert memd.status().workers == ()


@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_told_to_stop_in_a_commit_finishes_it(
    memd: Memd, configured: Configured, client: redis.Redis, data_dir: Path, times: int
) -> None:
    """W6: SIGTERM in the commit, once or twice: the commit ends, is acked, and the worker ends with code 0."""
    settings = configured(store__class="support.fault_stores.HangingStore")
    library.install(client, settings)
    with part("scheduler", settings), part("worker", settings, PATHS) as worker:
        tell(memd, "u0", 0)
        wait_for((data_dir / "in-commit").exists, "it is in the commit")
        for _ in range(times):
            worker.send_signal(signal.SIGTERM)
        wait_for(lambda: worker.poll() is None and len(family(worker.pid)) == 2, "it waits for the commit")
        (data_dir / "go").touch()
        assert exit_code(worker, 5) == 0
        status = memd.status()
    assert (status.stored, status.pending, status.claimed) == (1, 0, 0)
    assert once(memd, range(1), 1)


def test_a_worker_told_again_and_again_loses_nothing(
    memd: Memd, configured: Configured, client: redis.Redis, data_dir: Path
) -> None:
    """W6: SIGTERM without end while a commit hangs: it ends soon, its claim comes back and is stored by another one."""
    settings = configured(store__class="support.fault_stores.HangingStore", drain__lease_s=1)
    library.install(client, settings)
    with part("scheduler", settings):
        with part("worker", settings, PATHS) as worker:
            tell(memd, "u0", 0)
            wait_for((data_dir / "in-commit").exists, "it is in the commit")

            def has_ended() -> bool:
                worker.send_signal(signal.SIGTERM)
                return worker.poll() is not None

            wait_for(has_ended, "it has ended")
        with part("worker", configured(drain__lease_s=1)):
            assert ended(memd) == {"stored": 1}
    assert once(memd, range(1), 1)
