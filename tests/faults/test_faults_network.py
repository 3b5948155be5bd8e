"""What the network and the server may do: die, freeze, be slow, lose replies, refuse; and a model that half answers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import redis
from support import ENDS_S, ended, environment, execute, make_settings, part, wait_for
from support.fault_support import OwnServer, events, family, frozen, has_logged, once, raw, tell, tell_again
from support.proxy import Proxy

from memd.client import Memd
from memd.config import Settings
from memd.context import Context, Key, Message, identify
from memd.errors import AccountRefused, InboxUnavailable, NotAllowed
from memd.inbox import library, verbs
from memd.inbox.connection import TIMEOUT_S, connect, inbox_url, send
from memd.testing import ModelServer
from memd.testing.dialects import error_body

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]


@pytest.fixture
def proxy(server_url: str) -> Iterator[Proxy]:
    """A proxy before the real server."""
    with Proxy(server_url) as proxy:
        yield proxy


@pytest.fixture
def behind(proxy: Proxy, settings: Settings, client: redis.Redis) -> Callable[..., Settings]:
    """Settings that reach the real server through the proxy, written to it."""

    def make(**changes: object) -> Settings:
        slow = make_settings(settings.data_dir, proxy.url, **changes)
        library.install(client, slow)
        return slow

    return make


@pytest.fixture
def own(data_dir: Path) -> Settings:
    """Settings whose server is one of this test's own, in the data folder."""
    return make_settings(data_dir, None, server__appendfsync="always")


@contextmanager
def own_daemon(settings: Settings) -> Iterator[tuple[OwnServer, Memd]]:
    """A server of its own with a scheduler and a worker, which have started."""
    with (
        OwnServer(settings) as server,
        Memd(settings) as app,
        part("scheduler", settings),
        part("worker", settings),
    ):
        has_logged(settings, "scheduler_started", 1)
        wait_for(lambda: app.status().workers, "the worker listens")
        yield server, app


@pytest.mark.long
def test_a_server_killed_again_and_again_loses_nothing(own: Settings) -> None:
    """R1: five kills of the server while contexts come in: all are stored, once; each outage is logged once."""
    with own_daemon(own) as (server, app):
        for number in range(100):
            if number % 20 == 10:
                outages = number // 20 + 1
                server.kill()
                has_logged(own, "outage_began", outages)
                server.start()
                has_logged(own, "outage_ended", outages)
            tell_again(app, f"u{number % 7}", number)
        assert not app.flush(wait=True).timed_out
        assert once(app, range(100), 7)
        assert len(events(own, "scheduler", "outage_began")) == 5


def test_an_emptied_server_is_noticed_and_set_up_again(own: Settings) -> None:
    """R1: restarted without its data: said loudly, the documents are untouched, and workers are rung as before."""
    file = own.data_dir / "users" / "u0" / "memory.json"
    with own_daemon(own) as (server, app):
        tell(app, "u0", 0)
        assert ended(app) == {"stored": 1}
        document = file.read_bytes()
        server.kill()
        shutil.rmtree(own.data_dir / "server" / "appendonlydir")
        server.start()
        has_logged(own, "server_emptied", 1)
        assert events(own, "scheduler", "server_emptied")[0]["level"] == "error"
        assert file.read_bytes() == document
        tell_again(app, "u0", 1)
        wait_for(lambda: once(app, range(2), 1), "what came since is remembered too")
        wait_for(lambda: [worker["state"] for worker in app.status().workers] == ["idle"], "the worker is known again")


def test_a_flushed_server_is_set_up_again_without_a_restart(
    configured: Configured, client: redis.Redis, settings: Settings
) -> None:
    """R1: emptied under running connections: the same, at once, though no connection tells of it."""
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        has_logged(settings, "scheduler_started", 1)
        wait_for(lambda: "blmove" in {row["cmd"] for row in client.client_list()}, "the worker waits for a bell")
        client.flushall()
        client.function_flush()
        has_logged(settings, "server_emptied", 1)
        tell_again(app, "u0", 0)
        wait_for(lambda: once(app, range(1), 1), "what came since is remembered")
        wait_for(lambda: [worker["state"] for worker in app.status().workers] == ["idle"], "the worker is known again")


