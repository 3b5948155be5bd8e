"""The doctor: every check is seen to be well once, and to find what is wrong once."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis
from msgspec import structs
from support import (
    ENDS_S,
    daemon,
    environment,
    execute,
    first_due,
    free_port,
    make_settings,
    own_server,
    part,
    slowdown,
    wait_for,
)

from memd import __version__
from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.errors import ModelUnavailable
from memd.extraction import endpoint
from memd.inbox import breaker, library, verbs
from memd.inbox.breaker import UNFIT
from memd.inbox.connection import send, socket_path
from memd.memory.store import paths
from memd.memory.store.json_store import open_store
from memd.ops import descriptors, server
from memd.ops.doctor import CHECKS, Diagnosis, examine, folder
from memd.ops.doctor import server as server_checks
from memd.testing import ModelServer

MESSAGES = [
    {"role": "user", "content": "I live in Porto.", "id": "1"},
    {"role": "assistant", "content": "Nice.", "id": "2"},
]


def found(settings: Settings) -> dict[str, Diagnosis]:
    return {diagnosis.check: diagnosis for diagnosis in examine(settings)}


def state(settings: Settings, check: str) -> str:
    return found(settings)[check].state


def at_port(data_dir: Path, port: int, **changes: object) -> Settings:
    return make_settings(data_dir, f"redis://127.0.0.1:{port}", **changes)


def run(settings: Settings, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memd", "doctor", *words],
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )


# --- the whole -----------------------------------------------------------------------------------------------------


def test_a_healthy_memd_is_ok_throughout(memd: Memd, settings: Settings) -> None:
    """With everything at work and something remembered, each check is fine and the exit code is 0."""
    with daemon(settings):
        wait_for(lambda: memd.status().workers, "the worker is there")
        memd.push(MESSAGES, thread_id="t", user_id="ana", now=True)
        memd.flush(wait=True)
        report = run(settings, "--json")
    rows = json.loads(report.stdout)
    assert [row["check"] for row in rows] == list(CHECKS)
    assert [row for row in rows if row["state"] != "ok"] == []
    assert report.returncode == 0
    assert f"all of {__version__}" in next(row["said"] for row in rows if row["check"] == "workers")


def test_with_the_server_down_the_other_checks_go_on(data_dir: Path) -> None:
    """One line says what is wrong, those that need the server say so, the rest is looked at; exit code 1."""
    report = run(make_settings(data_dir, None))
    assert report.returncode == 1
    lines = report.stdout.splitlines()
    assert len(lines) == len(CHECKS)
    assert re.match(r"bad   server +the server at \S+ cannot be reached", lines[0])
    assert [line[:4].strip() for line in lines if "does not respond" not in line] == ["bad", *["ok"] * 5]
    assert report.stderr == ""


def test_colour_is_for_terminals(settings: Settings, client: redis.Redis) -> None:
    """A pipe gets plain text, a terminal green, yellow and red."""
    assert "\x1b" not in run(settings).stdout
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "memd", "doctor"], env={**environment(settings), "TERM": "xterm"}, stdout=theirs
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the terminal is gone
        while chunk := os.read(ours, 65_536):
            shown += chunk
    os.close(ours)
    process.wait(30)
    assert b"\x1b[32mok" in shown


def test_a_server_that_is_silent_is_asked_once(data_dir: Path) -> None:
    """It costs one time-out, not one for each check."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(50)
        began = time.monotonic()
        report = found(at_port(data_dir, deaf.getsockname()[1]))
    assert "did not answer within" in report["server"].said
    assert time.monotonic() - began < 9 * slowdown()


def test_what_an_account_may_not_ask_is_not_checked(client: redis.Redis, settings: Settings, data_dir: Path) -> None:
    """A missing right is a warning that names it, and the other checks go on."""
    execute(client, "ACL", "SETUSER", "few", "reset", "on", "nopass", "+ping", "+time")
    try:
        url = str(settings.redis_url.reveal() if settings.redis_url else "").replace("unix://", "unix://few:x@")
        report = found(make_settings(data_dir, url))
    finally:
        execute(client, "ACL", "DELUSER", "few")
    assert (report["server"].state, report["clock"].state) == ("warn", "ok")
    assert "must not run INFO" in report["memory"].said


# --- the server ----------------------------------------------------------------------------------------------------


def test_a_cluster_is_bad(data_dir: Path) -> None:
    """memd's keys do not live in one slot."""
    with own_server(data_dir, "--cluster-enabled", "yes", "--cluster-port", str(free_port())) as port:
        assert state(at_port(data_dir, port), "server") == "bad"


