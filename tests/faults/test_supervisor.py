"""`memd up`: one tree of processes that starts whole, mends itself, and stops in order."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from support import ENDS_S, MakeSettings, alive, ended, environment, exit_code, free_port, make_settings, part, wait_for
from support.fault_support import family, frozen, tell, told
from support.forkserver import Part
from support.running_up import ready, up

from memd.client import Memd
from memd.config import Settings
from memd.http import keyring
from memd.inbox import verbs
from memd.inbox.connection import connect, socket_path
from memd.ops.locks import EARLIER_S
from memd.ops.supervisor import BACKOFF_MAX_S, BACKOFF_S, HEALTHY_S, Child
from memd.testing import ModelServer

pytestmark = pytest.mark.timing


def events(log: Path, name: str) -> list[dict[str, object]]:
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines() if line.startswith(b"{")]
    return [line for line in lines if line.get("event") == name]


@pytest.fixture
def embedded(data_dir: Path) -> Settings:
    """Settings without a server of their own: the embedded one is used."""
    return make_settings(data_dir, None, drain__workers=1, log__format="json")


def test_up_runs_the_whole_job_and_stops_cleanly(data_dir: Path) -> None:
    """Server, scheduler, workers and, with `http.enabled`, HTTP start; a push becomes memory; a killed HTTP server is
    back; SIGTERM ends all of them, with code 0."""
    changes: dict[str, Any] = {"drain__workers": 1, "http__enabled": True, "http__port": free_port()}
    settings = make_settings(data_dir, None, log__format="json", **changes)

    def health() -> object:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{settings.http.port}/health") as answer:
                return orjson.loads(answer.read())["inbox"]
        except OSError:
            return None

    with up(settings) as (process, log), Memd(settings) as app:
        wait_for(lambda: ready(settings), "memd up is ready")
        app.push([{"role": "user", "content": "I live in Porto."}], thread_id="t", user_id="ana")
        assert ended(app) == {"stored": 1}
        wait_for(lambda: health() == "ok", "the HTTP part answers")
        os.kill(int(str(events(log, "http_ready")[0]["pid"])), signal.SIGKILL)
        wait_for(lambda: len(events(log, "http_ready")) == 2, "it was started again")
        wait_for(lambda: health() == "ok", "it answers again")
        pids = {event["pid"] for event in [*events(log, "part_started"), *events(log, "server_ready")]}
        process.send_signal(signal.SIGTERM)
        assert exit_code(process, 15) == 0
    assert len(pids) == 5
    assert not any(map(alive, pids))
    assert events(log, "http_stopped")
    assert not socket_path(settings).exists()


@pytest.mark.long
def test_ctrl_c_reaches_only_the_supervisor(embedded: Settings) -> None:
    """SIGINT to the process group of `memd up` stops the tree in order, without a traceback."""
    with up(embedded) as (process, log):
        wait_for(lambda: ready(embedded), "memd up is ready")
        os.killpg(process.pid, signal.SIGINT)
        assert exit_code(process, 15) == 0
    assert b"Traceback" not in log.read_bytes()


def memd_process(settings: Settings, command: str) -> subprocess.CompletedProcess[str]:
    """`memd <command>`, which has to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "memd", command],
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )


@dataclass(frozen=True)
class Tree:
    """A running `memd up` that tests share: each leaves it whole."""

    settings: Settings
    process: Part
    log: Path


@pytest.fixture(scope="module")
def tree() -> Iterator[Tree]:
    """A tree with two workers, whose server keeps what it has acknowledged."""
    folder = Path(tempfile.mkdtemp(prefix="memd-"))
    settings = make_settings(folder, None, drain__workers=2, log__format="json", server__appendfsync="always")
    with up(settings) as (process, log):
        wait_for(lambda: events(log, "up_ready"), "memd up is ready")
        yield Tree(settings, process, log)
    shutil.rmtree(folder)


def running(log: Path) -> dict[object, int]:
    """The process of each part, the server among them, by name: those that were started last."""
    lines = [*events(log, "part_started"), *events(log, "server_ready")]
    return {line["name"]: int(str(line["pid"])) for line in lines}


