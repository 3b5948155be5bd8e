"""memd serve: the verbs over HTTP, against a real server process."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support import daemon, exit_code, free_port
from support.http_support import Site, install, serving

from memd.client import Memd
from memd.http.listener import listen
from memd.inbox import verbs
from memd.inbox.connection import connect, send

pytestmark = pytest.mark.timing

PUSH = {
    "thread_id": "t",
    "messages": [
        {"role": "user", "content": "I live in Porto. 我喜欢喝绿茶。", "id": "1"},
        {"role": "assistant", "content": "Nice.", "id": "2"},
    ],
}


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server without tokens, for this machine only."""
    with serving(server_url) as site:
        yield site


@pytest.fixture
def site(running: Site) -> Site:
    install(running)
    return running


def test_the_whole_job(site: Site) -> None:
    """Push, receipt, flush, and the memory that came of it, in all the ways to read it; English and Chinese."""
    with daemon(site.settings):
        pushed = site.ask("POST", "/v1/push", {**PUSH, "user_id": "ann"})
        assert (pushed.status, pushed.json["status"], pushed.json["messages"]) == (202, "queued", 2)
        path = f"/v1/receipts/{pushed.json['id']}?user_id=ann"
        assert site.ask("GET", path).json["state"] in {"pending", "claimed", "stored"}
        flushed = site.ask("POST", "/v1/flush", {"user_id": "ann", "wait": True})
        assert flushed.json["counts"] in ({"stored": 1}, {})  # it may have ended before
        assert not flushed.json["timed_out"]
    assert site.ask("GET", path).json["state"] == "stored"
    contents = {fact["content"] for fact in site.ask("GET", "/v1/memory?user_id=ann").json["facts"]}
    assert len(contents) == 2
    assert contents == {fact["content"] for fact in site.ask("GET", "/v1/facts?user_id=ann").json["facts"]}
    text = site.ask("GET", "/v1/inject?user_id=ann").json["text"]
    assert "Porto" in text
    assert "绿茶" in text
    for query in ("Porto", "绿茶"):
        best = site.ask("POST", "/v1/search", {"user_id": "ann", "query": query, "explain": True}).json["found"][0]
        assert query in best["fact"]["content"]
        assert set(best["explain"]) == {"similarity", "confidence", "scope"}
    assert site.ask("GET", "/v1/status").json["stored"] >= 1
    again = site.ask("POST", "/v1/push", {**PUSH, "user_id": "ann"})
    assert again.status == 202


def test_a_push_names_its_project_its_source_and_its_trace(site: Site) -> None:
    """They reach the claim, the trace from the header; a version without them, or one ahead, is refused by name."""
    fields = {**PUSH, "user_id": "pia", "now": True, "project_id": "team/7", "source": {"kind": "ai", "id": "run-1"}}
    trace = f"00-{7:032x}-{7:016x}-01"
    pushed = site.ask("POST", "/v1/push", fields, headers={"traceparent": trace})
    assert (pushed.status, pushed.json["wire"]) == (202, 4)
    with connect(site.settings) as client:
        [claim] = send(client, verbs.claim(site.settings, 1, 0, "w", "m")).taken
    assert {(m.project, m.source_kind, m.source_id) for m in claim.messages} == {("team/7", "ai", "run-1")}
    assert claim.traces == (trace,)
    for wrong, code in (({"v": 2}, "E_VERSION"), ({"v": 5}, "E_VERSION"), ({"project_id": 7}, "E_PROJECT_ID_TYPE")):
        assert site.ask("POST", "/v1/push", {**fields, **wrong}).json["code"] == code


def test_inject_takes_an_etag(site: Site) -> None:
    """The same memory has the same ETag and answers 304 without a body; a changed one does not."""
    add(site, "ben", "Ben lives in Lyon.")
    first = site.ask("GET", "/v1/inject?user_id=ben")
    tag = first.headers["etag"]
    assert first.json["version"] == tag.strip('"')
    assert site.ask("GET", "/v1/inject?user_id=ben").same == first.same
    for asked in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = site.ask("GET", "/v1/inject?user_id=ben", headers={"if-none-match": asked})
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", tag)
    assert site.ask("GET", "/v1/inject?user_id=ben", headers={"if-none-match": '"other"'}).status == 200
    with Memd(site.settings) as other:  # another process's change, for all that the server knows
        other.add_fact("ben", "Ben plays chess on Sundays.")
    changed = site.ask("GET", "/v1/inject?user_id=ben", headers={"if-none-match": tag})
    assert changed.status == 200
    assert "chess" in changed.json["text"]
    memory = site.ask("GET", "/v1/memory?user_id=ben")
    assert site.ask("GET", "/v1/memory?user_id=ben", headers={"if-none-match": memory.headers["etag"]}).status == 304


