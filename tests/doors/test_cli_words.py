"""What the command line says in small: counted nouns, receipts, passwords in arguments, a server nobody would use."""

from __future__ import annotations

import json

import pytest
import redis
from support import Cli, MakeSettings, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.printable import counted, noun

SMALL_TALK = [{"role": "user", "content": "What time is it in Oslo?", "id": "1"}]


@pytest.mark.parametrize(
    ("count", "nouns", "text"),
    [
        (0, ("fact",), "0 facts"),
        (1, ("fact",), "1 fact"),
        (2, ("push", "pushes"), "2 pushes"),
        (1, ("memory", "memories"), "1 memory"),
        (5000, ("fact",), "5,000 facts"),
    ],
)
def test_nouns_are_counted(count: int, nouns: tuple[str, ...], text: str) -> None:
    """One is singular; all other numbers are plural."""
    assert counted(count, *nouns) == text
    assert noun(count, *nouns) == text.split()[1]


def test_one_of_a_kind_is_singular(memd: Memd, cli: Cli) -> None:
    """In each command that counts."""
    memd.add_fact("ana", "Lives in Porto.")
    memd.push(SMALL_TALK, thread_id="t", user_id="ana")
    assert "\n1 fact, " in cli("show", "ana").stdout
    assert "pending           1 key (" in cli("status").stdout
    assert cli("audit", "ana").stdout.endswith("1 fact in 1 memory: nothing found\n")
    assert "1 message, due" in cli("push", given=json.dumps(_push("t2"))).stdout
    exported = cli("export", "ana").stdout
    assert "1  fact added" in cli("import", "-", "--user", "bob", given=exported).stdout


def _push(thread: str) -> dict[str, object]:
    return {"thread_id": thread, "user_id": "ana", "messages": SMALL_TALK}


@pytest.mark.timing
def test_a_push_with_nothing_in_it_was_read(configured: MakeSettings, client: redis.Redis, cli: Cli) -> None:
    """It is stored as far as its ledger goes; a person reads that there was nothing in it."""
    settings = configured()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        receipt = app.push(SMALL_TALK, thread_id="t", user_id="ana", now=True).id or ""
        wait_for(lambda: app.receipt(receipt).ended, "the push has ended")
        assert (app.receipt(receipt).state, app.receipt(receipt).fact_ids) == ("stored", ())
    assert cli("receipt", receipt).stdout == "read, 0 facts\n"
    assert json.loads(cli("receipt", receipt, "--json").stdout)["state"] == "stored"


@pytest.mark.parametrize(
    "url", ["redis://memd:hush@127.0.0.1:1", "unix:///nowhere/s?password=hush", "redis://:hush@[::1"]
)
def test_a_password_in_an_argument_is_warned_of(cli: Cli, url: str) -> None:
    """It is used all the same; neither the warning nor the error shows it. In the environment it is in its place."""
    done = cli("--redis-url", url, "status")
    assert done.returncode == (78 if "[::1" in url else 69), "the last one is no URL"
    assert ("process list" in done.stderr) == ("[::1" not in url)
    assert "hush" not in done.stderr
    assert "process list" not in cli("status", MEMD_REDIS_URL=url).stderr
    assert "process list" not in cli("--redis-url", "redis://127.0.0.1:1", "status").stderr


def test_no_server_runs_that_nobody_would_use(cli_process: Cli) -> None:
    """Where redis_url is set, all parts use that server."""
    done = cli_process("server")
    assert (done.returncode, "redis_url names another server" in done.stderr) == (78, True)


@pytest.mark.parametrize("include_pending", [False, True])
def test_a_memory_that_is_off_injects_nothing(
    configured: MakeSettings, client: redis.Redis, include_pending: bool
) -> None:
    """`enabled: false` takes nothing in and gives nothing out; people can still read and export."""
    with Memd(configured()) as on:
        on.add_fact("ana", "Lives in Porto.")
        assert "Porto" in on.inject("ana")
    off: Settings = configured(enabled=False)
    with Memd(off) as app:
        assert app.inject("ana", include_pending=include_pending) == ""
        assert app.inject("ana", query="where", include_pending=include_pending) == ""
        assert len(app.document("ana")["facts"]) == 1