def test_what_dies_is_started_again(tree: Tree) -> None:
    """A killed worker, scheduler or server is back soon, with a log line, and what was pending is not lost."""
    killed, died = running(tree.log), len(events(tree.log, "part_died"))
    with Memd(tree.settings) as app:
        app.push([{"role": "user", "content": "I live in Porto."}], thread_id="t", user_id="ana", now=False)
        for pid in killed.values():
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not killed.items() & running(tree.log).items(), "the parts were started again")
        wait_for(lambda: ready(tree.settings), "memd up is ready again")
        wait_for(lambda: app.document("ana")["facts"], "what was pending is remembered")
    assert len(killed) == 4
    assert len(events(tree.log, "part_died")) - died >= 4


def test_a_second_up_refuses_and_names_the_pid(tree: Tree) -> None:
    """One data folder has one `memd up`."""
    second = memd_process(tree.settings, "up")
    assert second.returncode == 73
    assert str(tree.process.pid) in second.stderr
    assert len(second.stderr.splitlines()) == 1


def test_a_server_beside_up_is_refused_and_loses_nothing(tree: Tree) -> None:
    """`memd server` beside `memd up` ends with 73 and the pid; the socket and the append-only file stay whole."""
    server = running(tree.log)["server"]
    with Memd(tree.settings) as app:
        app.push([{"role": "user", "content": "I live in Porto."}], thread_id="t1", user_id="bob")
        second = memd_process(tree.settings, "server")
        app.push([{"role": "user", "content": "I'm allergic to nuts."}], thread_id="t2", user_id="bob")
        os.kill(server, signal.SIGKILL)
        wait_for(lambda: running(tree.log)["server"] != server, "the server was started again")
        wait_for(lambda: len(app.document("bob")["facts"]) == 2, "both pushes are remembered")
    assert (second.returncode, len(second.stderr.splitlines())) == (73, 1)
    assert str(tree.process.pid) in second.stderr


def test_a_socket_that_is_gone_is_mended(tree: Tree) -> None:
    """Nobody can reach a server without its socket: it is stopped in order and started again."""
    server, cut_off = running(tree.log)["server"], len(events(tree.log, "server_cut_off"))
    socket_path(tree.settings).unlink()
    wait_for(lambda: running(tree.log)["server"] != server, "the server was started again")
    wait_for(lambda: ready(tree.settings), "memd up is ready again")
    assert len(events(tree.log, "server_cut_off")) - cut_off == 1


def test_up_beside_a_server_is_refused(embedded: Settings) -> None:
    """The other way round: `memd up` beside `memd server` ends with 73, a second `memd server` too."""
    with part("server", embedded) as process:
        wait_for(socket_path(embedded).exists, "the server has its socket")
        assert memd_process(embedded, "server").returncode == 73
        with up(embedded) as (second, log):
            assert exit_code(second, 20) == 73
        assert str(process.pid) in log.read_text()
        with connect(embedded) as client:
            assert client.ping()


@contextmanager
def slow_end(settings: Settings) -> Iterator[int]:
    """A killed `memd up`, whose frozen server cannot end within the block; the server's pid."""
    with up(settings) as (process, log):
        wait_for(lambda: ready(settings), "memd up is ready")
        parts = running(log)
        with frozen([old := parts.pop("server")]):
            process.kill()
            process.wait()
            wait_for(lambda: not any(map(alive, parts.values())), "the parts have ended")
            yield old


@pytest.mark.long
def test_what_a_killed_supervisor_leaves_behind(embedded: Settings) -> None:
    """`kill -9` of `memd up` takes its parts along. The next ones wait for a server that ends slowly: one is told to
    stop, does so at once, with code 0, and leaves that server alone; one is reachable once the old server has ended."""
    with ExitStack() as stack:
        with slow_end(embedded) as old:
            with up(embedded) as (process, log):
                wait_for(lambda: events(log, "server_waits"), "the new memd up waits")
                process.send_signal(signal.SIGTERM)
                assert exit_code(process, EARLIER_S / 2) == 0
            assert (events(log, "server_ready"), len(events(log, "up_stopped"))) == ([], 1)
            assert alive(old)
            process, log = stack.enter_context(up(embedded))
            assert wait_for(lambda: events(log, "server_waits"), "the new memd up waits")[0]["pid"] == old
            assert events(log, "server_ready") == []
        wait_for(lambda: events(log, "up_ready"), "the new memd up is ready")
        assert not alive(old)
        pids = running(log)
        with connect(embedded) as client:
            assert client.info("server")["process_id"] == pids["server"]
        process.kill()
        process.wait()
        wait_for(lambda: not any(map(alive, pids.values())), "all parts have ended, the server too")


