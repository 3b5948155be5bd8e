"""The verbs of the CLI over HTTP: why, archive, withheld, `at`, import, audit, dead letters, cost; their rights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.http_support import ALL, Site, install, serving
from support.recall_support import document, fact, store, turn

from memd.client import Memd
from memd.context import Bucket
from memd.http import keyring
from memd.http.admin_fields import IMPORT_BYTES
from memd.http.keyring import SCOPES, Users
from memd.inbox import verbs
from memd.inbox.connection import connect, send
from memd.inbox.raw_door import RawDoor

QUOTE = {"thread": "shop/t", "message": "1", "quote": "vegan since 2019"}
OLD: dict[str, Any] = {"createdAt": "2026-01-05T00:00:00Z", "archivedAt": "2026-03-05T00:00:00Z"}


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with tokens; the site's own may do everything, as the app desk."""
    with serving(server_url, locked=True) as site:
        yield site


@pytest.fixture(scope="module")
def held(running: Site) -> dict[str, str]:
    """Tokens of the app shop for all users, and `ana`, with every scope, for her alone."""
    kinds = {"read": ("read",), "said": ("read", "said"), "person": ("read", "person"), "admin": ("admin",)}
    made = {name: keyring.new("shop", ALL, scopes) for name, scopes in kinds.items()}
    file = running.settings.http.tokens
    assert file
    for token, _ in made.values():
        keyring.add(file, token)
    ana = running.give("shop", Users(frozenset({"ana"})), SCOPES)  # a server that knows the last one knows them all
    return {**{name: text for name, (_, text) in made.items()}, "ana": ana}


@pytest.fixture
def site(running: Site) -> Site:
    """The server with an empty inbox."""
    with connect(running.settings) as client:
        client.flushall()
    install(running)
    return running


@pytest.fixture
def eva(site: Site) -> Site:
    """The server with a memory of eva: two facts, one of a conversation, three archived ones, one suspended."""
    here: dict[str, Any] = {"scope": "session", "scopeId": "shop/t1"}
    made = {
        **document(
            fact(
                "fact_a", "The user is vegan", createdAt="2026-03-05T00:00:00Z", evidence=[QUOTE], replaces=["fact_o"]
            ),
            bucket=Bucket("eva"),
        ),
        "scoped": [fact("fact_h", "Is in a hurry", **here)],
        "archive": [
            fact("fact_o", "The user eats fish", archiveReason="replaced", replacedBy="fact_a", **OLD),
            fact("fact_e", "The user has a cold", archiveReason="expired", **OLD),
            fact("fact_t", "Was late", archiveReason="expired", **OLD, **here),
        ],
        "suspended": [
            fact("fact_s", "The user plays chess", suspendedAt="2026-04-01T00:00:00Z", suspendedWhy="manual")
        ],
        "refused": [fact("fact_r", "My key is sk-ant-api03-" + "Ab3" * 31 + "AA")],
    }
    Memd(site.settings).forget("eva")
    with connect(site.settings) as client:
        client.flushall()
    install(site)
    store(
        site.settings.data_dir, made, turn("1", "I have been vegan since 2019, after a film on newts.", thread="shop/t")
    )
    return site


def ids(answer: Any) -> list[str]:
    return [row["id"] for row in answer.json["facts"]]


def test_why_tells_the_quotes_and_to_some_the_turns(eva: Site, held: dict[str, str]) -> None:
    """What it replaced, its state, archived ones too; a fact of a conversation only for who names the conversation."""
    path = "/v1/facts/fact_a?user_id=eva"
    found = eva.ask("GET", path, token=held["read"])
    account = found.json
    assert (account["content"], account["state"]) == ("The user is vegan", "active")
    assert [(old["id"], old["content"]) for old in account["replaced"]] == [("fact_o", "The user eats fish")]
    assert [entry["quote"] for entry in account["evidence"]] == ["vegan since 2019"]
    assert b"newts" not in found.body
    assert b"newts" in eva.ask("GET", path, token=held["said"]).body
    assert eva.ask("GET", "/v1/facts/fact_o?user_id=eva", token=held["read"]).json["state"] == "archived"
    for token in (held["read"], held["person"]):
        assert eva.ask("GET", "/v1/facts/fact_h?user_id=eva", token=token).status == 404
        named = eva.ask("GET", "/v1/facts/fact_h?user_id=eva&thread_id=t1", token=token)
        assert named.json["content"] == "Is in a hurry"
    unknown = eva.ask("GET", "/v1/facts/fact_zz?user_id=eva", token=held["read"])
    assert unknown.same == eva.ask("GET", "/v1/facts/fact_h?user_id=eva&thread_id=t9", token=held["read"]).same


