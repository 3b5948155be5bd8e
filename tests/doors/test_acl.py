"""Accounts: what `memd acl` prints is loaded by a real server; each account can do its work, and nothing else."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from support import ENDS_S, daemon, dead_letter, environment, execute, make_settings, own_server, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.errors import AccountRefused, NotAllowed
from memd.inbox import library, verbs
from memd.inbox.app_events import EVENTS
from memd.inbox.bell import bell_queue, ring
from memd.inbox.connection import NO_RIGHT_INSIDE, connect, send

MESSAGES = [
    {"role": "user", "content": "I live in Porto.", "id": "1"},
    {"role": "assistant", "content": "Nice.", "id": "2"},
]
PUSH = {"thread_id": "t", "user_id": "ana", "messages": MESSAGES}
ACCOUNTS = ("memd-in", "memd-in-shop", "memd-app", "memd-daemon", "memd-events", "memd-reader")


@dataclass
class Site:
    """A server with the accounts that `memd acl` printed, and their passwords."""

    port: int
    passwords: dict[str, str]

    def url(self, account: str) -> str:
        return f"redis://{account}:{self.passwords[account]}@127.0.0.1:{self.port}"

    def client(self, account: str) -> redis.Redis:
        return redis.Redis.from_url(self.url(account), driver_info=None)

    def admin(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def denials(self) -> list[tuple[Any, ...]]:
        """What the server has refused since the last test."""
        return [(row["username"], row["context"], row["object"]) for row in self.admin().acl_log()]


def run(*words: str, settings: Settings, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memd", *words],
        env={**environment(settings), **env},
        input=json.dumps(PUSH),
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )


@pytest.fixture(scope="module")
def loaded() -> Iterator[Site]:
    """The lines of `memd acl --generate` as the ACL file of a server."""
    folder = Path(tempfile.mkdtemp(prefix="memd-"))
    printed = run("acl", "--app", "shop", "--generate", settings=make_settings(folder, None))
    (folder / "users.acl").write_text(printed.stdout)
    passwords = dict(re.findall(r"^(memd-\S+): (\S{32,})$", printed.stderr, re.MULTILINE))
    with own_server(folder, "--aclfile", str(folder / "users.acl")) as port:
        yield Site(port, passwords)
    shutil.rmtree(folder)


@pytest.fixture
def site(loaded: Site, data_dir: Path) -> Site:
    """The server, emptied, with the inbox installed by the daemon's account."""
    loaded.admin().flushall()
    loaded.admin().function_flush()
    loaded.admin().acl_log_reset()
    library.install(loaded.client("memd-daemon"), make_settings(data_dir, loaded.url("memd-daemon")))
    return loaded


def as_account(site: Site, data_dir: Path, account: str) -> Settings:
    return make_settings(data_dir, site.url(account), client__apps=("shop",), events__keep=100)


@pytest.mark.long
def test_the_whole_of_memd_runs_under_its_accounts(site: Site, data_dir: Path) -> None:
    """Scheduler, worker, both doors, flush, receipt and status do their work, and the server refuses nothing."""
    reader = site.client("memd-events")
    assert reader.xgroup_create(EVENTS, "app", mkstream=True)
    with daemon(as_account(site, data_dir, "memd-daemon")), Memd(as_account(site, data_dir, "memd-app")) as app:
        site.client("memd-in").rpush("memd:in", json.dumps(PUSH | {"thread_id": "raw"}))
        site.client("memd-in-shop").rpush("memd:in:shop", json.dumps(PUSH | {"thread_id": "shop"}), "no JSON")
        receipt = str(app.push(MESSAGES, thread_id="t", user_id="ana").id)
        assert not app.flush(wait=True).timed_out
        assert app.receipt(receipt).state == "stored"
        assert dead_letter(site.admin())[b".code"] == b"E_JSON"
        status = run("status", "--json", settings=as_account(site, data_dir, "memd-reader"))
        assert (json.loads(status.stdout)["stored"], len(json.loads(status.stdout)["workers"])) == (3, 1)
        assert run("status", "--cost", settings=as_account(site, data_dir, "memd-reader")).returncode == 0
        read: Any = reader.xreadgroup("app", "one", {EVENTS: ">"})
        events = read[0][1]
        assert sorted(event[b"event"] for _, event in events) == [b"dead", b"stored", b"stored", b"stored"]
        claimed: Any = reader.xautoclaim(EVENTS, "app", "two", 0)
        assert claimed[1] == events
        assert reader.xack(EVENTS, "app", *[number for number, _ in events]) == 4
        assert run("backup", str(data_dir / "kept"), settings=as_account(site, data_dir, "memd-daemon")).returncode == 0
        assert run("forget", "ana", "--yes", settings=as_account(site, data_dir, "memd-daemon")).returncode == 0
        assert reader.xlen(EVENTS) == 2
        restored = run(
            "restore", str(data_dir / "kept"), "--replace", "--yes", settings=as_account(site, data_dir, "memd-daemon")
        )
        assert "1 user forgotten since the backup" in restored.stdout, restored.stderr
    assert site.denials() == []