@pytest.mark.long
def test_an_unfit_server_stops_the_start(server_url: str, data_dir: Path) -> None:
    """A server that evicts keys is refused with one sentence and code 78; nothing is left running."""
    settings = make_settings(data_dir, server_url)
    with connect(settings) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            done = memd_process(settings, "up")
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert done.returncode == 78
    assert "allkeys-lru" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_part_that_a_restart_cannot_mend_stops_the_tree(embedded: Settings) -> None:
    """Workers that end with code 78 are not started again and again: all stops, with their sentence and code."""
    settings = make_settings(
        embedded.data_dir, None, drain__workers=1, extraction__extractor="anthropic", extraction__base_url="no address"
    )
    done = memd_process(settings, "up")
    assert done.returncode == 78
    assert "base_url" in next(line for line in done.stderr.splitlines() if line.startswith("memd: "))
    assert "part_died" not in done.stderr
    assert not socket_path(settings).exists()


SHORT_WAITS = {"memd.ops.supervisor.BACKOFF_MAX_S": 1.0, "memd.ops.supervisor.HEALTHY_S": 2.0}
"""A part that cannot start is tried again after 1 s instead of 10, and works again after 2 s instead of 10."""


@contextmanager
def evicting(settings: Settings) -> Iterator[None]:
    """The server evicts keys meanwhile: whatever starts then ends with code 78."""
    with connect(settings) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            yield
        finally:
            client.config_set("maxmemory-policy", "noeviction")


@pytest.mark.long
def test_a_part_that_cannot_start_again_waits_alone(embedded: Settings) -> None:
    """What ends with code 78 after the tree was ready waits, loudly, and is tried again; the others go on."""
    embedded = make_settings(embedded.data_dir, None, drain__workers=1, log__format="json")
    with up(embedded, SHORT_WAITS) as (process, log), Memd(embedded) as app:
        wait_for(lambda: events(log, "up_ready"), "memd up is ready")
        scheduler = next(event for event in events(log, "part_started") if event["name"] == "scheduler")
        with evicting(embedded):
            os.kill(int(str(scheduler["pid"])), signal.SIGKILL)
            waits = wait_for(lambda: events(log, "part_waits"), "the scheduler waits")[0]
            assert (waits["name"], waits["code"], waits["level"]) == ("scheduler", 78, "error")
            assert wait_for(lambda: app.status().waiting_parts, "status says so")[0].startswith("scheduler on ")
        app.push([{"role": "user", "content": "I live in Porto."}], thread_id="t", user_id="ana")
        assert ended(app) == {"stored": 1}  # taken in by the scheduler, at its next try
        assert process.poll() is None
        wait_for(lambda: not app.status().waiting_parts, "status has forgotten it")
        assert events(log, "part_recovered")


CANNOT_LISTEN = "cannot listen there (Address already in use)"


@contextmanager
def taken(port: int) -> Iterator[None]:
    """Another program has the port, as soon as it is free."""

    def bind() -> list[socket.socket]:
        try:
            return [socket.create_server(("127.0.0.1", port))]
        except OSError:
            return []

    [listener] = wait_for(bind, "the port is free")
    with listener:
        yield


@pytest.mark.long
def test_http_that_cannot_start_again_leaves_the_others_alone(data_dir: Path) -> None:
    """A token file that others may write, a port that is taken: at the first start the tree stops, later HTTP waits."""
    tokens = data_dir / "tokens.json"
    changes: dict[str, Any] = {"drain__workers": 1, "http__enabled": True, "http__port": free_port()}
    settings = make_settings(data_dir, None, log__format="json", http__tokens=str(tokens), **changes)
    keyring.add(tokens, keyring.new("app", keyring.Users(every=True))[0])
    with up(settings, SHORT_WAITS) as (process, log), Memd(settings) as app:
        wait_for(lambda: events(log, "up_ready") and events(log, "http_ready"), "memd up is ready")
        tokens.chmod(0o666)
        os.kill(int(str(events(log, "http_ready")[0]["pid"])), signal.SIGKILL)
        assert wait_for(lambda: events(log, "part_waits"), "http waits")[0]["name"] == "http"
        assert wait_for(lambda: app.status().waiting_parts, "status says so")[0].startswith("http on ")
        with taken(settings.http.port):
            tokens.chmod(0o600)
            wait_for(lambda: CANNOT_LISTEN in log.read_text(), "http cannot listen")
            before = len(events(log, "part_waits"))
            wait_for(lambda: len(events(log, "part_waits")) > before, "http waits for its port")
        wait_for(lambda: len(events(log, "http_ready")) == 2, "it was started again")
        assert process.poll() is None
    tokens.chmod(0o666)
    with up(settings) as (process, log):
        assert exit_code(process, 20) == 78
    tokens.chmod(0o600)
    with taken(settings.http.port), up(settings) as (process, log):
        assert exit_code(process, 20) == 78
        assert CANNOT_LISTEN in log.read_text()


