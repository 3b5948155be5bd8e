"""Tokens: who may use memd serve, in whose name, for what; and that a refusal tells nothing."""

from __future__ import annotations

import hashlib
import json
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ENDS_S, Cli, environment, make_settings, wait_for
from support.http_support import ALL, Answer, Site, install, project_requests, serving
from support.recall_support import document, fact, store, turn

from memd.context import Bucket
from memd.errors import ConfigError, Rejected
from memd.http import keyring
from memd.http.keyring import SCOPES, Keyring, Users
from memd.http.routes import operations

MESSAGES = [{"role": "user", "content": "I live in Porto.", "id": "1"}]
ID = "fact_00000000"
RECEIPT = f"{'0' * 32}.{'0' * 8}.1"


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with tokens; the site's own may do everything."""
    with serving(server_url, locked=True) as site:
        yield site


@pytest.fixture(scope="module")
def of_ana(running: Site) -> str:
    """A token for the users ana and 安娜, with every scope."""
    return running.give("shop", Users(frozenset({"ana", "安娜"})), SCOPES)


@pytest.fixture
def site(running: Site) -> Site:
    install(running)
    return running


def requests(user_id: str, thread_id: str = "t") -> dict[str, tuple[str, str, Any]]:
    """One request of each operation that names a user."""
    whose = {"user_id": user_id}
    return {
        "inject": ("GET", f"/v1/inject?user_id={user_id}", None),
        "injectFor": ("POST", "/v1/inject", whose),
        "search": ("POST", "/v1/search", {**whose, "query": "Porto"}),
        "memory": ("GET", f"/v1/memory?user_id={user_id}", None),
        "push": ("POST", "/v1/push", {**whose, "thread_id": thread_id, "messages": MESSAGES}),
        "receipt": ("GET", f"/v1/receipts/{RECEIPT}?user_id={user_id}", None),
        "flush": ("POST", "/v1/flush", whose),
        "pending": ("GET", f"/v1/pending?user_id={user_id}", None),
        "facts": ("GET", f"/v1/facts?user_id={user_id}", None),
        "why": ("GET", f"/v1/facts/{ID}?user_id={user_id}", None),
        "archive": ("GET", f"/v1/archive?user_id={user_id}", None),
        "withheld": ("GET", f"/v1/withheld?user_id={user_id}", None),
        "restoreFact": ("POST", f"/v1/withheld/{ID}/restore", whose),
        "addNote": ("POST", "/v1/notes", {**whose, "content": "Lives in Porto now."}),
        "doubtful": ("GET", f"/v1/doubtful?user_id={user_id}", None),
        "approveFact": ("POST", f"/v1/doubtful/{ID}/approve", whose),
        "dropFact": ("POST", f"/v1/doubtful/{ID}/drop", whose),
        "addFact": ("POST", "/v1/facts", {**whose, "content": "Lives in Porto now."}),
        "profile": ("GET", f"/v1/profile?user_id={user_id}", None),
        "setProfile": ("PUT", "/v1/profile", {**whose, "field": "profession", "value": "nurse"}),
        "unsetProfile": ("DELETE", f"/v1/profile?user_id={user_id}&field=profession", None),
        "editFact": ("PATCH", f"/v1/facts/{ID}", {**whose, "category": "goal"}),
        "removeFact": ("DELETE", f"/v1/facts/{ID}?user_id={user_id}", None),
        **project_requests(user_id),
        "export": ("GET", f"/v1/export?user_id={user_id}", None),
        "import": ("POST", "/v1/import", {**whose, "document": {"facts": []}}),
        "audit": ("GET", f"/v1/audit?user_id={user_id}", None),
        "dead": ("GET", f"/v1/dead?user_id={user_id}", None),
        "retryDead": ("POST", "/v1/dead/retry", whose),
        "dropDead": ("POST", "/v1/dead/drop", whose),
        "forget": ("POST", "/v1/forget", whose),
    }