def test_a_claim_whose_reply_was_lost_is_answered_again(client: redis.Redis, settings: Settings) -> None:
    """R1: the same claim sent twice takes the same keys, and never other ones under the same ids."""
    for user in ("ana", "bob", "eve"):
        send(client, verbs.push(Context(Key("t", user), identify("t", [Message("user", "I own a boat.")]), now=True)))
    call = verbs.claim(settings, 2, 0, "w", "model")
    first = send(client, call).taken
    send(client, verbs.ack(first[0].id, {"state": "stored"}, {}))
    assert send(client, call).taken == first[1:]
    other = send(client, verbs.claim(settings, 2, 0, "w", "model")).taken
    assert {claim.key.user_id for claim in first + other} == {"ana", "bob", "eve"}


def test_lost_replies_lose_nothing(behind: Callable[..., Settings], proxy: Proxy, settings: Settings) -> None:
    """R1: every kind of call loses replies again and again: each context is stored, once."""
    slow = behind(drain__concurrency=4, drain__lease_s=1)
    lossy = ("memd_claim_1", "memd_extend_1", "memd_ack_1", "memd_release_1", "memd_take_1", "memd_tick_1")
    with Memd(settings) as app, part("scheduler", slow), part("worker", slow), connect(settings) as direct:
        for number in range(60):
            for name in lossy if number % 5 == 0 else ():
                proxy.drop_replies(name)
            if number % 2:
                tell(app, f"u{number % 7}", number)
            else:
                direct.rpush(verbs.RAW, raw(f"u{number % 7}", number))
        assert not app.flush(wait=True).timed_out
        assert once(app, range(60), 7)
        status = app.status()
    assert (status.dead, status.pending, status.claimed) == (0, 0, 0)
    assert all(proxy.losing[name] == 0 for name in lossy if name != "memd_release_1")


# --- what the server may answer in place of what was asked ----------------------------------------------------------

REFUSALS = {
    "LOADING": ("LOADING Redis is loading the dataset in memory", InboxUnavailable, "still loading"),
    "BUSY": ("BUSY Redis is busy running a script. You can only call SCRIPT KILL", InboxUnavailable, "a script"),
    "READONLY": ("READONLY You can't write against a read only replica.", InboxUnavailable, "read-only replica"),
    "MISCONF": ("MISCONF Errors writing to the AOF file: No space left on device", InboxUnavailable, "its disk"),
    "NOAUTH": ("NOAUTH Authentication required.", AccountRefused, "asks for a password"),
    "WRONGPASS": ("WRONGPASS invalid username-password pair or user is disabled.", AccountRefused, "the password"),
    "NOPERM": ("NOPERM this user has no permissions to run the 'fcall' command", NotAllowed, "must not run FCALL"),
    "clients": ("ERR max number of clients reached", InboxUnavailable, "maxclients"),
}
"""What a server says, which error of memd it becomes, and what that says."""


@pytest.mark.parametrize("name", REFUSALS)
def test_each_refusal_becomes_one_clear_error(behind: Callable[..., Settings], proxy: Proxy, name: str) -> None:
    """R4: whatever the server refuses with, the app gets one of memd's errors, which says what is wrong."""
    line, kind, words = REFUSALS[name]
    with Memd(behind()) as app:
        tell(app, "u0", 0)
        proxy.answer = f"-{line}\r\n".encode()
        for fresh in (False, True):  # over a connection that stands, and over one that has yet to say hello
            if fresh:
                app.close()
            with pytest.raises(kind, match=words) as caught:
                tell(app, "u0", 1)
            assert type(caught.value) is kind
        proxy.answer = None
        tell(app, "u0", 1)


