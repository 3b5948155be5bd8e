"""Looking around: users, pending keys, watching, tables that fit, completion, the help page."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from rich.cells import cell_len
from support import Cli, MakeSettings, environment, make_settings
from support.proxy import Proxy
from support.terminal import Terminal

from memd.cli.app import COMMANDS, GROUPS
from memd.cli.tables import lines
from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.context import Key, user_hash
from memd.errors import Rejected
from memd.http import keyring
from memd.inbox import library, verbs
from memd.inbox.connection import send
from memd.inbox.keys import open_keys
from memd.inbox.verbs import P

TURNS = [
    {"role": "user", "content": "My private words about Porto.", "id": "1"},
    {"role": "assistant", "content": "Nice.", "id": "2"},
    {"role": "user", "content": "我喜欢喝绿茶，也喜欢散步。", "id": "3"},
]


@pytest.fixture
def settings(configured: MakeSettings) -> Settings:
    """A quiet time that no test waits for."""
    return configured(scheduler__quiet_s=60, scheduler__max_wait_s=60)


def ids(memd: Memd, **page: Any) -> list[str]:
    """The users of all pages, in order."""
    found: list[str] = []
    after = ""
    while True:
        users = memd.users(after=after, **page)
        found += [row.user_id for row in users.users]
        after = users.next
        if not after:
            return found


def test_users_are_listed_by_id_page_by_page(memd: Memd) -> None:
    """Each once, whatever the size of the page; with the facts of all agents and what is pending."""
    names = ["bob", "ana", "小明", "x" * 200, "Zoë", "a:b"]
    for name in names:
        memd.add_fact(name, f"Fact of {name[:5]}.")
    memd.add_fact("ana", "Cooks well.", agent_name="chef")
    memd.push(TURNS, thread_id="t", user_id="ana")
    memd.push(TURNS, thread_id="t2", user_id="ana")
    for limit in (1, 2, 4, 6, 100):
        assert ids(memd, limit=limit) == sorted(names)
    ana = next(row for row in memd.users().users if row.user_id == "ana")
    assert (ana.user_id, ana.agents, ana.facts, ana.pending) == ("ana", ("chef",), 2, 2)
    assert ids(memd, visible=lambda user: user < "b") == ["Zoë", "a:b", "ana"]
    assert memd.users(limit=6).next == ""


def test_users_are_listed_by_their_last_change(memd: Memd, settings: Settings) -> None:
    """The latest first, by the times of the files; a memory of an agent counts too. Equal times go by id."""
    for number, name in enumerate(("ana", "bob", "cem", "dea")):
        memd.add_fact(name, f"Fact number {number}.")
        os.utime(settings.data_dir / "users" / name / "memory.json", (1_000, 1_000 + number // 2))
    memd.add_fact("ana", "Cooks well.", agent_name="chef")
    assert ids(memd, by="changed", limit=1) == ["ana", "cem", "dea", "bob"]
    changed = memd.users(by="changed").users[1].changed_at
    assert changed is not None
    assert changed.timestamp() == 1_001


def test_users_are_found_by_a_part_of_their_id(memd: Memd, cli: Cli) -> None:
    """In any case, in either order, page by page; the command and its cursor as well."""
    names = ["ana@shop.org", "Bob@Shop.org", "小明", "shopper", "a/b", "x" * 200]
    for name in names:
        memd.add_fact(name, f"Fact of {name[:5]}.")
    assert ids(memd, find="SHOP", limit=1) == ["Bob@Shop.org", "ana@shop.org", "shopper"]
    assert ids(memd, find="shop", by="changed", limit=2) == ["shopper", "Bob@Shop.org", "ana@shop.org"]
    assert ids(memd, find="明") == ["小明"]
    assert ids(memd, find="/") == ["a/b"]
    assert ids(memd, find="xxx") == ["x" * 200]
    assert ids(memd, find="shop", visible=lambda user: user != "shopper") == ["Bob@Shop.org", "ana@shop.org"]
    assert ids(memd, find="nobody") == []
    page = json.loads(cli("users", "--find", "shop", "--limit", "2", "--json").stdout)
    assert [row["user_id"] for row in page["users"]] == ["Bob@Shop.org", "ana@shop.org"]
    last = json.loads(cli("users", "--find", "shop", "--after", page["next"], "--json").stdout)
    assert ([row["user_id"] for row in last["users"]], last["next"]) == (["shopper"], "")


def test_the_order_by_change_follows_other_processes(memd: Memd, settings: Settings) -> None:
    """A commit of another client is seen at once; the edit of a person with an editor some pages later."""
    for number in range(40):
        memd.add_fact(f"user-{number:02}", "Lives in Porto.")
        os.utime(settings.data_dir / "users" / f"user-{number:02}" / "memory.json", (1_000, 1_000 - number))
    assert ids(memd, by="changed", limit=7) == [f"user-{number:02}" for number in range(40)]
    with Memd(settings) as other:
        other.add_fact("user-30", "Rows.", agent_name="coach")
        other.add_fact("new", "Swims.")
        other.forget("user-02")
    assert ids(memd, by="changed")[:4] == ["new", "user-30", "user-00", "user-01"]
    os.utime(settings.data_dir / "users" / "user-20" / "memory.json", (1 << 33, 1 << 33))
    looked = [ids(memd, by="changed")[0] for _ in range(32)]
    assert looked[-1] == "user-20"
    assert ids(memd, by="changed")[1:5] == ["new", "user-30", "user-00", "user-01"]


def test_a_page_reads_no_memory_but_those_shown(memd: Memd, settings: Settings, client: redis.Redis) -> None:
    """The documents of the other users may be anything; what has ended of a user is counted by the server."""
    for number in range(20):
        memd.add_fact(f"user-{number:02}", "Lives in Porto.")
    for number in range(5, 20):
        file = settings.data_dir / "users" / f"user-{number:02}" / "memory.json"
        file.unlink()
        os.mkfifo(file)  # who reads it waits for ever, or fails
    client.sadd(f"{P}:user:{user_hash('user-01')}", *(f"ended-{number}" for number in range(2_000)))
    memd.push(TURNS, thread_id="t", user_id="user-01")
    before = client.info("stats")["total_commands_processed"]
    page = memd.users(limit=5, find="user")
    assert [(row.facts, row.pending) for row in page.users] == [(1, int(number == 1)) for number in range(5)]
    assert client.info("stats")["total_commands_processed"] - before < 25
    assert memd.users(limit=1, by="changed").next


def test_a_key_that_is_claimed_and_pending_counts_once(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """As do parked, rationed and batched ones."""
    in_each_state(memd, client, settings)
    memd.push([{"role": "user", "content": "More.", "id": "9"}], thread_id="claimed", user_id="ana")
    owners = [user_hash(name) for name in ("ana", "bob", "cem", "dea", "eli", "nobody")]
    assert open_keys(client, owners) == [2, 1, 1, 1, 1, 0]
    assert open_keys(client, []) == []


def test_users_without_a_server_and_with_damage(memd: Memd, data_dir: Path) -> None:
    """Memories are files: they are listed all the same. A damaged one has no count, and stays where it is."""
    memd.add_fact("ana", "Lives in Porto.")
    memd.add_fact("bob", "Lives in Oslo.")
    file = data_dir / "users" / "bob" / "memory.json"
    file.write_text("{")
    with Memd(make_settings(data_dir, "unix:///nowhere/s")) as alone:
        ana, bob = alone.users().users
    assert (ana.facts, ana.pending, bob.pending) == (1, None, None)
    assert file.read_text() == "{"


@pytest.mark.parametrize(
    ("page", "field"),
    [({"limit": 0}, "limit"), ({"limit": 1001}, "limit"), ({"after": "x"}, "after"), ({"by": "size"}, "by")],
)
def test_a_bad_page_is_refused(memd: Memd, page: dict[str, Any], field: str) -> None:
    """With the field."""
    with pytest.raises(Rejected) as raised:
        memd.users(**page)
    assert raised.value.field == field
    if field != "by":
        with pytest.raises(Rejected):
            memd.pending(**page)


def in_each_state(memd: Memd, client: redis.Redis, settings: Settings) -> dict[str, str]:
    """A key in each state, by its thread; whose text is nobody's business."""
    for thread, now in (("claimed", True), ("parked", True)):
        memd.push(TURNS, thread_id=thread, user_id="ana", now=now)
        if thread == "claimed":
            assert len(send(client, verbs.claim(settings, 1, 0, "host:7:token", "model")).taken) == 1
    for user, thread in (("bob", "waiting"), ("cem", "due"), ("dea", "rationed"), ("eli", "batched")):
        memd.push(TURNS, thread_id=thread, user_id=user, now=thread == "due")
    for row, user in (("rationed", "dea"), ("batched", "eli")):
        key = Key(row, user).hash
        client.zrem(f"{P}:due", key)
        client.zadd(f"{P}:{row}", {key: 9_999_999_999_999})
        client.hset(f"{P}:ctx:{key}", ".parked", row)
    parked = Key("parked", "ana")
    client.zrem(f"{P}:due", parked.hash)
    client.zadd(f"{P}:parked:{parked.bucket.hash}", {parked.hash: 1})
    client.hset(f"{P}:ctx:{parked.hash}", ".parked", 1)
    return {"claimed": "ana", "due": "cem", "parked": "ana", "rationed": "dea", "batched": "eli", "waiting": "bob"}