def test_each_operation_that_names_a_user_is_tried_here() -> None:
    """A new route is not forgotten in the tests below."""
    named = {
        found.name
        for found in operations()
        if "user_id" in getattr(found.body or found.query, "model_fields", {"user_id": "of a push"})
    }
    assert set(requests("ana")) == named
    others = {found.name for found in operations() if found.scope not in (None, "status")} - named
    assert others == {"users", "deadLetter"}


@pytest.mark.parametrize("name", requests("ana"))
def test_a_hidden_user_cannot_be_told_from_one_that_is_not_there(site: Site, of_ana: str, name: str) -> None:
    """For every operation: a user with a memory, one without, and a fact that is not there: byte for byte."""
    site.ask("POST", "/v1/facts", {"user_id": "bob", "content": "Bob keeps a secret garden."})
    absent = site.ask("DELETE", f"/v1/facts/{ID}?user_id=ana", token=of_ana)
    assert (absent.status, absent.code) == (404, "E_NOT_FOUND")
    for user_id in ("bob", "nobody-at-all", "ana2", "an", "Ana"):
        method, path, body = requests(user_id)[name]
        assert site.ask(method, path, body, token=of_ana).same == absent.same, user_id
    assert site.ask("GET", "/v1/facts?user_id=bob").json["facts"]


@pytest.mark.parametrize("name", requests("ana"))
def test_without_a_valid_token_nothing_is_looked_at(site: Site, name: str) -> None:
    """No token, another scheme, a wrong secret, an unknown id, one taken away: one answer, whatever is asked."""
    method, path, body = requests("ana")[name]
    known, secret = site.token.rsplit("_", 1)[0], site.token.rsplit("_", 1)[1]
    tried = [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {site.token}"},
        {"authorization": f"Bearer {known}_{secret[:-1]}{'A' if secret[-1] != 'A' else 'B'}"},
        {"authorization": f"Bearer memd_{'0' * 12}_{secret}"},
        {"authorization": f"Bearer {site.token}x"},
        {"authorization": "Bearer ÿ"},
    ]
    answers = [site.ask(method, path, body, token="", headers=headers).same for headers in tried]
    assert answers[0][0] == 401
    assert answers[0][1]["www-authenticate"].startswith("Bearer")
    assert all(answer == answers[0] for answer in answers)


def test_scopes(running: Site) -> None:
    """A token does what its scopes say, and gets 403 for the rest; figures need one of their own."""
    held = {scope: running.give("shop", ALL, (scope,)) for scope in SCOPES}
    asked = {**requests("ana"), "status": ("GET", "/v1/status", None), "metrics": ("GET", "/metrics", None)}
    asked |= {"cost": ("GET", "/v1/cost", None), "hours": ("GET", "/v1/hours", None)}
    asked |= {"users": ("GET", "/v1/users", None), "deadLetter": ("GET", "/v1/dead/none-0", None)}
    install(running)
    for operation in operations():
        if operation.scope is None:
            assert running.ask("GET", operation.path, token="").status == 200
            continue
        for scope, token in held.items():
            answer = running.ask(*asked[operation.name], token=token)
            allowed = scope == operation.scope
            assert (answer.status == 403) != allowed, (operation.name, scope, answer)
            assert allowed or (answer.code, answer.json["field"]) == ("E_SCOPE", operation.scope)
    for path in ("/v1/status", "/metrics"):
        assert running.ask("GET", path, token="").code == "E_TOKEN"


def test_users_by_list_prefix_and_all(site: Site, of_ana: str) -> None:
    """Listed ones, Chinese ones too; those that begin with the prefix; and only a token for all flushes all."""
    of_shop = site.give("shop", Users(prefix="shop:"))
    allowed = {of_ana: ["ana", "%E5%AE%89%E5%A8%9C"], of_shop: ["shop:1", "shop:ana"], site.token: ["ana", "shop:1"]}
    refused = {of_ana: ["shop:1"], of_shop: ["ana", "shop", "shop2:1", "desk:1", "SHOP:1"], site.token: []}
    for token, users in allowed.items():
        assert [site.ask("GET", f"/v1/inject?user_id={user}", token=token).status for user in users] == [200, 200]
    for token, users in refused.items():
        assert {site.ask("GET", f"/v1/inject?user_id={user}", token=token).status for user in users} <= {404}
    for token, status in ((of_ana, 404), (of_shop, 404), (site.token, 200)):
        assert site.ask("POST", "/v1/flush", {}, token=token).status == status
        assert site.ask("POST", "/v1/flush", {"thread_id": "t"}, token=token).status == status