@pytest.mark.parametrize("account", ["memd-daemon", "memd-reader"])
def test_the_doctor_may_ask_all_but_settings(site: Site, data_dir: Path, account: str) -> None:
    """Every check is made; only `appendfsync` stays unknown, as CONFIG is for nobody."""
    report = json.loads(run("doctor", "--json", settings=as_account(site, data_dir, account)).stdout)
    assert [row for row in report if "not checked" in row["said"]] == []
    assert "appendfsync unknown" in next(row["said"] for row in report if row["check"] == "persistence")
    assert site.denials() == [(account, "toplevel", "config|get")]


def test_a_worker_fails_jobs_dies_and_is_cleaned_up_after_under_its_account(site: Site, data_dir: Path) -> None:
    """RQ's rarer paths need no further right: a job that fails, a job that hangs in a killed worker, the clean-up."""
    settings = as_account(site, data_dir, "memd-daemon")
    site.client("memd-daemon").hset("rq:job:forged", "data", "x")
    site.client("memd-daemon").rpush("rq:queue:memd", "forged", "nowhere")
    with part("worker", settings):
        wait_for(lambda: site.admin().zscore("rq:failed:memd", "forged"), "the forged job has failed")
    with part("worker", settings) as killed:
        ring(bell_queue(connect(settings)))
        wait_for(lambda: site.admin().zcard("rq:wip:memd"), "the bell is being answered")
        killed.kill()
    ids: list[bytes] = execute(site.admin(), "ZRANGE", "rq:wip:memd", 0, -1)
    site.admin().zadd("rq:wip:memd", dict.fromkeys(ids, 1))
    site.admin().rpush("rq:queue:memd:intermediate", "stuck")
    with part("worker", settings):
        wait_for(lambda: not site.admin().zcard("rq:wip:memd"), "the abandoned bell is cleaned up")
    assert site.denials() == []


FORBIDDEN: dict[str, list[str]] = {
    "memd-in": [
        "RPUSH memd:in:shop x", "RPUSH {memd}:due x", "LRANGE memd:in 0 -1", "LPOP memd:in", "DEL memd:in",
        "LTRIM memd:in 1 0", "EXPIRE memd:in 1", "RENAME memd:in x", "FCALL memd_push 1 {memd}",
    ],
    "memd-in-shop": ["RPUSH memd:in x", "RPUSH memd:in:other x", "LLEN memd:in", "LRANGE memd:in:shop 0 -1"],
    "memd-app": [
        "FCALL memd_claim_1 1 {memd}", "FCALL memd_ack_1 1 {memd} x", "FCALL memd_bury_1 1 {memd} x",
        "FCALL memd_full_1 1 {memd} 1", "FCALL memd_push 1 memd:in", "FCALL_RO memd_receipt_1 1 {memd}",
        "HSET {memd}:config enabled 0", "DEL {memd}:due", "HGETALL {memd}:ctx:x", "HGETALL {memd}:dead:x",
        "HDEL {memd}:busy x", "ZREM {memd}:claimed x", "ZRANGE {memd}:claimed 0 -1", "RPUSH memd:in x",
        "LRANGE memd:in 0 -1", "HSET rq:job:x data x", "RPUSH rq:queue:memd x", "SCAN 0",
    ],
    "memd-daemon": ["GET other", "PUBLISH elsewhere x", "SUBSCRIBE elsewhere", "FUNCTION FLUSH", "FUNCTION DELETE x"],
    "memd-events": ["XADD memd:events * event x", "XTRIM memd:events MAXLEN 0", "XDEL memd:events 1-1", "GET x"],
    "memd-reader": [
        "LRANGE memd:in 0 -1", "HGETALL {memd}:ctx:x", "HKEYS {memd}:ctx:x", "HGETALL {memd}:claim:x",
        "HGETALL {memd}:dead:x", "HSET {memd}:config enabled 0", "FCALL memd_receipt_1 1 {memd} x",
        "HGET {memd}:dead:x m:1", "RPUSH memd:in x",
    ],
}  # fmt: skip
NOBODY = [
    "EVAL x 0", "EVALSHA x 0", "SCRIPT LOAD x", "CONFIG GET *", "CONFIG SET save x", "FLUSHALL", "FLUSHDB", "KEYS *",
    "SELECT 1", "MONITOR", "SHUTDOWN", "ACL LIST", "ACL SETUSER x", "CLIENT KILL TYPE normal",
    "MODULE LIST", "REPLICAOF NO ONE", "SAVE", "BGREWRITEAOF", "COPY memd:in x", "SWAPDB 0 1", "FUNCTION FLUSH",
    "MIGRATE h 1 k 0 1", "SORT memd:in", "RESTORE x 0 x",
]  # fmt: skip