def all_keys(memd: Memd, limit: int, **which: Any) -> list[Any]:
    """The keys of all pages."""
    found: list[Any] = []
    after = ""
    while True:
        page = memd.pending(limit=limit, after=after, **which)
        found += page.keys
        after = page.next
        if not after:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pending_shows_each_state_once(memd: Memd, client: redis.Redis, settings: Settings, limit: int) -> None:
    """Whose, how much, since when, until when, by whom; the text of nobody."""
    expected = in_each_state(memd, client, settings)
    keys = all_keys(memd, limit)
    assert {key.thread_id: key.user_id for key in keys} == expected
    assert len(keys) == len(expected)
    for key in keys:
        assert key.state == key.thread_id
        assert (key.turns, key.first_push is not None) == (3, True)
        assert key.tokens > 20
        assert key.claimed_by == ("host:7" if key.state == "claimed" else None)
    by_state = {key.state: key for key in keys}
    assert 0 < (by_state["waiting"].due_in_s or 0) <= 60
    assert (by_state["due"].due_in_s, by_state["claimed"].due_in_s) == (0, None)
    assert "Porto" not in orjson.dumps([asdict(key) for key in keys]).decode()
    assert {key.thread_id for key in all_keys(memd, limit, user_id="ana")} == {"claimed", "parked"}
    assert all_keys(memd, limit, user_id="nobody") == []