def test_persistence_that_is_off_or_weak_is_bad(data_dir: Path) -> None:
    """No append-only file, or one that is never synced; what the settings allow is a warning."""
    with own_server(data_dir) as port, redis.Redis(port=port) as admin:
        admin.config_set("appendfsync", "no")
        assert state(at_port(data_dir, port), "persistence") == "bad"
        admin.config_set("appendonly", "no")
        assert state(at_port(data_dir, port), "persistence") == "bad"
        assert state(at_port(data_dir, port, inbox__allow_unfit_server=True), "persistence") == "warn"


def test_a_write_that_failed_is_bad(data_dir: Path) -> None:
    """The server says that its disk took no more; here it is a limit on the size of its files."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    with own_server(data_dir, preexec=limited) as port, redis.Redis(port=port) as admin:
        admin.set("x", b"x" * 200_000)
        wait_for(lambda: admin.info("persistence")["aof_last_write_status"] != "ok", "the write has failed")
        report = found(at_port(data_dir, port))["persistence"]
    assert report.state == "bad"
    assert "append-only file failed" in report.said


def test_eviction_is_bad(data_dir: Path) -> None:
    """A policy that evicts loses what was accepted."""
    with own_server(data_dir, "--maxmemory-policy", "allkeys-lru") as port:
        assert state(at_port(data_dir, port), "eviction") == "bad"


def test_memory_warns_and_then_is_bad(data_dir: Path) -> None:
    """Well, near its limit, at its limit, and a limit beyond the machine."""
    settings_states = []
    with own_server(data_dir) as port, redis.Redis(port=port) as admin:
        admin.setrange("x", 50_000_000, "x")
        used = int(admin.info("memory")["used_memory"])
        for limit in (used * 10, int(used * 1.25), int(used * 1.02), 10**15):
            admin.config_set("maxmemory", limit)
            settings_states.append(state(at_port(data_dir, port), "memory"))
    assert settings_states == ["ok", "warn", "bad", "warn"]


@contextmanager
def skewed(port: int, seconds: Callable[[], int]) -> Iterator[int]:
    """The server behind a wire on which its clock is off: answers to TIME are shifted on their way."""
    listener = socket.create_server(("127.0.0.1", 0))

    def shifted(reply: bytes) -> bytes:
        return re.sub(rb"(?<=^\*2\r\n\$10\r\n)\d{10}", lambda m: b"%d" % (int(m[0]) + seconds()), reply)

    def copy(source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes]) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(change(data))
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                near, far = listener.accept()[0], socket.create_connection(("127.0.0.1", port))
                threading.Thread(target=copy, args=(near, far, bytes), daemon=True).start()
                threading.Thread(target=copy, args=(far, near, shifted), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def test_a_clock_that_is_off_or_jumps_is_a_warning(data_dir: Path) -> None:
    """An hour ahead; and one that is set while we look."""
    steps = iter(range(0, 10_000, 60))
    with own_server(data_dir) as port:
        assert state(at_port(data_dir, port), "clock") == "ok"
        with skewed(port, lambda: 3600) as ahead:
            assert "3600 s ahead" in found(at_port(data_dir, ahead))["clock"].said
        with skewed(port, lambda: next(steps)) as jumping:
            report = found(at_port(data_dir, jumping))["clock"]
    assert report.state == "warn"
    assert "moved by" in report.said


def test_a_door_without_a_password_is_found(data_dir: Path) -> None:
    """Open to this machine: a warning; open to the network: bad; with a password: fine."""
    rights = "-@all +ping +acl|whoami +config|get"  # nobody who comes by can do harm in this test
    (data_dir / "users.acl").write_text(f"user default reset on nopass {rights}\nuser own reset on >x {rights}\n")
    accounts = ("--aclfile", str(data_dir / "users.acl"))
    with own_server(data_dir, *accounts) as port:
        assert state(at_port(data_dir, port), "account") == "warn"
    with own_server(data_dir, *accounts, "--protected-mode", "no", "--bind", "0.0.0.0") as port:  # noqa: S104
        assert state(at_port(data_dir, port), "account") == "bad"
    (data_dir / "users.acl").write_text(f"user default off\nuser own reset on >x {rights}\n")
    with own_server(data_dir, *accounts) as port:
        report = found(make_settings(data_dir, f"redis://own:x@127.0.0.1:{port}"))["account"]
    assert report == Diagnosis("account", "ok", "own, with a password")


def test_which_network_settings_are_open() -> None:
    """Protected mode or loopback addresses keep others out."""
    only_local = server_checks.only_local
    assert only_local({"protected-mode": "yes", "bind": "*"}, "host")
    assert only_local({"protected-mode": "no", "bind": "127.0.0.1 -::1"}, "host")
    assert not only_local({"protected-mode": "no", "bind": "* -::*"}, "localhost")
    assert not only_local({}, "10.0.0.1")
    assert only_local({}, "localhost")


# --- the inbox -----------------------------------------------------------------------------------------------------


def test_functions_that_are_missing_or_of_another_build(client: redis.Redis, settings: Settings) -> None:
    """Never set up and half loaded are bad, another build is a warning."""
    client.hset(f"{verbs.P}:config", "build", library.BUILD + 1)
    assert "newer" in found(settings)["functions"].said
    client.hset(f"{verbs.P}:config", "build", library.BUILD - 1)
    assert (found(settings)["functions"].state, "older" in found(settings)["functions"].said) == ("warn", True)
    library.install(client, settings)
    assert state(settings, "functions") == "ok"
    client.function_delete("memd_push")
    assert "memd_push is not loaded" in found(settings)["functions"].said
    client.flushall()
    assert state(settings, "functions") == "bad"


def test_a_raw_list_that_nobody_reads_is_bad(client: redis.Redis, settings: Settings, data_dir: Path) -> None:
    """It is named, fit for a terminal, until the settings name its app."""
    client.rpush("memd:in", "x")
    client.rpush("memd:in:old", "x")
    client.rpush("memd:in:\x1b[31m", "x")
    report = found(settings)["raw lists"]
    assert (report.state, report.said.partition(":")[0]) == ("bad", "nobody reads memd")
    assert "memd:in:old" in report.said
    assert "\x1b" not in report.said
    client.delete("memd:in:\x1b[31m")
    url = settings.redis_url.reveal() if settings.redis_url else None
    report = found(make_settings(data_dir, url, client__apps=("old",)))["raw lists"]
    assert report == Diagnosis("raw lists", "ok", "memd:in, memd:in:old: 2 pushes to take in")


def test_a_key_that_waits_too_long_is_a_warning(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Within the longest wait it is fine; an hour later it is not."""
    memd.push(MESSAGES, thread_id="t", user_id="ana")
    assert state(settings, "waiting") == "ok"
    client.hincrby(f"{verbs.P}:ctx:{first_due(client)}", ".first", -3_600_000)
    report = found(settings)["waiting"]
    assert (report.state, "oldest for 36" in report.said) == ("warn", True)