@pytest.mark.parametrize("account", ACCOUNTS)
def test_an_account_can_do_nothing_else(site: Site, account: str) -> None:
    """Other lists, reading what is pending, scripts, settings, emptying, listing keys: all refused by the server."""
    with site.client(account) as client:
        for command in (*FORBIDDEN[account], *NOBODY):
            with pytest.raises(redis.exceptions.NoPermissionError):
                execute(client, *command.split())


@pytest.mark.parametrize("account", [name for name in ACCOUNTS if name != "memd-daemon"])
def test_only_the_daemon_loads_functions(site: Site, account: str) -> None:
    """A function library is code on the server."""
    with pytest.raises(redis.exceptions.NoPermissionError):
        site.client(account).function_load("#!lua name=x\nredis.register_function('x', function() end)")


def test_a_function_cannot_do_what_its_account_cannot(site: Site) -> None:
    """The daemon's own library gets no further than the daemon."""
    code = "#!lua name=x\nredis.register_function('x', function() return redis.call('FLUSHALL') end)"
    site.client("memd-daemon").function_load(code)
    with pytest.raises(redis.ResponseError, match="|".join(NO_RIGHT_INSIDE)):
        site.client("memd-daemon").fcall("x", 0)


# --- the functions -------------------------------------------------------------------------------------------------

KEYS = {
    "ctx": "{memd}:ctx:x", "pending": "{memd}:ctx:x",
    "outcome": "{memd}:outcome:x", "claim": "{memd}:claim:x", "hash": "{memd}:claim:x",
    "newer": "{memd}:known:x:1", "older": "{memd}:known:x:0", "set": "{memd}:known:x:1",
    "dead": "{memd}:dead:x", "died": "{memd}:died:x",
    "row": "{memd}:parked:x", "line": "{memd}:parked:line:x", "line_of": "{memd}:parked:line:x",
    "b": "{memd}:breaker:x", "key": "{memd}:ctx:x", "list": "memd:in",
    "batch": "{memd}:batch:x", "spent": "{memd}:spent:1", "usage": "{memd}:usage:1", "facts": "{memd}:facts:1",
    "extracted": "{memd}:extracted:x",
    "STREAM": EVENTS,
    "P": "{memd}:due", "tomb": "{memd}:forgotten:x", "source": "{memd}:claim:x", "place": "{memd}:claim:x",
}  # fmt: skip
"""What the variables of the functions stand for where a command names its key by one; P: P .. ':' .. source."""


def test_the_app_may_all_that_its_functions_do(site: Site) -> None:
    """A right that is missing inside a function would leave its move half done."""
    called = lua_calls("memd_push", "memd_receipt", "memd_flush")
    assert len(called) > 25
    assert refused(site, "memd-app", called) == []


def test_the_daemon_may_all_that_any_function_does(site: Site) -> None:
    """All functions."""
    called = lua_calls(everything=True)
    assert len(called) > 60
    assert refused(site, "memd-daemon", called) == []