def test_the_archive_says_why_each_fact_went(eva: Site, held: dict[str, str]) -> None:
    """By reason and category; those of a conversation for who names it, or for a person."""
    path = "/v1/archive?user_id=eva"
    answer = eva.ask("GET", path, token=held["read"])
    assert [(row["archiveReason"], row["status"]) for row in answer.json["facts"]] == [
        ("replaced", "superseded"),
        ("expired", "archived"),
    ]
    assert ids(eva.ask("GET", f"{path}&reason=expired", token=held["read"])) == ["fact_e"]
    assert ids(eva.ask("GET", f"{path}&reason=expired&thread_id=t1", token=held["read"])) == ["fact_e", "fact_t"]
    assert ids(eva.ask("GET", path, token=held["person"])) == ["fact_o", "fact_e", "fact_t"]
    assert ids(eva.ask("GET", f"{path}&category=goal", token=held["read"])) == []
    refused = eva.ask("GET", f"{path}&reason=lost", token=held["read"])
    assert (refused.status, refused.code, refused.json["field"]) == (422, "E_REASON", "reason")


def test_lists_of_facts_come_in_pages(eva: Site, held: dict[str, str]) -> None:
    """With the cursor of the next page; the last one has none; what is no cursor and what is too many is refused."""
    token = held["person"]
    for path in ("/v1/archive?user_id=eva", "/v1/facts?user_id=eva&status=all"):
        whole = eva.ask("GET", path, token=token).json
        assert (len(whole["facts"]) > 2, whole["next"]) == (True, "")
        rows, after = [], ""
        for _ in whole["facts"]:
            page = eva.ask("GET", f"{path}&limit=1&after={after}", token=token).json
            rows += page["facts"]
            after = page["next"]
        assert (rows, after) == (whole["facts"], "")
        for wrong, field in (("limit=1001", "limit"), ("after=-1", "after")):
            refused = eva.ask("GET", f"{path}&{wrong}", token=token)
            assert (refused.status, refused.json["field"]) == (422, field)


def test_a_suspended_fact_comes_back_by_a_persons_hand(eva: Site, held: dict[str, str]) -> None:
    """It is listed for people alone, and restored once."""
    assert eva.ask("GET", "/v1/withheld?user_id=eva", token=held["read"]).status == 403
    [row] = eva.ask("GET", "/v1/withheld?user_id=eva", token=held["person"]).json["withheld"]
    assert (row["fact"], row["wanted"], row["content"]) == ("fact_s", "forgotten", "The user plays chess")
    path = "/v1/withheld/fact_s/restore"
    assert eva.ask("POST", path, {"user_id": "eva"}, token=held["person"]).json == {"id": "fact_s"}
    assert "fact_s" in ids(eva.ask("GET", "/v1/facts?user_id=eva", token=held["read"]))
    assert eva.ask("POST", path, {"user_id": "eva"}, token=held["person"]).code == "E_NOT_FOUND"


def test_the_memory_as_of_a_moment(eva: Site, held: dict[str, str]) -> None:
    """What was believed then, and what may be missing; never the future; the ETag is of that document."""

    def then(at: str, more: str = "") -> list[str]:
        answer = eva.ask("GET", f"/v1/memory?user_id=eva&at={at}{more}", token=held["read"])
        assert (answer.status, answer.json["asOf"]) == (200, at)
        return ids(answer)

    assert then("2026-02-01") == ["fact_o", "fact_e"]
    assert then("2026-02-01", "&thread_id=t1") == ["fact_h", "fact_o", "fact_e", "fact_t"]
    assert then("2026-04-01T12:00:00Z") == ["fact_a"]
    assert then("1999-01-01") == []
    for at in ("9998-01-01", "9999-12-31T23:59:59-23:00", "2026-02-30", "yesterday"):
        refused = eva.ask("GET", f"/v1/memory?user_id=eva&at={at}", token=held["read"])
        assert (refused.status, refused.json["field"]) == (422, "at"), at
        assert at not in refused.json["detail"]
    now, past = (eva.ask("GET", f"/v1/memory?user_id=eva{more}", token=held["read"]) for more in ("", "&at=2026-04-02"))
    assert now.headers["etag"] != past.headers["etag"]
    same = {"if-none-match": past.headers["etag"]}
    assert eva.ask("GET", "/v1/memory?user_id=eva&at=2026-04-02", token=held["read"], headers=same).status == 304


