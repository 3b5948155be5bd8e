"""The console's page of an audit: each finding with its fact and the change that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.console_visits import Visitor, console
from support.http_support import ALL, Site, install
from support.recall_support import document, fact, store, turn, write

from memd.client import Memd
from memd.context import Bucket
from memd.http.console.audit import DETAILS, RULE_WORDS
from memd.http.keyring import Users
from memd.ops.audit import RULES

AUDIT, MEND = "/console/audit", "/console/audit/mend"
KEY = "sk-ant-api03-" + "A1b2C3d4" * 6
CARD = "4111 1111 1111 1111"


def proven(fact_id: str, content: str, **fields: Any) -> dict[str, Any]:
    """A fact with a quote of its own: where a removed fact's quote stands, a text goes with it."""
    evidence = [{"thread": "t", "message": fact_id, "quote": f"I say {fact_id}"}]
    return fact(fact_id, content, **{"evidence": evidence, "createdAt": "2026-11-01T00:00:00Z", **fields})


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with the console."""
    with console(server_url) as site:
        yield site


@pytest.fixture
def site(running: Site) -> Site:
    install(running)
    return running


def plant(site: Site, user: str, *facts: dict[str, Any], **fields: Any) -> str:
    """A memory with these facts and fields; the address of its audit."""
    write(site.settings.data_dir, {**document(*facts, bucket=Bucket(user)), **fields})
    return f"{AUDIT}?user={user}"


def test_findings_have_their_fact_and_their_reason(site: Site) -> None:
    """By rule, with links to the fact and to the other one; secrets are not shown, hostile text is text."""
    page_of = plant(
        site, "ana",
        proven("fact_00000001", "Lives in Porto"),
        proven("fact_00000002", "lives in porto."),
        proven("fact_00000003", f"The key is {KEY}"),
        fact("fact_00000004", "Plays <b>the cello</b>"),
        proven("fact_00000005", "Wants a boat", category="goal", createdAt="2025-01-01T00:00:00Z"),
    )  # fmt: skip
    visitor = Visitor(site)
    page = visitor.get(page_of)
    assert KEY not in page.html
    assert "<b>the cello" not in page.html
    for words in (
        "all 4", "The key is [redacted:key]", "Not confirmed since 2025-01-01", "No quote",
        "The same words as fact_00000001, spelled differently", "Removing one of two facts",
    ):  # fmt: skip
        assert words in page.text
    for fact_id in ("fact_00000001", "fact_00000003"):
        visitor.get(next(link for link in page.links if link.startswith("/console/fact?") and fact_id in link))
    only = visitor.get(f"{page_of}&rule=secret").text
    assert ("[redacted:key]" in only, "Wants a boat" in only) == (True, False)
    assert "没有原话" in visitor.get(page_of, language="zh").text
    assert "Nothing found." in visitor.get(plant(site, "bea", proven("fact_00000001", "Likes tea"))).text


def test_findings_are_mended(site: Site) -> None:
    """Removed for good, confirmed by hand, taken back, dropped: the finding is gone, and the document says so."""
    page_of = plant(
        site, "cai",
        proven("fact_00000001", f"The key is {KEY}"),
        fact("fact_00000002", "Plays the cello"),
        suspended=[{**proven("fact_00000003", "Likes olives"), "suspendedWhy": "forget_wish"}],
        doubtful=[{**proven("fact_00000004", f"Pays with {CARD}"), "doubtfulWhy": "authority",
                   "doubtfulAt": "2026-11-22T00:00:00Z"}],
    )  # fmt: skip
    visitor = Visitor(site)
    forms = {(form["how"], form["id"]): form for form in visitor.get(page_of).forms(MEND)}
    for how, number, words in (
        ("remove", 1, "The fact is removed"),
        ("confirm", 2, "The fact is confirmed"),
        ("restore", 3, "The fact is back"),
        ("drop", 4, "The fact is dropped"),
    ):
        assert words in visitor.post(MEND, forms[how, f"fact_0000000{number}"]).text
    assert "Nothing found." in visitor.get(page_of).text
    with Memd(site.settings) as app:
        kept = {row["content"]: row["source"] for row in app.facts("cai") if "source" in row}
        assert [row["content"] for row in app.facts("cai")] == ["Plays the cello", "Likes olives"]
        assert kept == {"Plays the cello": "manual"}
        assert app.doubtful("cai") == []
    visitor.post(MEND, {"user": "cai", "id": "fact_00000001", "how": "confirm"}, 404)
    visitor.post(MEND, {"user": "cai", "id": "fact_00000002", "how": "burn"}, 422)


@pytest.mark.parametrize("part", ["archive", "refused"])
def test_a_secret_apart_from_the_facts_can_be_removed(site: Site, part: str) -> None:
    """What no prompt has is still on the disk."""
    apart = {**proven("fact_00000009", f"The key is {KEY}"), "archivedAt": "2026-11-02T00:00:00Z"}
    page_of = plant(site, f"dee-{part}", **{part: [apart]})
    visitor = Visitor(site)
    [form] = visitor.get(page_of).forms(MEND)
    looking = Visitor(site, site.give("desk", ALL, ("read", "console"))).get(page_of).text
    assert ("Text only for tokens" in looking) == (part == "refused")
    assert "Nothing found." in visitor.post(MEND, form).text


def test_rights(site: Site) -> None:
    """Changes need person, what was said needs said; others' memories are not there."""
    key = turn("1", f"My key is {KEY}", thread="t")
    store(site.settings.data_dir, document(fact("fact_00000001", "Plays the cello"), bucket=Bucket("eve")), key)
    looking = Visitor(site, site.give("desk", ALL, ("read", "console")))
    page = looking.get(f"{AUDIT}?user=eve")
    assert page.forms(MEND) == []
    assert "Look through what was said" not in page.text
    looking.get(f"{AUDIT}?user=eve&said=1", 403)
    page = Visitor(site).get(f"{AUDIT}?user=eve")
    assert "My key is" not in page.text
    [also] = [link for link in page.links if "said=1" in link]
    assert "My key is [redacted:key]" in Visitor(site).get(also).text
    looking.post(MEND, {"user": "eve", "id": "fact_00000001", "how": "remove"}, 403)
    of_ana = Visitor(site, site.give("desk", Users(frozenset({"ana"})), ("read", "console", "person")))
    of_ana.get(f"{AUDIT}?user=eve", 404)
    of_ana.post(MEND, {"user": "eve", "id": "fact_00000001", "how": "remove"}, 404)


def test_every_detail_of_a_rule_has_its_words() -> None:
    """The words of the page stand for details that the rules still give."""
    assert set(RULE_WORDS) == set(RULES)
    assert len(set(DETAILS.values())) == len(DETAILS)