def test_the_scheduler_says_once_when_a_refusal_begins_and_once_when_it_ends(
    behind: Callable[..., Settings], proxy: Proxy, settings: Settings
) -> None:
    """R4: each refusal is tried again and again; it is one line when it begins and one when it ends."""
    with Memd(settings) as app, part("scheduler", behind()) as scheduler, part("worker", settings):
        has_logged(settings, "scheduler_started", 1)
        for number, (line, kind, words) in enumerate(REFUSALS.values()):
            proxy.commands.clear()
            proxy.answer = f"-{line}\r\n".encode()
            wait_for(lambda: proxy.commands.total() >= 6, "it has tried again and again")
            has_logged(settings, "outage_began", number + 1)
            proxy.answer = None
            has_logged(settings, "outage_ended", number + 1)
            began = events(settings, "scheduler", "outage_began")
            assert [event["code"] for event in began[number:]] == [kind.__name__]
            assert words in began[number]["error"]
        assert scheduler.poll() is None
        tell(app, "u0", 0)
        wait_for(lambda: once(app, range(1), 1), "it works again")
        assert len(events(settings, "scheduler", "outage_ended")) == len(REFUSALS)


@contextmanager
def busy(control: redis.Redis, settings: Settings) -> Iterator[None]:
    """A script that does not end."""
    control.config_set("busy-reply-threshold", 10)
    with connect(settings, retries=0) as other:
        script = threading.Thread(target=suppressed, args=(other.eval, "while true do end", 0))
        script.start()
        yield
        control.script_kill()
        script.join()


def suppressed(call: Callable[..., object], *arguments: object) -> None:
    """Call, whatever comes of it."""
    with suppress(redis.RedisError):
        call(*arguments)


@contextmanager
def read_only(control: redis.Redis, settings: Settings) -> Iterator[None]:
    """A replica whose primary is gone."""
    control.replicaof("127.0.0.1", 1)
    yield
    control.replicaof("NO", "ONE")


@contextmanager
def misconfigured(control: redis.Redis, settings: Settings) -> Iterator[None]:
    """A server whose snapshots fail, as a folder stands where the file should be."""
    control.config_set("save", "3600 1")
    dump = settings.data_dir / "server" / "dump.rdb"
    for state, change in (("err", dump.mkdir), ("ok", dump.rmdir)):
        change()
        wait_for(lambda: not control.info("persistence")["rdb_bgsave_in_progress"], "no snapshot is being made")
        control.bgsave()
        ended = partial(has_snapshot, control, state)
        wait_for(ended, f"the snapshot ended with {state}")
        if state == "err":
            yield
    control.config_set("save", "")


def has_snapshot(control: redis.Redis, state: str) -> bool:
    """How the last snapshot ended."""
    return bool(control.info("persistence")["rdb_last_bgsave_status"] == state)


@contextmanager
def without_rights(control: redis.Redis, settings: Settings) -> Iterator[None]:
    """The account loses the right to call functions."""
    control.acl_setuser("default", enabled=True, commands=["-fcall"])
    yield
    control.acl_setuser("default", enabled=True, commands=["+fcall"])


@contextmanager
def too_many_clients(control: redis.Redis, settings: Settings) -> Iterator[None]:
    """Only the connection that is there already is served."""
    control.config_set("maxclients", 1)
    execute(control, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    yield
    control.config_set("maxclients", 1000)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (busy, "a script"),
        (read_only, "replica"),
        (misconfigured, "its disk"),
        (without_rights, "must not"),
        (too_many_clients, "maxclients|cannot be reached"),  # the server may hang up before it is heard
    ],
)
def test_a_server_in_a_bad_state_is_waited_for(
    own: Settings, state: Callable[[redis.Redis, Settings], AbstractContextManager[None]], words: str
) -> None:
    """R4: a real server is busy, a replica, misconfigured, unwilling, full: said once, and all goes on afterwards."""
    with own_daemon(own) as (_, app), connect(own) as control:
        tell(app, "u0", 0, now=False)
        with state(control, own):
            has_logged(own, "outage_began", 1)
            with pytest.raises(InboxUnavailable, match=words):
                tell(app, "u0", 1)
        tell_again(app, "u0", 1)
        wait_for(lambda: once(app, range(2), 1), "what came before and after is remembered")
        has_logged(own, "outage_ended", 1)
        (began,) = events(own, "scheduler", "outage_began")
        assert re.search(words, began["error"])