def test_apps_have_threads_of_their_own(site: Site) -> None:
    """Two apps push the same thread and message ids of one user: neither changes what the other has pending."""
    shop, desk = site.give("shop"), site.give("desk")
    body = {"user_id": "ivy", "thread_id": "t", "messages": MESSAGES}
    other = {**body, "messages": [{**MESSAGES[0], "content": "I live in Lyon."}]}
    first, second = site.ask("POST", "/v1/push", body, token=shop), site.ask("POST", "/v1/push", other, token=desk)
    assert (first.json["status"], second.json["status"]) == ("queued", "queued")
    assert first.json["id"].split(".")[0] != second.json["id"].split(".")[0]
    assert (
        site.ask("POST", "/v1/flush", {"user_id": "ivy", "thread_id": "t"}, token=shop).json["counts"]["waiting"] == 1
    )
    long = site.ask("POST", "/v1/push", {**body, "thread_id": "t" * 256}, token=shop)
    assert (long.code, long.json["field"], long.json["limit"]) == ("E_THREAD_ID_LENGTH", "thread_id", 191)


def test_what_was_said_needs_a_scope_of_its_own(site: Site) -> None:
    """Without it no excerpt, no turn of an export, and no word that only a turn has finds a fact; an app's thread has
    the name that the app gave it.
    """
    evidence = [{"thread": "shop/t", "message": "1", "quote": "Since 2019"}]
    store(
        site.settings.data_dir,
        {
            **document(fact("fact_a", "The user has been vegan since 2019", evidence=evidence), bucket=Bucket("eva")),
            "refused": [fact("fact_b", "The user trains dolphins")],
        },
        turn("1", "Since 2019, after that documentary on dolphins.", thread="shop/t"),
        turn("2", "My canoe is blue.", thread="shop/t"),
        turn("3", "My canoe leaks a little.", thread="shop/old"),
    )
    reads = site.give(scopes=("read", "admin"))
    may = site.give(scopes=("read", "admin", "said"))

    def found(token: str, query: str, **more: str) -> list[str]:
        answer = site.ask("POST", "/v1/search", {"user_id": "eva", "query": query, **more}, token=token)
        return [row["fact"]["content"] for row in answer.json["found"]]

    assert found(may, "dolphins")[:1] == ["The user has been vegan since 2019"]
    assert found(may, "canoe", thread_id="t")[0] == "My canoe leaks a little."
    assert "My canoe is blue." not in found(may, "canoe", thread_id="t")
    block = site.ask("GET", "/v1/inject?user_id=eva&query=canoe&thread_id=t", token=may).json["text"]
    assert "leaks" in block
    assert "blue" not in block
    assert "blue" in site.ask("POST", "/v1/inject", {"user_id": "eva", "query": "canoe"}, token=may).json["text"]
    assert (found(reads, "dolphins"), found(reads, "canoe")) == ([], [])
    assert "canoe" not in site.ask("GET", "/v1/inject?user_id=eva&query=canoe", token=reads).json["text"]
    assert "dolphins" in site.ask("GET", "/v1/export?user_id=eva", token=may).body.decode()
    assert "dolphins" not in site.ask("GET", "/v1/export?user_id=eva", token=reads).body.decode()
    assert "dolphins" not in site.ask("GET", "/v1/memory?user_id=eva", token=may).body.decode()


