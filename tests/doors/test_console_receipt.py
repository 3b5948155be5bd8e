"""The console's page of a receipt: where a push is, step by step, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from support import daemon, wait_for
from support.console_visits import Seen, Visitor, console
from support.http_support import Site, install

from memd.client import Memd
from memd.http.keyring import Users
from memd.inbox import verbs
from memd.inbox.connection import connect, send

RECEIPT = "/console/receipt"


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with the console."""
    with console(server_url) as site:
        yield site


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    """The server with an empty inbox."""
    with connect(running.settings) as client:
        client.flushall()
        install(running)
        yield running
        client.flushall()


def push(
    site: Site, text: str = "I live in Porto.", user_id: str = "ana", *, role: str = "user", now: bool = False
) -> str:
    """A push; the id of its receipt."""
    with Memd(site.settings) as app:
        message = {"role": role, "content": text, "id": text}
        return app.push([message], thread_id="t", user_id=user_id, now=now).id or ""


def steps(page: Seen) -> list[tuple[str, str]]:
    """The steps that the page shows, each with its state."""
    return re.findall(r'<li class="(done|now|later|failed)"[^>]*>\s*<strong>([^<]+)</strong>', page.html)


AHEAD = [("later", "due"), ("later", "claimed"), ("later", "the end: stored, skipped or dead")]


def test_the_way_of_a_push(site: Site) -> None:
    """Pushed, pending, due, claimed, stored: each step when it is reached, at last with the facts and their links."""
    visitor = Visitor(site)
    receipt = push(site)
    asked = f"{RECEIPT}?id={receipt}"
    page = visitor.get(asked)
    assert steps(page) == [("done", "pushed"), ("now", "pending"), *AHEAD]
    assert "data-every" in page.html
    for words in ("It waits for the conversation to fall quiet", "ana thread t, 1 turn", "due in"):
        assert words in page.text
    assert "I live in Porto" not in page.text
    push(site, now=True)
    assert steps(visitor.get(asked))[1:4] == [("done", "pending"), ("now", "due"), ("later", "claimed")]
    with connect(site.settings) as client:
        [claim] = send(client, verbs.claim(site.settings, 1, 0, "host:7:1", "model")).taken
        page = visitor.get(asked)
        assert steps(page)[2:4] == [("done", "due"), ("now", "claimed")]
        assert "worker host:7" in page.text
        send(client, verbs.release(claim.id, "paused"))
    with daemon(site.settings), Memd(site.settings) as app:
        wait_for(lambda: app.receipt(receipt).ended, "the push has ended")
    page = visitor.get(f"{asked}&user=ana")
    assert "data-every" not in page.html
    assert steps(page) == [("done", name) for name in ("pushed", "pending", "due", "claimed", "stored")]
    [fact] = [link for link in page.links if link.startswith("/console/fact?")]
    assert "Porto" in visitor.get(fact).text


def test_how_a_push_ended(site: Site) -> None:
    """Dead with its code and the way to its letter; skipped with the reason in words."""
    visitor = Visitor(site)
    with connect(site.settings) as client:
        dead = push(site, now=True)
        [claim] = send(client, verbs.claim(site.settings, 1, 0, "w", "model")).taken
        send(client, verbs.bury(claim.id, "bad_reply", "bad_reply: for a test"))
        page = visitor.get(f"{RECEIPT}?id={dead}")
        assert steps(page)[-1] == ("failed", "dead")
        [letters] = [link for link in page.links if link.startswith("/console/dead?")]
        assert claim.id in visitor.get(letters).html
        reply = push(site, "You live in Porto.", "ben", role="assistant", now=True)
    with daemon(site.settings), Memd(site.settings) as app:
        wait_for(lambda: app.receipt(reply).ended, "the push has ended")
    page = visitor.get(f"{RECEIPT}?id={reply}")
    assert steps(page)[-1] == ("done", "skipped")
    assert "No message of the user is in it" in page.text
    assert "其中没有用户的消息" in visitor.get(f"{RECEIPT}?id={reply}", language="zh").text


def test_what_is_no_receipt(site: Site) -> None:
    """An empty form, a text that is no id, an id of nothing; what was typed stays, as text."""
    visitor = Visitor(site)
    assert steps(visitor.get(RECEIPT)) == []
    page = visitor.get(f"{RECEIPT}?id=%3Cb%3E%22", 422)
    assert "This is no id of a receipt" in page.text
    assert "data-every" not in page.html
    assert "&lt;b&gt;&#34;" in page.html
    nothing = f"{'0' * 32}.{'0' * 8}.1"
    assert "No push with this receipt is known" in visitor.get(f"{RECEIPT}?id={nothing}", 404).text


def test_rights(site: Site) -> None:
    """A token for some users names the user, and sees no push of another one: the same as for one that is not there."""
    mine, other = push(site), push(site, user_id="ben")
    of_ana = Visitor(site, site.give("desk", Users(frozenset({"ana"})), ("read", "console")))
    assert "Name the user" in of_ana.get(f"{RECEIPT}?id={mine}").text
    assert steps(of_ana.get(f"{RECEIPT}?id={mine}&user=ana"))[1] == ("now", "pending")
    hidden = of_ana.get(f"{RECEIPT}?id={other}&user=ana", 404)
    nothing = f"{'0' * 32}.{'0' * 8}.1"
    assert hidden.html.replace(other, nothing) == of_ana.get(f"{RECEIPT}?id={nothing}&user=ana", 404).html
    of_ana.get(f"{RECEIPT}?id={other}&user=ben", 404)