@pytest.mark.parametrize("account", ["", "memd:wrong@", "reader:right@"], ids=["NOAUTH", "WRONGPASS", "NOPERM"])
def test_a_refused_account_stops_the_start(proxy: Proxy, settings: Settings, client: redis.Redis, account: str) -> None:
    """R4: nobody but a person can mend an account: the start ends with one sentence and a code of its own."""
    client.acl_setuser("reader", enabled=True, passwords="+right", commands=["+ping", "+hello"])
    client.acl_setuser("default", enabled=True, passwords="+secret", reset_passwords=True)
    try:
        url = proxy.url.replace("redis://", f"redis://{account}")
        done = subprocess.run(
            [sys.executable, "-m", "memd", "scheduler"],
            env=environment(make_settings(settings.data_dir, url)),
            capture_output=True,
            text=True,
            check=False,
            timeout=ENDS_S,
        )
    finally:
        client.acl_setuser("default", enabled=True, nopass=True)
        client.acl_deluser("reader")
    assert done.returncode == AccountRefused.exit_code
    (line,) = done.stderr.splitlines()
    assert "redis_url" in line
    assert "right" not in line.replace("rights", "")


# --- silence and slowness -------------------------------------------------------------------------------------------


def frozen_server(server: OwnServer, proxy: Proxy) -> AbstractContextManager[None]:
    """The server stands still: nothing is refused, nothing is answered."""
    return frozen([server.pid])


@contextmanager
def silent_network(server: OwnServer, proxy: Proxy) -> Iterator[None]:
    """The network swallows everything: nothing is reset."""
    proxy.silent = True
    yield
    proxy.silent = False


@pytest.mark.parametrize("silence", [frozen_server, silent_network])
def test_silence_hangs_nobody_and_loses_no_lease(
    own: Settings, silence: Callable[[OwnServer, Proxy], AbstractContextManager[None]]
) -> None:
    """R5: no answer in the middle of the work beyond the time-outs: back within 10 s, no lease lost, no call twice."""
    with OwnServer(own) as server, Proxy(inbox_url(own)) as proxy, ModelServer(delay=0.3) as model:
        settings = make_settings(
            own.data_dir,
            proxy.url,
            drain__lease_s=12,
            drain__concurrency=4,
            extraction__extractor="anthropic",
            extraction__base_url=model.base_url,
            extraction__api_key="test-key",
        )
        with Memd(own) as app, part("scheduler", settings), part("worker", settings) as worker:
            has_logged(settings, "scheduler_started", 1)
            for number in range(20):
                tell(app, f"u{number % 7}", number)
            model.wait_for_calls(6, 20)
            with silence(server, proxy):
                until = time.monotonic() + TIMEOUT_S + 1
                wait_for(lambda: time.monotonic() > until, "commands have timed out")
            wait_for(lambda: not app.flush(wait=True, timeout_s=1).timed_out, "all has ended")
            assert once(app, range(20), 7)
            assert worker.poll() is None
        assert not events(settings, "scheduler", "lease_expired")
        assert model.calls == 20


def test_a_drain_with_nothing_to_do_ends_on_a_slow_network(
    memd: Memd, proxy: Proxy, behind: Callable[..., Settings]
) -> None:
    """R5: looking for batches all the time, each look a while under way, is no work: the linger ends, not the slice."""
    settings = behind(extraction__batch_poll_s=0.05, drain__linger_s=1, drain__slice_s=120)
    proxy.delay_s = 0.1
    with part("scheduler", settings), part("worker", settings) as worker:
        memd.push([{"role": "user", "content": "I like tea.", "id": "1"}], thread_id="t", user_id="u", now=True)
        wait_for(lambda: memd.status().stored == 1, "the push is stored")
        wait_for(lambda: len(family(worker.pid)) == 1, "the drain has ended")