def test_a_receipt_is_for_who_may_name_its_user(site: Site, of_ana: str) -> None:
    """Of another user's push one learns what one learns of none at all: also when guessing that it is one's own."""
    pushed = site.ask("POST", "/v1/push", {"user_id": "bob", "thread_id": "t", "messages": MESSAGES})
    path = f"/v1/receipts/{pushed.json['id']}"
    assert site.ask("GET", f"{path}?user_id=bob").json["state"] == "pending"
    absent = site.ask("GET", f"/v1/receipts/{RECEIPT}?user_id=ana", token=of_ana)
    assert absent.status == 404
    for user_id in ("bob", "ana"):
        assert site.ask("GET", f"{path}?user_id={user_id}", token=of_ana).same == absent.same


def test_the_default_user_is_asked_for_too(server_url: str) -> None:
    """A push that names no user is for `client.default_user`, whom its token must be allowed to name."""
    with serving(server_url, locked=True, client__default_user="everyone") as site:
        install(site)
        push = {"thread_id": "t", "messages": MESSAGES}
        assert site.ask("POST", "/v1/push", push, token=site.give("shop", Users(frozenset({"ana"})))).status == 404
        assert site.ask("POST", "/v1/push", push, token=site.give("shop", Users(prefix="every"))).status == 202


def test_where_all_share_a_memory_a_token_for_some_is_for_nobody(server_url: str) -> None:
    """`store.shared`: what one user may read is everybody's, so it takes a token for all."""
    with serving(server_url, locked=True, store__shared=True) as site:
        some = site.give("shop", Users(prefix="an"), SCOPES)
        for path in ("/v1/inject?user_id=ana", "/v1/users", "/v1/dead", "/v1/dead/none-0"):
            assert site.ask("GET", path, token=some).code == "E_NOT_FOUND"
        assert site.ask("GET", "/v1/inject?user_id=ana").status == 200


def test_tokens_come_and_go_while_it_runs(server_url: str) -> None:
    """A token taken away is refused within a second; a file that nobody can read lets nobody in, until it is mended."""
    with serving(server_url, locked=True) as site:
        file = site.settings.http.tokens
        assert file

        def asked(token: str | None = None) -> Answer:
            return site.ask("GET", "/v1/inject?user_id=ana", token=token)

        text = site.give()
        assert asked(text).status == 200
        assert keyring.remove(file, text.split("_")[1])
        wait_for(lambda: asked(text).status == 401, "the token is refused")
        good = file.read_bytes()
        for bad in (b"{", b"[]", b'{"version": 2, "tokens": []}', good.replace(b'"all"', b'"any"')):
            file.write_bytes(bad)
            wait_for(lambda: asked().status == 503, "nobody gets in")
            assert asked().code == "E_TOKENS"
        file.write_bytes(good)
        wait_for(lambda: asked().status == 200, "it is mended")
        file.unlink()
        wait_for(lambda: asked().status == 401, "without the file nobody gets in")
        log = (site.settings.data_dir / "serve0.log").read_text()
    assert site.token not in log
    assert text not in log


def memd(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memd", *words], env=env, capture_output=True, text=True, timeout=ENDS_S, check=False
    )


def test_the_command_line_makes_lists_and_removes_tokens(data_dir: Path) -> None:
    """The text is shown once; the file has its hash, and is for its owner only."""
    file = data_dir / "keys" / "tokens.json"
    env = environment(make_settings(data_dir, None, http__tokens=str(file)))
    made = memd("token", "add", "--app", "shop", "--user", "安娜", "--user", "ben", "--scope", "read", env=env)
    text = made.stdout.strip()
    assert re.fullmatch(r"memd_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", text)
    assert text not in made.stderr
    assert text.split("_", 2)[2] not in file.read_text()
    assert hashlib.sha256(text.split("_", 2)[2].encode()).hexdigest() in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    listed = json.loads(memd("token", "list", "--json", env=env).stdout)
    assert [(row["app"], row["users"], row["scopes"]) for row in listed] == [
        ("shop", {"list": ["ben", "安娜"]}, ["read"])
    ]
    assert "hash" not in listed[0]
    assert "安娜" in memd("token", "list", env=env).stdout
    assert memd("token", "rm", "000000000000", env=env).returncode == 2
    assert memd("token", "rm", listed[0]["id"], env=env).returncode == 0
    assert "no tokens" in memd("token", "list", env=env).stdout
    none = memd("token", "list", env=environment(make_settings(data_dir, None)))
    assert (none.returncode, "http.tokens" in none.stderr) == (78, True)