def test_inject_for_a_query_and_within_a_budget(site: Site) -> None:
    """`query` puts what answers it first, in an address and in a body; `max_tokens` holds."""
    for content in ("Cai drinks green tea.", "Cai rides a bicycle.", "Cai reads novels."):
        add(site, "cai", content)
    asked = site.ask("GET", "/v1/inject?user_id=cai&query=bicycle").json
    assert asked == site.ask("POST", "/v1/inject", {"user_id": "cai", "query": "bicycle"}).json
    assert asked["text"].index("bicycle") < asked["text"].index("novels")
    small = site.ask("GET", "/v1/inject?user_id=cai&max_tokens=40").json["text"]
    assert 0 < len(small) < len(asked["text"])
    assert site.ask("GET", "/v1/inject?user_id=cai&max_tokens=1").json["text"] == ""


def test_facts_by_hand(site: Site) -> None:
    """Added, changed and removed; what is not there is 404; agents have facts of their own."""
    fact_id = add(site, "dee", "住在杭州西湖边上")
    assert site.ask("PATCH", f"/v1/facts/{fact_id}", {"user_id": "dee", "content": "住在上海徐汇区"}).status == 200
    listed = site.ask("GET", "/v1/facts?user_id=dee").json["facts"]
    assert [fact["content"] for fact in listed] == ["住在上海徐汇区"]
    assert (listed[0]["status"], listed[0]["lastUsedAt"]) == ("active", None)
    found = site.ask("POST", "/v1/search", {"user_id": "dee", "query": "上海", "scopes": ["user"]}).json["found"]
    assert [(one["fact"]["status"], one["fact"]["lastUsedAt"]) for one in found] == [("active", None)]
    assert site.ask("GET", "/v1/facts?user_id=dee").json["facts"][0]["lastUsedAt"] is not None
    old = site.ask("GET", "/v1/facts?user_id=dee&status=superseded").json["facts"]
    assert [(fact["content"], fact["status"]) for fact in old] == [("住在杭州西湖边上", "superseded")]
    for nothing in ("scope=project", "category=goal", "member=eve", "until=2026-01-01", "since=2199-01-01&by=said"):
        assert site.ask("GET", f"/v1/facts?user_id=dee&{nothing}").json["facts"] == []
    assert site.ask("GET", "/v1/facts?user_id=dee&status=gone").code == "E_STATUS"
    assert site.ask("POST", "/v1/search", {"user_id": "dee", "query": "x", "scopes": ["team"]}).code == "E_SCOPES"
    assert site.ask("GET", "/v1/facts?user_id=dee&agent_name=coder").json["facts"] == []
    gone = site.ask("DELETE", f"/v1/facts/{fact_id}?user_id=dee")
    assert (gone.status, gone.body) == (204, b"")
    assert site.ask("DELETE", f"/v1/facts/{fact_id}?user_id=dee").code == "E_NOT_FOUND"
    assert site.ask("PATCH", "/v1/facts/fact_00000000", {"user_id": "dee", "category": "goal"}).code == "E_NOT_FOUND"


def test_export_and_forget(site: Site) -> None:
    """All that is kept of a user comes out; forgotten, nothing is left; a dry run changes nothing."""
    add(site, "eve", "Eve collects stamps.")
    add(site, "eve", "Eve asked for tests.", agent_name="coder")
    exported = site.ask("GET", "/v1/export?user_id=eve").body
    assert b"stamps" in exported
    assert b"asked for tests" in exported
    assert b"asked for tests" not in site.ask("GET", "/v1/export?user_id=eve&agent_name=").body
    dry = site.ask("POST", "/v1/forget", {"user_id": "eve", "dry_run": True}).json
    assert (dry["documents"], dry["dry_run"]) == (2, True)
    assert site.ask("GET", "/v1/facts?user_id=eve").json["facts"]
    done = site.ask("POST", "/v1/forget", {"user_id": "eve"})
    assert (done.status, done.json["documents"], done.json["complete"]) == (200, 2, True)
    assert site.ask("GET", "/v1/facts?user_id=eve").json["facts"] == []


