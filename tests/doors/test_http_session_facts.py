"""Session facts over HTTP: a read that names no conversation cannot tell that there are any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.http_support import ALL, Site, install, serving
from support.recall_support import document, fact, store, turn

from memd.context import Bucket
from memd.memory.document import Document

pytestmark = pytest.mark.timing

UNTIL = "2999-01-01T00:00:00Z"
HERE: dict[str, Any] = {"scope": "session", "scopeId": "shop/t1", "validUntil": UNTIL}
GONE: dict[str, Any] = {"archivedAt": "2026-05-01T00:00:00Z", "archiveReason": "expired"}
LASTING = (fact("tea", "Likes green tea"), fact("home", "用户住在里斯本"), fact("cello", "Plays the cello"))
PASSING = (
    fact("ice", "Wants green tea with ice", **HERE),
    fact("zh", "这次对话请用法语回答用户", **HERE),
    fact("other", "Wants green tea without ice", **{**HERE, "scopeId": "shop/t2"}),
)
QUERIES = ("green tea", "ice", "用户住在哪里", "法语", "cello with ice", "without")


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """An app's token that reads facts and what was said."""
    with serving(server_url, locked=True) as site:
        yield replace(site, token=site.give("shop", ALL, ("read", "said")))


@pytest.fixture
def site(running: Site) -> Site:
    install(running)
    return running


def keep(site: Site, user: str, **more: Any) -> None:
    """The lasting facts of a user, who has said what all of them rest on."""
    made: Document = {**document(*LASTING, bucket=Bucket(user)), **more}
    store(site.settings.data_dir, made, turn("i1", "Green tea with ice, please.", thread="shop/t1"))


def read(site: Site, user: str, more: str = "") -> list[Any]:
    """What all reads of a user say, but for the user's name, what reads have noted, and the version of the file."""
    seen: list[Any] = []
    for query in QUERIES:
        body = {"user_id": user, "query": query, "explain": True, **({"thread_id": more} if more else {})}
        found = site.ask("POST", "/v1/search", body).json["found"]
        seen += [(row["fact"]["id"], row["score"], row["explain"], row["kind"]) for row in found]
        block = {name: value for name, value in body.items() if name != "explain"}
        seen.append(site.ask("POST", "/v1/inject", block).json)
    thread = f"&thread_id={more}" if more else ""
    plain = site.ask("GET", f"/v1/inject?user_id={user}{thread}")
    seen += [plain.json, plain.headers["etag"], plain.headers["content-length"]]
    for status in ("active", "all", "archived"):
        facts = site.ask("GET", f"/v1/facts?user_id={user}&status={status}{thread}").json["facts"]
        seen.append([(row["id"], row["content"]) for row in facts])
    tree = site.ask("GET", f"/v1/memory?user_id={user}{thread}").json
    seen.append({name: value for name, value in tree.items() if name not in ("userId", "lastUpdated", "revision")})
    return seen


def test_a_read_that_names_no_conversation_is_that_of_a_memory_without_sessions(site: Site) -> None:
    """Scores, blocks, versions, lengths, lists and documents are the same, whatever conversations have read."""
    archived = fact("was", "Wanted cake", **HERE, **GONE)
    keep(site, "with", scoped=list(PASSING), archive=[archived])
    keep(site, "without", archive=[])
    nobody = read(site, "without")
    assert read(site, "with") == nobody
    mine = read(site, "with", "t1")
    assert mine != nobody
    assert read(site, "with", "t3") == nobody
    assert read(site, "with") == nobody


def test_the_conversation_sees_its_own_facts_in_every_read(site: Site) -> None:
    """By block, search, list and document; those of another one are in none of them."""
    keep(site, "lil", scoped=list(PASSING))
    block = site.ask("GET", "/v1/inject?user_id=lil&thread_id=t1").json["text"]
    assert "with ice (in this conversation)" in block
    assert "法语" in block
    assert "without" not in block
    found = site.ask("POST", "/v1/search", {"user_id": "lil", "query": "tea with ice", "thread_id": "t1"}).json["found"]
    assert found[0]["fact"]["id"] == "ice"
    assert found[0]["fact"]["scopeId"] == "shop/t1"
    for path in ("/v1/facts", "/v1/memory"):
        facts = site.ask("GET", f"{path}?user_id=lil&thread_id=t2").json["facts"]
        assert [row["id"] for row in facts] == ["tea", "home", "cello", "other"]


def test_an_etag_is_of_what_its_asker_sees(site: Site) -> None:
    """It stays when other conversations change, and never answers for another asker."""
    keep(site, "ann", scoped=[PASSING[2]])
    path = "/v1/inject?user_id=ann"
    plain = site.ask("GET", path).headers["etag"]
    other = site.ask("GET", f"{path}&thread_id=t2").headers["etag"]
    assert plain != other
    assert site.ask("GET", f"{path}&thread_id=t2", headers={"if-none-match": plain}).status == 200
    keep(site, "ann", scoped=list(PASSING))
    for name, tag in (("", plain), ("&thread_id=t3", plain), ("&thread_id=t2", other)):
        assert site.ask("GET", path + name, headers={"if-none-match": tag}).status == 304
    assert site.ask("GET", f"{path}&thread_id=t1", headers={"if-none-match": plain}).status == 200