@pytest.mark.parametrize(
    ("app", "users", "scopes"),
    [
        ("", ALL, ["read"]),
        ("a/b", ALL, ["read"]),
        ("shop", ALL, []),
        ("shop", ALL, ["root"]),
        ("shop", Users(), ["read"]),
        ("shop", Users(prefix="a", every=True), ["read"]),
        ("shop", Users(frozenset({"a"}), prefix="a"), ["read"]),
        ("shop", Users(frozenset({" a"})), ["read"]),
    ],
)
def test_what_a_token_cannot_be(app: str, users: Users, scopes: list[str]) -> None:
    """An app's name, at least one scope, the users named in one way."""
    with pytest.raises((ConfigError, Rejected)):
        keyring.new(app, users, scopes)


def test_the_file_must_be_nobody_elses_to_write(tmp_path: Path) -> None:
    """Who may write it may make tokens: then none of them counts."""
    file = tmp_path / "tokens.json"
    made, text = keyring.new("shop", ALL)
    keyring.add(file, made)
    assert Keyring(file).find(text) == made
    file.chmod(0o620)
    with pytest.raises(ConfigError, match="chmod"):
        Keyring(file).find(text)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"http__host": "0.0.0.0"}, "needs tokens"),  # noqa: S104  (it must be refused)
        ({"http__host": "::"}, "needs tokens"),
        ({"http__host": "memory.example"}, "needs tokens"),
        ({"http__tokens": "none.json"}, "every request would be refused"),
    ],
)
def test_what_it_refuses_to_start_with(
    data_dir: Path, server_url: str, cli: Cli, changes: dict[str, Any], said: str
) -> None:
    """Beyond this machine only with tokens; a file without any: one sentence, code 78."""
    if name := changes.get("http__tokens"):
        changes = {**changes, "http__tokens": str(data_dir / name)}
    done = cli("serve", **environment(make_settings(data_dir, server_url, **changes)))
    assert (done.returncode, len(done.stderr.splitlines())) == (78, 1), done.stderr
    assert said in done.stderr


def test_an_address_that_is_not_ours_ends_the_process(data_dir: Path) -> None:
    """With one sentence and code 78 as well."""
    file = data_dir / "some.json"
    keyring.add(file, keyring.new("shop", ALL)[0])
    done = memd("serve", env=environment(make_settings(data_dir, None, http__host="192.0.2.1", http__tokens=str(file))))
    assert (done.returncode, len(done.stderr.splitlines())) == (78, 1), done.stderr
    assert "cannot listen" in done.stderr


def test_users_are_only_those_of_the_token(running: Site) -> None:
    """By list, by prefix, or all; a cursor that names another user shows nothing of them either."""
    install(running)
    for user_id in ("pia", "uli", "look:1", "look:2"):
        running.ask("POST", "/v1/facts", {"user_id": user_id, "content": "Lives in Porto."})
    for users, expected in (
        (Users(listed=frozenset({"pia", "nobody"})), {"pia"}),
        (Users(prefix="look:"), {"look:1", "look:2"}),
    ):
        token = running.give("shop", users, ("admin", "read"))
        for path in ("/v1/users", "/v1/users?by=changed", "/v1/users?limit=2"):
            page = running.ask("GET", path, token=token).json
            assert {row["user_id"] for row in page["users"]} == expected
        assert running.ask("GET", "/v1/users?after=0:zzz", token=token).json == {"users": [], "next": ""}
        found = running.ask("GET", "/v1/users?find=LOOK", token=token).json["users"]
        assert {row["user_id"] for row in found} == expected - {"pia"}
    everybody = running.give("shop", ALL, ("admin", "read"))
    shown = {row["user_id"] for row in running.ask("GET", "/v1/users", token=everybody).json["users"]}
    assert {"pia", "uli", "look:1", "look:2"} <= shown


