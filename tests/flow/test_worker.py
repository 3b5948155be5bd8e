"""The RQ side: bells are only hints, and a job can run nothing but the drain."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import redis
from rq.exceptions import StopRequested
from support import environment, make_settings, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.errors import InboxUnavailable, NotReady
from memd.events import logger
from memd.inbox.bell import bell_queue, ring
from memd.inbox.connection import connect
from memd.inbox.outage import Outage
from memd.ops import server
from memd.workers import drain
from memd.workers.job import BellJob, RefusedJob
from memd.workers.worker import BellWorker, Stop, pause_after

pytestmark = pytest.mark.timing

MESSAGES = [
    {"role": "user", "content": "I live in Porto.", "id": "1"},
    {"role": "assistant", "content": "Nice.", "id": "2"},
]


def forge(client: redis.Redis, name: str, **fields: str | bytes) -> None:
    """A foreign job in our queue."""
    client.hset(f"rq:job:{name}", items=[part for field in fields.items() for part in field])
    client.rpush("rq:queue:memd", name)


def test_hostile_jobs_are_harmless_and_the_bell_behind_them_runs(
    memd: Memd, client: redis.Redis, settings: Settings
) -> None:
    """Forged functions, callbacks and broken fields run nothing and stop no worker."""
    target = settings.data_dir / "run"
    call = orjson.dumps(["os.mkdir", None, [str(target)], {}])
    forge(client, "forged", data=zlib.compress(call), origin="memd")
    forge(client, "plain", data=call, origin="memd")
    forge(client, "broken", data=b"\x80garbage", timeout="abc", result_ttl="x", enqueued_at="never", status="odd")
    forge(
        client, "callback", data=zlib.compress(call), success_callback_name="os.mkdir", failure_callback_name="os.mkdir"
    )
    forge(client, "empty", origin="memd")
    forge(client, "bomb", data=zlib.compress(b"[" * 50_000_000))
    client.rpush("rq:queue:memd", "nowhere")
    memd.push(MESSAGES, thread_id="t", user_id="ana", now=True)
    with connect(settings) as own:
        ring(bell_queue(own))
    with part("worker", settings) as worker:
        wait_for(lambda: memd.document("ana")["facts"], "the bell behind the hostile jobs was answered")
        assert worker.poll() is None
    assert not target.exists()


def test_the_patterns_are_compiled_before_the_wait_for_a_bell(client: redis.Redis) -> None:
    """So the first due key after a start does not wait for them."""
    drain.prepare.cache_clear()
    worker = BellWorker([bell_queue(client, BellJob)], connection=client, job_class=BellJob)
    worker.stop, worker.outage = Stop(), Outage(logger())
    worker.register_birth()
    assert worker.dequeue_job_and_maintain_ttl(None) is None
    assert drain.prepare.cache_info().currsize == 1
    gc.unfreeze()  # what a worker's parent gives up is the rest of the tests' here


def test_a_worker_that_is_told_to_stop_compiles_nothing(client: redis.Redis) -> None:
    """Also where the signal came before RQ handles any: then only memd knows of it."""
    drain.prepare.cache_clear()
    worker = BellWorker([bell_queue(client, BellJob)], connection=client, job_class=BellJob)
    worker.stop = Stop()
    worker.stop.requested = True
    with pytest.raises(StopRequested):
        worker.dequeue_job_and_maintain_ttl(None)
    assert drain.prepare.cache_info().currsize == 0


@pytest.mark.parametrize(
    "data", [b"", b"x", zlib.compress(b'["os.getcwd",null,[],{}]'), b'["workers.drain.drain",null,["1","2"],{}]']
)
def test_only_the_bell_itself_is_the_bell(client: redis.Redis, data: bytes) -> None:
    """Any other bytes become a job that fails by itself."""
    job = BellJob("x", connection=client)
    job.restore({b"data": data})
    with pytest.raises(RefusedJob):
        job.func()


def test_lost_and_needless_bells_change_nothing(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Deleted bells are rung again; ten extra bells end by themselves."""
    with connect(settings) as own:
        queue = bell_queue(own)
        for _ in range(10):
            ring(queue)
        memd.push(MESSAGES, thread_id="t", user_id="ana")
        client.delete("rq:queue:memd")
        with part("scheduler", settings), part("worker", settings):
            wait_for(lambda: memd.document("ana")["facts"], "it is remembered all the same")