def refused(site: Site, account: str, called: set[tuple[str, str]]) -> list[tuple[str, str]]:
    with site.admin() as admin:
        arity = {name: abs(spec["arity"]) for name, spec in admin.command().items()}
        return [
            (command, key)
            for command, key in sorted(called)
            if admin.acl_dryrun(account, command, *[key] * (arity[command.lower()] - 1)) != b"OK"
        ]


def lua_source() -> str:
    return "\n".join(library.libraries().values())


def lua_calls(*roots: str, everything: bool = False) -> set[tuple[str, str]]:
    """The commands, each with its key, in these functions and in all that they call."""
    bodies = dict(
        re.findall(r"^local function (?!call\()(\w+)\(.*?\n(.*?)^end", lua_source(), re.MULTILINE | re.DOTALL)
    )
    bodies |= dict(
        re.findall(r"^redis\.register_function\('(\w+)'.*?\n(.*?)^end", lua_source(), re.MULTILINE | re.DOTALL)
    )
    reached, ahead = set[str](), set(bodies) if everything else set(roots)
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead |= {other for other in bodies if re.search(rf"\b{other}\(", bodies[name])} - reached
    return {key for name in reached for key in calls_in(bodies[name])}


def calls_in(body: str) -> Iterator[tuple[str, str]]:
    for command, rest in re.findall(r"\bcall\('([A-Z]+)'(.*)", body):
        yield command, key_in(command, rest)


def key_in(command: str, rest: str) -> str:
    if command == "TIME":
        return ""
    literal = re.match(r", (?:P|keys\[1\]) \.\. '(:[a-z]+:?)'", rest)
    if literal:
        return verbs.P + literal[1] + ("x" if literal[1].endswith(":") else "")
    name = re.match(r", (\w+)", rest)
    assert name, rest
    assert name[1] in KEYS, f"say in KEYS which key {name[1]} is"
    return KEYS[name[1]]


# --- passwords and errors ------------------------------------------------------------------------------------------


def test_without_a_password_nobody_can_log_in(settings: Settings, data_dir: Path) -> None:
    """The plain lines are loaded as they are, and open no door, whatever is tried as a password."""
    printed = run("acl", settings=settings)
    assert "nopass" not in printed.stdout
    assert printed.stderr.count("no password yet") == 5
    (data_dir / "users.acl").write_text(printed.stdout)
    with (
        own_server(data_dir, "--aclfile", str(data_dir / "users.acl")) as port,
        connect(make_settings(data_dir, f"redis://127.0.0.1:{port}"), 0) as client,
    ):
        for password in ("", "resetpass", "CHANGE-ME", "memd-daemon"):
            with pytest.raises(redis.AuthenticationError):
                execute(client, "AUTH", "memd-daemon", password)


def test_passwords_come_from_the_environment_as_hashes(settings: Settings) -> None:
    """No password stands in the output, nor does one that is too short or shared become an account's."""
    password = secrets.token_hex(16)
    printed = run("acl", settings=settings, ACL_PASSWORD_MEMD_DAEMON=password)
    assert printed.stdout.count("#") == 1
    assert password not in printed.stdout + printed.stderr
    for wrong in ({"ACL_PASSWORD_MEMD_IN": "short"}, {"ACL_PASSWORD_MEMD_IN": password}):
        refused = run("acl", settings=settings, ACL_PASSWORD_MEMD_DAEMON=password, **wrong)
        assert (refused.returncode, refused.stdout) == (78, "")
        assert password not in refused.stderr


def test_setuser_commands_renew_an_account(site: Site, settings: Settings) -> None:
    """Sent to a running server they take away what an account had before, its old password included."""
    with site.admin() as admin:
        execute(admin, "ACL", "SETUSER", "memd-in-odd", "on", "nopass", "~*", "+@all")
        lines = run("acl", "--app", "odd", "--setuser", settings=settings).stdout.splitlines()
        line = next(line for line in lines if "memd-in-odd" in line)
        execute(admin, *line.split())
        found = admin.acl_getuser("memd-in-odd")
        execute(admin, "ACL", "DELUSER", "memd-in-odd")
    assert (found["passwords"], found["keys"]) == ([], ["%W~memd:in:odd"])
    assert "nopass" not in found["flags"]


def test_a_list_that_nobody_reads_is_said(settings: Settings) -> None:
    """An account for an app that the settings do not name would push into the void."""
    assert "nobody reads the lists of odd until" in run("acl", "--app", "odd", settings=settings).stderr