def test_parked_keys_are_paged_over_all_buckets(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Each once, whatever the size of the page and wherever a bucket ends."""
    for number in range(3):
        memd.push(TURNS, thread_id="first", user_id=f"user-{number}", now=True)
    assert len(send(client, verbs.claim(settings, 3, 0, "host:7:token", "model")).taken) == 3
    parked = {(f"user-{user}", f"t{number}") for user in range(3) for number in range(2 * user + 1)}
    for user, thread in parked:
        memd.push(TURNS, thread_id=thread, user_id=user, now=True)
    assert send(client, verbs.claim(settings, 50, 3, "host:7:token", "model")).taken == ()
    for limit in (1, 2, 5, 12, 100):
        keys = [(key.user_id, key.thread_id) for key in all_keys(memd, limit) if key.state == "parked"]
        assert (len(keys), set(keys)) == (9, parked)


def test_the_fields_that_are_no_turns_are_all_known() -> None:
    """Every field of a context that the Lua writes is in the list by which turns are told apart."""
    from memd.inbox import keys

    source = "".join(library.libraries().values())
    header = source[source.index("P:ctx:<key>") : source.index("P:wrong")]
    import re

    named = set(re.findall(r"(?<![\w:])(\.[a-z]+)\b", header)) | {".key", ".worker", ".held", ".endpoint"}
    assert named == {*keys.SHOWN, *keys.OTHERS}


def test_the_async_client_looks_as_well(memd: Memd, settings: Settings) -> None:
    """The same pages."""
    memd.add_fact("ana", "Lives in Porto.")
    memd.push(TURNS, thread_id="t", user_id="ana")

    async def look() -> tuple[Any, Any]:
        async with AsyncMemd(settings) as app:
            return await app.users(), await app.pending(user_id="ana")

    users, pending = asyncio.run(look())
    assert users == memd.users()
    assert [key.thread_id for key in pending.keys] == ["t"]


def test_the_commands_in_words_and_json(memd: Memd, cli: Cli, client: redis.Redis, settings: Settings) -> None:
    """A row is one whole line where no terminal limits it; the cursor is printed as it is typed."""
    in_each_state(memd, client, settings)
    for name in ("ana", "it's", "o" * 150):
        memd.add_fact(name, "Lives in Porto.")
    shown = cli("users").stdout.splitlines()
    assert shown[0].split() == ["user", "facts", "pending", "changed", "agents"]
    assert shown[1].split()[:3] == ["ana", "1", "2"]
    assert any(line.startswith("o" * 150) for line in shown)
    more = cli("users", "-n", "2").stdout.splitlines()[-1]
    assert more == "more: --after '0:it'\\''s'"
    assert json.loads(cli("users", "--json").stdout)["users"][0]["user_id"] == "ana"
    text = cli("pending").stdout
    assert all(state in text for state in ("claimed", "due", "parked", "rationed", "batched", "waiting", "host:7"))
    assert "Porto" not in text
    assert cli("pending", "--user", "nobody").stdout == "nothing is pending\n"
    assert len(json.loads(cli("pending", "--json", "--user", "ana").stdout)["keys"]) == 2
    empty = cli("users", MEMD_DATA_DIR=str(settings.data_dir / "other"))
    assert (empty.stdout, str(settings.data_dir / "other") in empty.stderr) == ("", True)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_table_fits_the_terminal(columns: int) -> None:
    """No line is wider, wide characters count twice, and no character of a cell is lost."""
    rows = [
        ("小明的名字很长很长很长很长很长很长", 3, "an-agent-with-a-long-name-1234567890"),
        ("ana", 12_345, "[red]x[/red]"),
    ]
    printed = lines(("user", "facts", "agent"), rows, ("facts",), columns)
    assert max(map(cell_len, printed)) <= columns
    for row in rows:
        for cell in row:
            assert set(str(cell)) <= set("".join(printed))
    if columns == 120:
        starts = {
            cell_len(line[: line.index(word)])
            for line, word in zip(printed, ("agent", "an-agent", "[red]"), strict=True)
        }
        assert len(starts) == 1, "the column begins at one place, also behind wide characters"


@pytest.mark.timing
@pytest.mark.parametrize("columns", [40, 80])
def test_tables_on_a_terminal(memd: Memd, client: redis.Redis, settings: Settings, columns: int) -> None:
    """The commands themselves, on a terminal of this width."""
    in_each_state(memd, client, settings)
    memd.add_fact("小明" * 20, "住在波尔图。")
    for words in (["users"], ["pending"]):
        with Terminal([sys.executable, "-m", "memd", *words], environment(settings), columns) as terminal:
            assert terminal.exit_code() == 0
        assert max(map(cell_len, terminal.lines())) <= columns
        assert "小明" in terminal.text() or words == ["pending"]


@pytest.mark.timing
@pytest.mark.parametrize("key", ["q", "\x03"])
def test_watch_on_a_terminal(settings: Settings, client: redis.Redis, memd: Memd, key: str) -> None:
    """It shows the figures and ends at q or Ctrl-C, with exit code 0 and the terminal as it was."""
    memd.push(TURNS, thread_id="t", user_id="ana")
    with Terminal([sys.executable, "-m", "memd", "watch", "--every", "0.1"], environment(settings), 80) as terminal:
        terminal.wait_for("1 key (0 due")
        memd.push(TURNS, thread_id="t2", user_id="ana")
        terminal.wait_for("2 keys (0 due")
        terminal.type(key)
        assert terminal.exit_code() == 0
        assert terminal.echoes()


@pytest.mark.timing
def test_watch_without_a_terminal(settings: Settings, client: redis.Redis, memd: Memd) -> None:
    """A line at the start and at each change; Ctrl-C ends it."""
    words = [sys.executable, "-m", "memd", "watch", "--every", "0.1"]
    with subprocess.Popen(words, env=environment(settings), stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert "pending 0 keys" in watching.stdout.readline()
        memd.push(TURNS, thread_id="t", user_id="ana")
        assert "pending 1 key" in watching.stdout.readline()
        watching.send_signal(2)
        assert watching.wait(20) == 0


def completed(settings: Settings, line: str, **env: str) -> subprocess.CompletedProcess[str]:
    """What bash proposes behind a line."""
    words = line.split(" ")
    asked = {"_MEMD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    code = "import sys; sys.argv = ['memd']; from memd.cli import main; main()"
    given = {**environment(settings), **asked, **env}
    return subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.timing
def test_the_shell_completes(memd: Memd, settings: Settings) -> None:
    """Users, ids of facts and categories; from files, so no server is needed, and an error proposes nothing."""
    for name in ("ana", "anton", "bob"):
        memd.add_fact(name, f"Lives in {name}ville.")
    fact = memd.facts("ana")[0]["id"]
    away = {"MEMD_REDIS_URL": "unix:///nowhere/s"}
    for line, expected in (
        ("memd show an", {"ana", "anton"}),
        ("memd forget bo", {"bob"}),
        ("memd pending --user a", {"ana", "anton"}),
        ("memd facts rm ana fact_", {fact}),
        ("memd why ana fact_", {fact}),
        ("memd facts list ana --category pre", {"preference"}),
        ("memd wat", {"watch"}),
    ):
        done = completed(settings, line, **away)
        assert set(done.stdout.split()) == expected, line
        assert done.stderr == ""
    (settings.data_dir / "users" / "ana" / "memory.json").write_text("{")
    for env in ({}, {"MEMD_QUITE_S": "1"}, {"MEMD_DATA_DIR": "/proc/1/nowhere"}):
        broken = completed(settings, "memd facts rm ana fact_", **env)
        assert (broken.stdout.strip(), broken.stderr) == ("", "")


def test_the_help_page_has_groups(cli: Cli) -> None:
    """Every command is in one group, with its line."""
    page = cli("--help").stdout
    assert list(GROUPS) == ["Run", "Feed", "Look", "Edit", "Operate"]
    assert [line for line in page.splitlines() if line[:-1] in GROUPS] == [f"{group}:" for group in GROUPS]
    assert sum(map(len, GROUPS.values())) == len(COMMANDS)
    assert all(f"\n  {name} " in page for name in COMMANDS)


@pytest.mark.parametrize(
    "words", [["--help"], ["push", "--json"], ["inject", "ana"], ["show", "ana"], ["receipt", "x"]]
)
def test_hot_starts_load_no_rich(settings: Settings, client: redis.Redis, words: list[str]) -> None:
    """Tables and bars are imported where they are shown."""
    code = f"import sys; sys.argv = {['memd', *words]!r}\nfrom memd.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "print('rich' in sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(settings), input="", capture_output=True, text=True, check=True
    )
    assert done.stderr.endswith("False\n")


def test_many_pushes_are_a_sum(cli: Cli, memd: Memd) -> None:
    """Twenty are lines; one more is a sum, and what was refused is still said one by one."""
    push = {"user_id": "ana", "messages": TURNS}
    pushes = [json.dumps({**push, "thread_id": f"t{number}"}) for number in range(20)]
    assert len(cli("push", given="\n".join(pushes)).stdout.splitlines()) == 20
    done = cli("push", given="\n".join([*pushes, json.dumps({**push, "thread_id": "new"}), "{"]))
    assert done.stdout == "22 pushes: 20 merged, 1 queued, 1 rejected; 63 messages\n"
    assert (done.returncode, done.stderr.startswith("push 22: E_JSON")) == (65, True)
    assert len(json.loads(cli("push", "--json", given="\n".join(pushes * 2)).stdout)) == 40


@pytest.mark.timing
def test_a_bar_on_a_terminal(server_url: str, settings: Settings, client: redis.Redis) -> None:
    """A forgetting that takes more than a second shows one, and takes it away; in a pipe there is none."""
    with Proxy(server_url) as proxy:
        slow = make_settings(settings.data_dir, proxy.url)
        proxy.delay_s = 0.5
        words = [sys.executable, "-m", "memd", "forget", "nobody", "--yes"]
        with Terminal(words, environment(slow), 80) as terminal:
            terminal.wait_for("forgetting")
            assert terminal.exit_code() == 1
            terminal.wait_for("nothing is known")
        piped = subprocess.run(words, env=environment(slow), capture_output=True, text=True, check=False)
        assert "forgetting" not in piped.stdout + piped.stderr


@pytest.mark.timing
@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("words", [["facts", "list", "ana"], ["token", "list"]], ids=" ".join)
def test_the_other_tables_fit_as_well(memd: Memd, settings: Settings, words: list[str], columns: int) -> None:
    """Long facts in wide characters, and tokens with many users."""
    for text in (
        "Lives in Porto, next to the river, in a house with a very long address.",
        "住在波尔图河边的一所老房子里，" * 6,
    ):
        memd.add_fact("ana", text)
    tokens = settings.data_dir / "tokens.json"
    listed = frozenset(f"user-{number}" for number in range(20))
    keyring.add(tokens, keyring.new("shop", keyring.Users(listed))[0])
    env = {**environment(settings), "MEMD_HTTP__TOKENS": str(tokens)}
    with Terminal([sys.executable, "-m", "memd", *words], env, columns) as terminal:
        assert terminal.exit_code() in {0, 1}
    assert terminal.lines()
    assert max(map(cell_len, terminal.lines())) <= columns