def test_pending_is_only_what_the_app_pushed(site: Site) -> None:
    """Another app's key of the same user is not shown, and the thread has the name that the app gave it."""
    site.ask("POST", "/v1/push", {"user_id": "pia", "thread_id": "shop/t", "messages": MESSAGES})
    path = "/v1/pending?user_id=pia"
    answer = site.ask("GET", path)
    (key,) = answer.json["keys"]
    assert (key["thread_id"], key["turns"], key["claimed_by"]) == ("shop/t", len(MESSAGES), None)
    assert b"Porto" not in answer.body
    other = site.give("another", ALL)
    assert site.ask("GET", path, token=other).json == {"keys": [], "next": ""}
    assert site.ask("GET", "/v1/pending").status == 422


def test_without_the_setting_the_line_to_type_is_printed(data_dir: Path) -> None:
    """The refusal has the line for a shell; the help says that a running server stays open."""
    command, env = (
        [str(Path(sys.executable).parent / "memd"), "token", "add"],
        environment(make_settings(data_dir, None)),
    )
    add = [*command, "--app", "shop", "--all-users"]
    refused = subprocess.run(add, env=env, capture_output=True, text=True, check=False)
    line = re.search(r"export MEMD_HTTP__TOKENS=.*", refused.stderr)
    assert line, refused.stderr
    path = f"{Path(sys.executable).parent}:{env.get('PATH', '')}"
    script = f"{line[0]} && memd token add --app shop --all-users"
    subprocess.run(["sh", "-c", script], env=env | {"PATH": path}, capture_output=True, check=True)
    assert keyring.load(data_dir / "tokens.json")
    shown = subprocess.run([*command, "--help"], env=env, capture_output=True, text=True, check=True).stdout
    assert "started without http.tokens stays open" in " ".join(shown.split())


def test_only_who_names_a_conversation_lists_its_facts(site: Site) -> None:
    """Active and archived ones; a person's token lists everything. The thread is the app's own of that name."""
    here: dict[str, Any] = {"scope": "session", "scopeId": "shop/t1"}
    other: dict[str, Any] = {"scope": "session", "scopeId": "desk/t1"}
    gone: dict[str, Any] = {"archivedAt": "2026-05-01T00:00:00Z", "archiveReason": "expired"}
    made = {
        **document(fact("everywhere", "Likes tea"), bucket=Bucket("lil")),
        "scoped": [
            fact("here", "Is in a hurry", **here),
            fact("there", "Is at ease", **other),
            fact("apollo", "Deploys on Fridays", scope="project", scopeId="apollo", visibility="owner_only"),
        ],
        "archive": [fact("over", "Was in a hurry", **here, **gone), fact("old", "Liked milk", **gone)],
    }
    store(site.settings.data_dir, made)
    reads = site.give("shop", Users(frozenset({"lil"})), ("read",))
    person = site.give("shop", Users(frozenset({"lil"})), ("read", "person"))

    def listed(token: str, more: str = "") -> list[str]:
        answer = site.ask("GET", f"/v1/facts?user_id=lil&status=all{more}", token=token)
        return [found["id"] for found in answer.json["facts"]]

    assert listed(reads) == ["everywhere", "old"]
    assert listed(reads, "&thread_id=t1") == ["everywhere", "here", "over", "old"]
    assert listed(reads, "&thread_id=desk/t1") == ["everywhere", "old"]
    assert listed(reads, "&project_id=apollo") == ["everywhere", "apollo", "old"]
    assert listed(reads, "&scope=session") == []
    assert listed(person) == ["everywhere", "here", "there", "apollo", "over", "old"]
    assert listed(person, "&thread_id=t1") == listed(reads, "&thread_id=t1")