@pytest.mark.parametrize(
    ("account", "words", "sentence"),
    [
        ("memd-in", ["status"], "must not run INFO"),
        ("memd-in", ["push"], "must not run FCALL"),
        ("memd-reader", ["flush"], "must not"),
    ],
)
def test_a_missing_right_is_one_sentence(
    site: Site, data_dir: Path, account: str, words: list[str], sentence: str
) -> None:
    """The command line says what the account must not do and where rights are printed; exit code 77."""
    done = run(*words, settings=as_account(site, data_dir, account))
    assert done.returncode == 77, done.stderr
    assert sentence in done.stderr
    assert "memd acl" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_rights_missing_inside_a_function_are_said_too(site: Site, data_dir: Path) -> None:
    """An account that may call a function but not do what it does."""
    with site.admin() as admin:
        execute(admin, "ACL", "SETUSER", "half", "reset", "on", "nopass", "~*", "+fcall")
        settings = make_settings(data_dir, f"redis://half:x@127.0.0.1:{site.port}")
        try:
            with connect(settings) as client, pytest.raises(NotAllowed, match="must not"):
                send(client, verbs.flush_page("due", "0", (None, None, None)))
        finally:
            execute(admin, "ACL", "DELUSER", "half")


def test_a_scheduler_waits_for_its_rights(site: Site, data_dir: Path) -> None:
    """A right that is taken away is an outage, logged once; once it is given back the scheduler goes on by itself."""
    with site.admin() as admin, part("scheduler", as_account(site, data_dir, "memd-daemon")) as scheduler:
        log = data_dir / "scheduler0.log"
        wait_for(lambda: b"scheduler_started" in log.read_bytes(), "it has begun")
        execute(admin, "ACL", "SETUSER", "memd-daemon", "-fcall")
        wait_for(lambda: b"NotAllowed" in log.read_bytes(), "the outage is logged")
        execute(admin, "ACL", "SETUSER", "memd-daemon", "+fcall")
        wait_for(lambda: b"outage_ended" in log.read_bytes(), "it goes on")
        assert scheduler.poll() is None
        assert log.read_bytes().count(b"NotAllowed") == 1
        execute(admin, "ACL", "LOAD")


def test_a_wrong_password_is_one_sentence(site: Site, settings: Settings) -> None:
    """And it does not say which."""
    url = f"redis://memd-daemon:wrong@127.0.0.1:{site.port}"
    done = run("status", settings=settings, MEMD_REDIS_URL=url)
    assert (done.returncode, len(done.stderr.splitlines())) == (AccountRefused.exit_code, 1)
    assert "wrong" not in done.stderr


def test_every_branch_of_a_push_stays_within_the_apps_rights(site: Site, data_dir: Path) -> None:
    """New, merged, twin, parked, known, dead, counted only; flushed by user, all, while claimed; asked for."""
    with Memd(as_account(site, data_dir, "memd-app")) as app, site.admin() as admin:
        settings = as_account(site, data_dir, "memd-daemon")
        single = [{"role": "user", "content": "I live in Porto."}]
        app.push(single, thread_id="t", user_id="ana")
        app.push([{"role": "user", "content": "Hi."}, *single], thread_id="t", user_id="ana")
        app.push([{"role": "system", "content": "x"}], thread_id="t", user_id="ana")
        app.flush(user_id="ana")
        assert [key.state for key in app.pending(user_id="ana").keys] == ["due"]
        claims = send(connect(settings), verbs.claim(settings, 1, 0, "w", "e"))
        assert [key.state for key in app.pending(user_id="ana").keys] == ["claimed"]
        receipt = app.push(MESSAGES, thread_id="t2", user_id="ana", now=True)
        assert len(app.key_of_receipt(str(receipt.id), user_id="ana")) == 1
        send(connect(settings), verbs.claim(settings, 1, 0, "w", "e"))
        app.push(MESSAGES[:1], thread_id="t2", user_id="ana")
        app.flush()
        send(connect(settings), verbs.bury(claims.taken[0].id, "E_X", "x"))
        app.push(single, thread_id="t", user_id="ana")
        app.push([*single, *MESSAGES], thread_id="t", user_id="ana")
        assert app.flush(wait=True, timeout_s=0.1).timed_out
        assert admin.zcard(f"{verbs.P}:dead") == 1
    assert site.denials() == []