def test_an_export_comes_in_again(eva: Site, held: dict[str, str]) -> None:
    """As a dry run, then for good, then again without a change; of another system too; what is no export is refused."""
    exported = eva.ask("GET", "/v1/export?user_id=eva", token=held["admin"]).json
    body = {"user_id": "eve", "document": exported, "dry_run": True}
    for dry_run, added, known in ((True, 2, 0), (False, 2, 0), (False, 0, 2)):
        answer = eva.ask("POST", "/v1/import", {**body, "dry_run": dry_run}, token=held["admin"])
        [memory] = answer.json["memories"]
        assert (answer.json["format"], answer.json["dry_run"]) == ("memd", dry_run)
        assert (len(memory["added"]), memory["known"]) == (added, known)
    assert ids(eva.ask("GET", "/v1/facts?user_id=eve", token=held["read"])) != []
    mem0 = {"results": [{"id": "1", "memory": "The user rows."}]}
    assert (
        eva.ask("POST", "/v1/import", {"user_id": "eve", "document": mem0}, token=held["admin"]).json["format"]
        == "mem0"
    )
    for wrong, status, code in (
        ({"document": {"a": 1}}, 422, "E_IMPORT_FORMAT"),
        ({"document": {"format": "memd", "version": 9, "memories": []}}, 422, "E_IMPORT_VERSION"),
        ({}, 422, "E_DOCUMENT_MISSING"),
        ({"document": mem0, "format": "letta"}, 422, "E_FORMAT"),
        ({"document": mem0, "agent_name": "a\n"}, 422, "E_AGENT_NAME_CTRL"),
    ):
        refused = eva.ask("POST", "/v1/import", {"user_id": "eve", **wrong}, token=held["admin"])
        assert (refused.status, refused.code) == (status, code)
    size = {"content-length": str(IMPORT_BYTES + 1)}
    refused = eva.ask("POST", "/v1/import", b"{}", token=held["admin"], headers=size)
    assert (refused.status, refused.code, refused.json["limit"]) == (413, "E_BODY_SIZE", IMPORT_BYTES)


def test_a_large_import_is_read(site: Site, held: dict[str, str]) -> None:
    """Above the limit of other bodies, which is a megabyte; of more facts than fit, the best where it says so."""
    items = [
        {"id": str(number), "memory": f"The user owns boat {number}.", "padding": "x" * 900} for number in range(1_200)
    ]
    body = {"user_id": "len", "document": items, "dry_run": True}
    full = site.ask("POST", "/v1/import", body, token=held["admin"])
    assert (full.status, full.code, full.json["limit"]) == (422, "E_IMPORT_FULL", site.settings.apply.max_facts)
    [memory] = site.ask("POST", "/v1/import", {**body, "best": True}, token=held["admin"]).json["memories"]
    assert len(memory["added"]) + sum(memory["refused"].values()) == 1_200


def test_an_audit_counts_and_pages(eva: Site, held: dict[str, str]) -> None:
    """By rule, a page at a time; what was said and what was refused only with that scope; a secret is never shown."""
    path = "/v1/audit?user_id=eva"
    report = eva.ask("GET", path, token=held["admin"]).json
    assert (report["facts"], report["next"]) == (1, "")
    assert sum(report["counts"].values()) == len(report["findings"])
    assert report["counts"]["withheld"] == 1
    assert not any(row["place"].startswith("refused") for row in report["findings"])
    whole = eva.ask("GET", path)
    assert any(row["place"].startswith("refused") for row in whole.json["findings"])
    assert b"sk-ant" not in whole.body
    pages, after = [], ""
    while True:
        page = eva.ask("GET", f"{path}&limit=1&after={after}").json
        pages += page["findings"]
        if not (after := page["next"]):
            break
    assert pages == whole.json["findings"]
    only = eva.ask("GET", f"{path}&rule=withheld").json
    assert [row["rule"] for row in only["findings"]] == ["withheld"]
    assert eva.ask("GET", f"{path}&rule=beauty").json["field"] == "rule"
    assert eva.ask("GET", "/v1/audit?user_id=nobody").json == {"facts": 0, "counts": {}, "findings": [], "next": ""}


def die(site: Site, user_id: str, text: str, code: str = "E_TEST") -> str:
    """A push that ends as a letter; its id."""
    with Memd(site.settings) as app, connect(site.settings) as client:
        app.push([{"role": "user", "content": text, "id": "1"}], thread_id="shop/t", user_id=user_id, now=True)
        [claim] = send(client, verbs.claim(site.settings, 10, 0, "w", "model")).taken
        assert send(client, verbs.bury(claim.id, code, f"{code}: for a test"))
    with Memd(site.settings) as app:
        return next(letter.id for letter in app.dead() if letter.user_id == user_id)


def letters(answer: Any) -> list[str]:
    return [row["id"] for row in answer.json["letters"]]