@pytest.mark.long
@pytest.mark.parametrize("command", [("serve", "--port"), ("mcp", "--http", "--user", "ana", "--port")])
def test_a_port_that_is_taken_is_one_sentence(configured: MakeSettings, command: tuple[str, ...]) -> None:
    """Whatever listens: code 78 and a sentence that names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = subprocess.run(
            [sys.executable, "-m", "memd", *command, str(other.getsockname()[1])],
            env=environment(configured()),
            capture_output=True,
            text=True,
            check=False,
            timeout=ENDS_S,
        )
    assert (done.returncode, len(done.stderr.splitlines())) == (78, 1)
    assert CANNOT_LISTEN in done.stderr


def test_restarts_wait_longer_each_time() -> None:
    """0.1 s doubles to 10 s, and starts anew after a part has lived long enough."""

    def nothing() -> subprocess.Popen[bytes]:
        raise AssertionError("nothing is started here")

    part = Child("worker-1", nothing)
    pauses = []
    for _ in range(9):
        part.died()
        pauses.append(part.pause)
    assert pauses[:3] == [BACKOFF_S, 2 * BACKOFF_S, 4 * BACKOFF_S]
    assert pauses[-1] == BACKOFF_MAX_S
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        part.process, part.started = process, time.monotonic() - HEALTHY_S
    part.died()
    assert part.pause == BACKOFF_S


def test_a_data_folder_that_cannot_be_used_stops_the_start(embedded: Settings) -> None:
    """One sentence and code 78, no traceback."""
    (embedded.data_dir / "file").touch()
    env = environment(embedded) | {"MEMD_DATA_DIR": str(embedded.data_dir / "file")}
    done = subprocess.run(
        [sys.executable, "-m", "memd", "up"], env=env, capture_output=True, text=True, check=False, timeout=ENDS_S
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (78, 1)
    assert "cannot be used" in done.stderr


def pids(app: Memd) -> set[int]:
    """The process ids of the workers that status shows."""
    return {int(worker["pid"]) for worker in app.status().workers}


@pytest.mark.long
def test_up_gives_back_what_a_killed_worker_held(data_dir: Path, model: ModelServer) -> None:
    """Under `memd up` a killed worker's claims are in work again long before the lease ends; a frozen one keeps its."""
    settings = make_settings(
        data_dir,
        None,
        drain__workers=2,
        drain__concurrency=1,
        drain__lease_s=120,
        log__format="json",
        extraction__extractor="openai",  # whose SDK each process loads in half the time of the other one
        extraction__model="gpt-test",
        extraction__base_url=f"{model.base_url}/v1",
        extraction__api_key="test-key",
    )
    model.hold()
    stats = f"{verbs.P}:stats"
    with up(settings), Memd(settings) as app, connect(settings) as client:
        wait_for(lambda: ready(settings), "memd up is ready")
        both = pids(app)
        for number, user in enumerate(("ana", "bob")):
            tell(app, user, number)
        wait_for(lambda: model.calls == 2, "each worker asks the model")
        victim, slow = sorted(both)
        with frozen(family(slow)):
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda: model.calls == 3, "its claim is in work again", 60)
            # The frozen one is not heard of, so a slow machine may not see it any more.
            wait_for(lambda: victim not in (now := pids(app)) and now - both, "a new worker, and no ghost", 60)
            assert client.hget(stats, "released:died") == b"1"
        model.go_on()
        assert ended(app) == {"stored": 2}
        assert (told(app, "ana"), told(app, "bob")) == ({0: 1}, {1: 1})
        assert model.calls == 3
        assert client.hget(stats, "released:expired") is None