def test_two_hundred_milliseconds_a_command_still_drain(
    behind: Callable[..., Settings], proxy: Proxy, settings: Settings
) -> None:
    """R5: a server far away: everything takes longer, nothing fails."""
    slow = behind()
    with Memd(settings) as app, part("scheduler", slow), part("worker", slow), connect(settings) as direct:
        wait_for(lambda: "blmove" in {row["cmd"] for row in direct.client_list()}, "the worker waits for a bell")
        has_logged(slow, "scheduler_started", 1)
        proxy.delay_s = 0.2
        for number in range(8):
            if number % 2:
                tell(app, f"u{number % 8}", number)
            else:
                direct.rpush(verbs.RAW, raw(f"u{number % 8}", number))
        assert ended(app) == {"stored": 8}
        assert once(app, range(8), 8)
        proxy.delay_s = 0
    for name in ("scheduler", "worker"):
        assert not events(settings, name, "outage_began", "claim_lost", "lease_expired")


# --- a model that half answers --------------------------------------------------------------------------------------

HALF_ANSWERS: dict[str, tuple[Callable[[ModelServer], None], str]] = {
    "a reset within the body": (lambda model: model.drop(after=60), "paused"),
    "a reply of 100 MB": (lambda model: model.raw(b"x" * 100_000_000), "failed"),
    "not JSON": (lambda model: model.raw(b"<html>gateway</html>", content_type="text/html"), "paused"),
    "status 200 with an error": (lambda model: model.raw(error_body(529, "overloaded")), "paused"),
}
"""What the endpoint does, and whose fault it is: its own (paused) or the content's (failed: an attempt is spent)."""


def test_half_an_answer_is_no_answer(asking: Configured, model: ModelServer) -> None:
    """L4: broken off or cut off at a size, it changes no document and kills nothing; the next answer is taken."""
    settings = asking(drain__max_attempts=2, extraction__max_reply_bytes=100_000)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings) as worker:
        for number, (name, (script, _)) in enumerate(HALF_ANSWERS.items()):
            script(model)
            receipt = tell(app, "u0", number)
            wait_for(partial(is_stored, app, receipt), f"after {name} it is stored")
            assert model.calls == 2 * (number + 1), name
        assert once(app, range(len(HALF_ANSWERS)), 1)
        grown = [resident(pid) for pid in family(worker.pid)]
    released = events(settings, "worker", "released")
    assert [event["how"] for event in released] == [how for _, how in HALF_ANSWERS.values()]
    assert max(grown) < 200


DRIP_S = 10
"""Seconds between two bytes of an answer that would take more than half an hour in all."""


def test_an_answer_without_end_is_no_answer(asking: Configured, model: ModelServer) -> None:
    """L4: a slow drip is broken off at the deadline, and is the endpoint's fault; the next answer is taken."""
    model.answer(drip=(1, DRIP_S))
    settings = asking(drain__max_attempts=1, extraction__deadline_s=1)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        receipt = tell(app, "u0", 0)
        wait_for(lambda: model.calls >= 2, "the drip was broken off, and the endpoint is asked again")
        wait_for(partial(is_stored, app, receipt), "the next answer is taken")
        assert once(app, [0], 1)
    released = events(settings, "worker", "released")
    assert {(event["how"], event["code"]) for event in released} == {("paused", "timeout")}


def is_stored(app: Memd, receipt: str) -> bool:
    """Whether a push has ended as stored."""
    return app.receipt(receipt).state == "stored"


def resident(pid: int) -> int:
    """Megabytes of memory that a process has held at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) // 1024