def test_dead_letters_are_listed_and_their_text_needs_a_scope(site: Site, held: dict[str, str]) -> None:
    """Newest first, by code and user, a page at a time; hashes of the inbox are left out."""
    first, second = die(site, "ana", "I like newts"), die(site, "ben", "I like tea", "bad_reply")
    page = site.ask("GET", "/v1/dead", token=held["admin"])
    assert letters(page) == [second, first]
    assert page.json["codes"] == {"E_TEST": 1, "bad_reply": 1}
    assert not {"owner", "bucket"} & set(page.json["letters"][0])
    assert b"newts" not in page.body
    assert letters(site.ask("GET", "/v1/dead?code=bad_reply", token=held["admin"])) == [second]
    assert letters(site.ask("GET", "/v1/dead?user_id=ana", token=held["admin"])) == [first]
    cut = site.ask("GET", "/v1/dead?limit=1", token=held["admin"]).json
    assert letters(site.ask("GET", f"/v1/dead?limit=1&after={cut['next']}", token=held["admin"])) == [first]
    plain, whole = (site.ask("GET", f"/v1/dead/{first}", token=token) for token in (held["admin"], None))
    assert (plain.json["code"], b"newts" in plain.body) == ("E_TEST", False)
    assert [message["content"] for message in whole.json["messages"]] == ["I like newts"]
    for wrong, field in (("limit=501", "limit"), ("after=x", "after"), ("limit=0", "limit")):
        assert site.ask("GET", f"/v1/dead?{wrong}").json["field"] == field


def test_dead_letters_of_others_are_not_there(site: Site, held: dict[str, str]) -> None:
    """A token for some users neither sees, counts, retries nor drops another's, nor a raw push."""
    mine, other = die(site, "ana", "I like newts"), die(site, "bob", "I like tea")
    with connect(site.settings) as client:
        client.rpush("memd:in", b"{")
        RawDoor(site.settings, client).take_in(10)
    with Memd(site.settings) as app:
        [raw] = [found.id for found in app.dead() if found.origin]
    page = site.ask("GET", "/v1/dead", token=held["ana"])
    assert (letters(page), page.json["total"], page.json["looked_at"]) == ([mine], 1, 1)
    assert page.json["codes"] == {"E_TEST": 1}
    absent = site.ask("GET", "/v1/dead/none-0", token=held["ana"])
    assert (absent.status, absent.code) == (404, "E_NOT_FOUND")
    for hidden in (other, raw):
        assert site.ask("GET", f"/v1/dead/{hidden}", token=held["ana"]).same == absent.same
    wrong = site.ask("POST", "/v1/dead/drop", {"ids": ["5z*"]}, token=held["ana"])
    assert (wrong.status, wrong.json["field"]) == (422, "ids")
    for verb in ("retry", "drop"):
        moved = site.ask("POST", f"/v1/dead/{verb}", {"ids": [other, raw, "none-0"]}, token=held["ana"]).json
        assert set(moved.values()) == {0}
    assert site.ask("POST", "/v1/dead/drop", {"user_id": "bob"}, token=held["ana"]).same == absent.same
    assert site.ask("POST", "/v1/dead/drop", {"every": True}, token=held["ana"]).json == {"dropped": 1}
    assert set(letters(site.ask("GET", "/v1/dead"))) == {other, raw}


def test_dead_letters_live_again_or_go(site: Site, held: dict[str, str]) -> None:
    """Chosen by id or code; what would be refused again stays; nothing chosen is no choice. Again is harmless."""
    with connect(site.settings) as client:
        client.rpush("memd:in", b"{")
        RawDoor(site.settings, client).take_in(10)
    first = die(site, "ana", "I like newts")
    nothing = site.ask("POST", "/v1/dead/retry", {}, token=held["admin"])
    assert (nothing.status, nothing.code, nothing.json["field"]) == (422, "E_LETTERS", "ids")
    assert site.ask("POST", "/v1/dead/retry", {"every": True}, token=held["admin"]).json == {"retried": 1, "stay": 1}
    assert site.ask("POST", "/v1/dead/retry", {"ids": [first]}, token=held["admin"]).json == {"retried": 0, "stay": 0}
    assert [key["turns"] for key in site.ask("GET", "/v1/pending?user_id=ana", token=held["read"]).json["keys"]] == [1]
    [raw] = site.ask("GET", "/v1/dead").json["letters"]
    assert site.ask("POST", "/v1/dead/drop", {"code": raw["code"]}, token=held["admin"]).json == {"dropped": 1}
    assert site.ask("GET", "/v1/dead").json["letters"] == []


def test_cost_and_hours_are_figures(site: Site, held: dict[str, str]) -> None:
    """The same as of the library; they name nobody, so the scope is that of the figures."""
    figures = site.give("ops", Users(), ("status",))
    cost = site.ask("GET", "/v1/cost?days=2", token=figures)
    assert (cost.status, cost.json["today"], cost.json["budgets"]) == (200, [], {})
    assert site.ask("GET", "/v1/hours", token=figures).json == {"hours": []}
    too_many = site.ask("GET", "/v1/cost?days=91", token=figures)
    assert (too_many.status, too_many.json["field"], too_many.json["limit"]) == (422, "days", 90)
    assert site.ask("GET", "/v1/cost", token=held["admin"]).code == "E_SCOPE"