def test_a_worker_outlives_its_server(
    memd: Memd, client: redis.Redis, settings: Settings, configured: Callable[..., Settings]
) -> None:
    """After the server has cut all connections, worker and scheduler reconnect by themselves."""
    with part("scheduler", settings), part("worker", settings) as worker:
        wait_for(lambda: memd.status().workers, "the worker is there")
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # type: ignore[no-untyped-call]
        memd.push(MESSAGES, thread_id="t", user_id="ana", now=True)
        wait_for(lambda: memd.document("ana")["facts"], "the push is remembered")
        os.kill(worker.pid, 0)


def test_outages_leave_no_descriptors_behind(data_dir: Path) -> None:
    """A worker whose server is killed repeatedly during its work leaks no files and no threads."""
    settings = make_settings(data_dir, None, drain__linger_s=30, server__appendfsync="always")
    process = server.start(settings)
    try:
        with part("scheduler", settings), part("worker", settings) as worker, Memd(settings) as app:
            stored_at_work(app, worker.pid, 1)
            first = open_now(worker.pid)
            for number in range(2, 5):
                process.kill()
                process.wait()
                wait_for(lambda: not children(worker.pid), "the drain has given its server up")
                process = server.start(settings)
                stored_at_work(app, worker.pid, number)
            wait_for(lambda: open_now(worker.pid) <= first, f"no more descriptors and threads than {first}")
    finally:
        server.stop(process)


def stored_at_work(app: Memd, worker: int, number: int) -> None:
    """Push for the `number`th time, and wait until it is stored by a drain that lingers."""
    turns = [{"role": "user", "content": "I live in Porto.", "id": str(number)}]

    def pushed() -> bool:
        try:
            return app.push(turns, thread_id="t", user_id="ana", now=True).id is not None
        except (InboxUnavailable, NotReady):
            return False

    wait_for(pushed, "the inbox takes a push")
    wait_for(lambda: app.status().stored == number, "it is stored")
    assert children(worker)


def test_the_pause_of_a_worker_grows_only_while_nothing_comes_of_its_tries() -> None:
    """The pause doubles up to ten seconds; a bell, or a second with the server, resets it."""
    assert [pause_after(pause, False, 0.01) for pause in (0.1, 3.2, 6.4)] == [0.2, 6.4, 10.0]
    assert pause_after(10.0, True, 0.01) == 0.1
    assert pause_after(10.0, False, 1.5) == 0.1


def children(pid: int) -> list[str]:
    """The forked children of a process."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def open_now(pid: int) -> tuple[int, int]:
    """How many descriptors and threads a process has."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir())), len(list(Path(f"/proc/{pid}/task").iterdir()))


DRAIN = """
import re._compiler
from memd import config
from memd.events import logger
from memd.extraction import preload
from memd.workers import drain
settings = config.load().settings
logger()
preload(settings.extraction)
drain.configure(settings, "worker")
drain.prepare()
sources, compile = [], re._compiler.compile
re._compiler.compile = lambda source, flags=0: sources.append(source) or compile(source, flags)
drain.drain(str(drain.FUNCTIONS_VERSION))
print([source for source in sources if "Porto" not in source])
"""


@pytest.mark.long
def test_a_drain_compiles_no_pattern_of_its_own(memd: Memd, settings: Settings) -> None:
    """A worker has compiled all of them before it forks the child that drains; but for those made of a quote."""
    turns = [
        {"role": "user", "content": "Forget what I said about my sister. No, I meant Porto. 别记这个。", "id": "3"},
        {"role": "assistant", "content": "Done.", "id": "4"},
        {"role": "user", "content": "Perfect, my password is kestrel-44-heron.", "id": "5"},
    ]
    memd.push([*MESSAGES, *turns], thread_id="t", user_id="ana", now=True)
    drain = [sys.executable, "-c", DRAIN]
    done = subprocess.run(drain, env=environment(settings), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert memd.document("ana")["facts"]