def test_unknown_users_have_an_empty_memory(site: Site) -> None:
    """Nothing known is no error, and leaves nothing behind."""
    assert site.ask("GET", "/v1/inject?user_id=nobody").json["text"] == ""
    assert site.ask("GET", "/v1/memory?user_id=nobody").json["facts"] == []
    assert site.ask("POST", "/v1/search", {"user_id": "nobody", "query": "tea"}).json == {"found": []}
    assert not (site.settings.data_dir / "users" / "nobody").exists()


def test_methods_and_paths(site: Site) -> None:
    """HEAD where there is GET; another method is 405 and says which there are; another path is 404."""
    got = site.ask("HEAD", "/v1/inject?user_id=fay")
    assert (got.status, got.body) == (200, b"")
    refused = site.ask("PUT", "/v1/facts", {})
    assert (refused.status, refused.code, refused.headers["allow"]) == (405, "E_METHOD", "GET, HEAD, POST")
    for path in ("/", "/v1", "/v1/inject/", "/v1/nothing", "/docs/", "//v1/inject?user_id=fay"):
        assert site.ask("GET", path).code == "E_NO_ROUTE"


def test_metrics_have_figures_and_no_ids(site: Site) -> None:
    """What Prometheus reads is in its format; users, threads, agents and texts are not in it."""
    site.ask("POST", "/v1/push", {**PUSH, "user_id": "secret-user", "thread_id": "secret-thread"})
    answer = site.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.body.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["memd_pushes"].samples[0].value >= 1
    routes = {sample.labels["route"] for sample in families["memd_http_requests"].samples}
    assert "/v1/push" in routes
    assert all("{" not in route or route.startswith("/v1/") for route in routes)
    assert "secret" not in text


def test_with_the_inbox_away_reading_goes_on() -> None:
    """Push, receipt and status are 503 with when to try again; reading and editing do not need the inbox."""
    with serving(f"redis://127.0.0.1:{free_port()}/0") as site:
        add(site, "gil", "Gil keeps bees.")
        assert "bees" in site.ask("GET", "/v1/inject?user_id=gil").json["text"]
        assert site.ask("GET", "/health").json == {"status": "ok", "inbox": "unavailable"}
        assert (site.ask("GET", "/ready").status, site.ask("GET", "/ready").code) == (503, "E_INBOX_UNAVAILABLE")
        for method, path, body in (
            ("POST", "/v1/push", {**PUSH, "user_id": "gil"}),
            ("GET", f"/v1/receipts/{'0' * 32}.{'0' * 8}.1?user_id=gil", None),
            ("GET", "/v1/status", None),
            ("GET", "/metrics", None),
        ):
            answer = site.ask(method, path, body)
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "E_INBOX_UNAVAILABLE", "5")
        site.process.send_signal(signal.SIGTERM)
        assert exit_code(site.process, 10) == 0


def test_no_page_of_another_origin_is_let_in(site: Site) -> None:
    """No CORS: a preflight is refused, and no answer allows an origin anything."""
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answers = [
        site.ask("OPTIONS", "/v1/push", headers=asked),
        site.ask("GET", "/v1/inject?user_id=hal", headers=asked),
        site.ask("POST", "/v1/flush", b"{}", headers={**asked, "content-type": "text/plain"}),
    ]
    assert [answer.status for answer in answers] == [405, 200, 415]
    assert not any(name.startswith("access-control") for answer in answers for name in answer.headers)


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """Connections say that they are TCP, without which asyncio leaves Nagle's algorithm on."""
    with listen("127.0.0.1", 0, "here") as listener:
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            accepted.close()
        assert accepted.proto == socket.IPPROTO_TCP


def add(site: Site, user_id: str, content: str, **more: Any) -> str:
    """Add a fact; its id."""
    answer = site.ask("POST", "/v1/facts", {"user_id": user_id, "content": content, **more})
    assert answer.status == 201, answer
    return str(answer.json["id"])