def test_dead_letters_are_a_warning(client: redis.Redis, settings: Settings) -> None:
    """With the codes, without the contents."""
    client.rpush("memd:in", "my secret")
    with part("scheduler", settings):
        wait_for(lambda: client.zcard(f"{verbs.P}:dead"), "the push is dead")
    report = found(settings)["dead"]
    assert (report.state, "E_JSON 1" in report.said, "secret" in report.said) == ("warn", True, False)


def test_no_worker_is_bad_when_something_waits(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Without work it is a warning."""
    assert state(settings, "workers") == "warn"
    memd.push(MESSAGES, thread_id="t", user_id="ana")
    assert state(settings, "workers") == "bad"


def test_a_worker_of_another_version_is_found(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Each worker says its version; one from before that is unknown. It goes with the worker."""
    with part("worker", settings):
        worker = wait_for(lambda: memd.status().workers, "the worker is there")[0]
        wait_for(lambda: state(settings, "workers") == "ok", "it has said its version")
        client.hset(f"rq:worker:{worker['name']}", "memd", "0.0.1")
        report = found(settings)["workers"]
        assert (report.state, "1 of 0.0.1" in report.said) == ("warn", True)
        client.hdel(f"rq:worker:{worker['name']}", "memd")
        assert "1 of unknown" in found(settings)["workers"].said
    assert state(settings, "workers") == "warn"


@pytest.mark.parametrize(("code", "expected"), [("overloaded", "warn"), ("unauthorized", "bad"), (UNFIT, "bad")])
def test_an_open_breaker_is_found(client: redis.Redis, settings: Settings, code: str, expected: str) -> None:
    """An outage passes; a key that is refused does not, and neither does a model that gives no update."""
    send(client, breaker.trip(endpoint(settings.extraction), ModelUnavailable(code, "x")))
    report = found(settings)["breaker"]
    assert (report.state, code in report.said) == (expected, True)


# --- the data folder -----------------------------------------------------------------------------------------------


def document(data_dir: Path, data: bytes) -> Path:
    folder_of = paths.folder(data_dir, Bucket("ana", ""), shared=False)
    folder_of.mkdir(parents=True, mode=0o700)
    file = folder_of / paths.FILE
    file.touch(0o600)
    file.write_bytes(data)
    return file


def test_a_folder_that_others_enter_is_bad(data_dir: Path) -> None:
    """The folder itself, a file in it, and one that is not there yet."""
    settings = make_settings(data_dir, None)
    document(data_dir, b"{}")
    assert state(settings, "data folder") == "ok"
    (data_dir / "users" / "ana" / "memory.json").chmod(0o644)
    assert state(settings, "data folder") == "warn"
    data_dir.chmod(0o755)
    assert "mode 0755" in found(settings)["data folder"].said
    assert state(structs.replace(settings, data_dir=data_dir / "none"), "data folder") == "warn"


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: only root can give a file away")
def test_files_of_somebody_else_are_bad(data_dir: Path) -> None:
    """What memd cannot replace; and a folder that is not ours at all."""
    settings = make_settings(data_dir, None)
    os.chown(document(data_dir, b"{}"), 12_345, 12_345)
    assert state(settings, "data folder") == "bad"
    os.chown(data_dir, 12_345, 12_345)
    assert "belongs to another user" in found(settings)["data folder"].said


def test_a_disk_that_fills_up_is_found(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real figures against limits above and below them; also for a folder that is not there yet."""
    settings = make_settings(data_dir, None)
    for name in ("FREE_WARN", "FREE_BAD"):
        monkeypatch.setattr(folder, name, 2**80)
        assert state(settings, "disk") == ("warn" if name == "FREE_WARN" else "bad")
    monkeypatch.setattr(folder, "FREE_BAD", 0)
    monkeypatch.setattr(folder, "FREE_WARN", 0)
    monkeypatch.setattr(folder, "INODES_BAD", 2**80)
    assert state(structs.replace(settings, data_dir=data_dir / "a" / "b"), "disk") == "bad"


def test_what_crashes_and_damage_leave_behind_is_found(data_dir: Path) -> None:
    """A temp file that is old, a document that was set aside; a young temp may be a commit under way."""
    settings = make_settings(data_dir, None)
    file = document(data_dir, b"{}")
    temp = file.with_name(paths.TEMP)
    temp.touch(0o600)
    assert state(settings, "leftovers") == "ok"
    os.utime(temp, (0, 0))
    assert "1 temp file of" in found(settings)["leftovers"].said
    file.write_bytes(b"half a docum")
    open_store(settings).load(Bucket("ana"))  # as a worker does, under the lock; a reader leaves it alone
    assert "1 damaged document;" in found(settings)["leftovers"].said


def test_a_large_folder_is_looked_at_in_part(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And that is said."""
    document(data_dir, b"{}")
    monkeypatch.setattr(folder, "MOST_ENTRIES", 1)
    assert found(make_settings(data_dir, None))["data folder"].said.endswith("the others not")


# --- the model -----------------------------------------------------------------------------------------------------


def asking(data_dir: Path, base_url: str, **changes: object) -> Settings:
    wanted = {"extraction__extractor": "anthropic", "extraction__base_url": base_url, "extraction__api_key": "sk-mine"}
    return make_settings(data_dir, None, **{**wanted, **changes})


def test_the_endpoint_is_asked_without_tokens(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers and takes the key; knows no such model; refuses the key; there is none. The key is never shown."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with ModelServer(api_key="sk-mine") as server:
        reports = [
            found(asking(data_dir, server.base_url, **changes))["model"]
            for changes in (
                {},
                {"extraction__model": "other"},
                {"extraction__api_key": "sk-wrong"},
                {"extraction__api_key": None},
            )
        ]
        assert server.calls == 0
    assert [report.state for report in reports] == ["ok", "warn", "bad", "bad"]
    assert "sk-" not in str(reports)


def test_an_endpoint_out_of_reach_is_bad(data_dir: Path) -> None:
    """Nobody listens there; or somebody who says nothing of use; or the address is none."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert "cannot be reached" in found(asking(data_dir, address))["model"].said
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        report = found(asking(data_dir, address, extraction__deadline_s=0.3))["model"]
    assert (report.state, "in time" in report.said) == ("bad", True)
    assert state(asking(data_dir, "nowhere"), "model") == "warn"


def test_the_offline_extractor_needs_no_endpoint(data_dir: Path) -> None:
    """Rules ask nobody."""
    assert state(make_settings(data_dir, None), "model") == "ok"


def test_a_check_that_stumbles_does_not_hide_the_others(client: redis.Redis, settings: Settings) -> None:
    """A key of the wrong kind, as a foreign program may leave it."""
    client.set("rq:workers:memd", "x")
    report = found(settings)
    assert report["workers"].said.startswith("not checked")
    assert report["eviction"].state == "ok"


# --- what a hostile world did ---------------------------------------------------------------------------------------


def test_a_key_of_a_wrong_type_is_named(settings: Settings, client: redis.Redis) -> None:
    """Another program wrote one of memd's keys: the doctor names it."""
    library.install(client, settings)
    assert state(settings, "keys") == "ok"
    for name, write in (("{memd}:due", "due"), ("{memd}:ctx:k", "ctx"), ("memd:in", "in")):
        client.flushall()
        client.zadd("{memd}:due", {"k": 1})
        client.delete(name)
        client.set(name, write)
        assert (found(settings)["keys"].state, name in found(settings)["keys"].said) == ("bad", True)


def test_the_embedded_servers_socket_and_lock_are_checked(data_dir: Path) -> None:
    """A socket that is gone, and a server beside the folder's own, are bad; with both in place all is well."""
    settings = make_settings(data_dir, None)
    process = server.start(settings)
    try:
        assert state(settings, "server") == "ok"
        path = socket_path(settings)
        path.unlink()
        assert "socket is gone" in found(settings)["server"].said
        conf = data_dir / "server" / "server.conf"
        other = data_dir / "other"
        other.mkdir()
        (other / "server.conf").write_text(conf.read_text().replace(f'{data_dir}/server"', f'{other}"'))
        second = subprocess.Popen([server.binary(), str(other / "server.conf")])
        try:
            wait_for(path.exists, "the second server has the socket")
            wait_for(lambda: "second" in found(settings)["server"].said, "the doctor sees it")
            assert f"a second server, pid {second.pid}" in found(settings)["server"].said
        finally:
            server.stop(second)
    finally:
        server.stop(process)


def test_a_store_that_takes_no_writes_is_bad(settings: Settings, client: redis.Redis) -> None:
    """The data folder is on a disk that is full: the doctor says that nothing is remembered."""
    class_ = {"store__class": "support.fault_stores.FullStore"}
    full = make_settings(settings.data_dir, str(settings.redis_url.reveal() if settings.redis_url else ""), **class_)
    assert "takes no writes" in found(full)["data folder"].said
    assert state(settings, "data folder") == "ok"


def test_replies_that_are_never_in_form_are_known_from_the_inbox(server_url: str, client: redis.Redis) -> None:
    """The counters of what died and what was stored tell it; no tokens are spent."""
    with ModelServer() as model, tempfile.TemporaryDirectory() as folder:
        changes = {"extraction__extractor": "anthropic", "extraction__api_key": "sk-mine"}
        settings = make_settings(Path(folder), server_url, extraction__base_url=model.base_url, **changes)
        assert state(settings, "model") == "ok"
        client.hset("{memd}:stats", "dead:bad_reply", "3")
        assert "not in the form" in found(settings)["model"].said
        assert state(settings, "model") == "bad"
        client.hset("{memd}:stats", "stored", "2")
        assert state(settings, "model") == "warn"
        client.hset("{memd}:stats", "stored", "200")
        assert state(settings, "model") == "ok"
        assert model.calls == 0


@pytest.mark.parametrize("words", [["up"], ["server"], ["worker"], ["doctor"]])
def test_too_few_descriptors_are_said(data_dir: Path, words: list[str]) -> None:
    """With `ulimit -n 40` nothing would be drained: the daemon refuses to start, and the doctor says why."""
    settings = make_settings(data_dir, None)
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", sys.executable, "-m", "memd", *words],
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )
    assert done.returncode == (1 if words == ["doctor"] else 78)
    assert "40 files" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_process_raises_its_limit_as_far_as_it_needs(data_dir: Path) -> None:
    """A soft limit below the need is raised, up to the hard one."""
    settings = make_settings(data_dir, None, drain__concurrency=200)
    limit = subprocess.run(
        ["sh", "-c", 'ulimit -Sn 130; exec "$@"', "sh", sys.executable, "-c", RAISED],
        env=environment(settings),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(limit.stdout) == descriptors.needed(settings) > 600


RAISED = """
import resource
from memd import config
from memd.ops import descriptors
descriptors.require(config.load().settings)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
