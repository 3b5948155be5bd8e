"""The console's page of dead letters: by code, the text behind a click; retried and dropped, one, many or all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.console_visits import Visitor, console
from support.http_support import ALL, Site, install

from memd.client import Memd
from memd.http.keyring import Users
from memd.inbox import verbs
from memd.inbox.connection import connect, send
from memd.inbox.raw_door import RawDoor

DEAD = "/console/dead"


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


@pytest.fixture
def visitor(running: Site) -> Visitor:
    """Who may do everything."""
    return Visitor(running)


def die(site: Site, user_id: str, text: str, code: str, thread: str = "t") -> str:
    """A push that ends as a letter; its id."""
    with Memd(site.settings) as app, connect(site.settings) as client:
        app.push([{"role": "user", "content": text, "id": thread}], thread_id=thread, user_id=user_id, now=True)
        [claim] = send(client, verbs.claim(site.settings, 10, 0, "w", "model")).taken
        assert send(client, verbs.bury(claim.id, code, f"{code}: for a test"))
    return str(claim.id)


def test_letters_are_listed_by_code_without_their_text(site: Site, visitor: Visitor) -> None:
    """Code, reason, whose and when; how many have which code; one code or one user alone."""
    assert "No dead letters." in visitor.get(DEAD).text
    first, second = die(site, "ana", "I like <b>tea</b>", "E_TEST"), die(site, "ben", "我喜欢喝茶", "bad_reply")
    page = visitor.get(DEAD)
    for words in ("0 for a test", "ana", "ben", "E_TEST 1", "bad_reply 1"):
        assert words in page.text
    assert not any(text in page.html for text in ("<b>tea", "&lt;b&gt;tea", "喝茶"))
    assert f"{DEAD}/letter?id={first}" in page.links
    only = visitor.get(f"{DEAD}?code=bad_reply")
    assert (first in only.html, second in only.html) == (False, True)
    assert first in visitor.get(f"{DEAD}?user=ana").html
    assert "No dead letters." in visitor.get(f"{DEAD}?user=nobody").text


def test_the_text_is_behind_a_click(site: Site, visitor: Visitor) -> None:
    """The messages as text, a raw push as it came; what is not there is 404."""
    letter = die(site, "ana", "I like <b>tea</b>\u202e", "E_TEST")
    page = visitor.get(f"{DEAD}/letter?id={letter}")
    assert "I like &lt;b&gt;tea&lt;/b&gt;" in page.html
    with connect(site.settings) as client:
        client.rpush("memd:in", b'{"thread_id": \xff<script>')
        RawDoor(site.settings, client).take_in(10)
    with Memd(site.settings) as app:
        [raw] = [found for found in app.dead() if found.origin]
    assert "raw push in memd:in" in visitor.get(DEAD).text
    assert r"\xff&lt;script&gt;" in visitor.get(f"{DEAD}/letter?id={raw.id}").html
    visitor.get(f"{DEAD}/letter?id=none", 404)


def test_chosen_letters_are_retried_and_dropped(site: Site, visitor: Visitor) -> None:
    """By checkboxes: those that were chosen, and no other; without a choice nothing happens."""
    letters = [die(site, "ana", f"text {number}", "E_TEST", f"t{number}") for number in range(4)]
    form = visitor.get(DEAD).forms(f"{DEAD}/retry")[0]
    assert "1 letter is pending again" in visitor.post(f"{DEAD}/retry", {**form, "letter": letters[0]}).text
    after = visitor.post(f"{DEAD}/drop", {**form, "letter": letters[1:3]})
    assert "2 letters are deleted" in after.text
    visitor.post(f"{DEAD}/drop", form, 422)
    with Memd(site.settings) as app:
        assert [letter.id for letter in app.dead()] == letters[3:]
        assert [key.thread_id for key in app.pending(user_id="ana").keys] == ["t0"]


def test_all_letters_of_a_code_at_once(site: Site, visitor: Visitor) -> None:
    """Those of the code on all pages; what would be refused again stays dead, and the page says so."""
    for number in range(60):
        die(site, "ana", f"text {number}", "E_MANY", f"t{number}")
    other = die(site, "ana", "another", "bad_reply")
    first = visitor.get(f"{DEAD}?code=E_MANY")
    [following] = [link for link in first.links if "after=" in link]
    assert visitor.get(following).html.count('name="letter"') == 10
    form = first.forms(f"{DEAD}/drop")[-1]
    assert "60 letters are deleted" in visitor.post(f"{DEAD}/drop", form).text
    with connect(site.settings) as client:
        client.rpush("memd:in", b"no json")
        RawDoor(site.settings, client).take_in(10)
    page = visitor.post(f"{DEAD}/retry", {"every": "1"})
    assert "1 letter is pending again" in page.text
    assert "1 letter stays dead" in page.text
    with Memd(site.settings) as app:
        assert [(letter.code, letter.id == other) for letter in app.dead()] == [("E_JSON", False)]


def test_rights(site: Site) -> None:
    """Text needs said, changes need admin, and of others' letters a token sees and moves none."""
    letters = {name: die(site, name, f"I am {name}", f"E_{name.upper()}") for name in ("ana", "ben")}
    looking = Visitor(site, site.give("desk", ALL, ("read", "console")))
    assert 'name="letter"' not in looking.get(DEAD).html
    looking.get(f"{DEAD}/letter?id={letters['ana']}", 403)
    for verb in ("retry", "drop"):
        looking.post(f"{DEAD}/{verb}", {"letter": letters["ana"]}, 403)
    of_ana = Visitor(site, site.give("desk", Users(frozenset({"ana"})), ("read", "console", "said", "admin")))
    with connect(site.settings) as client:
        client.rpush("memd:in", b"no json")
        RawDoor(site.settings, client).take_in(10)
    page = of_ana.get(DEAD)
    assert ("E_ANA" in page.text, "E_BEN" in page.text, "E_JSON" in page.text) == (True, False, False)
    hidden = of_ana.get(f"{DEAD}/letter?id={letters['ben']}", 404)
    assert hidden.html.replace(letters["ben"], "none") == of_ana.get(f"{DEAD}/letter?id=none", 404).html
    of_ana.get(f"{DEAD}?user=ben", 404)
    assert "0 letters are deleted" in of_ana.post(f"{DEAD}/drop", {"letter": letters["ben"]}).text
    assert "1 letter is deleted" in of_ana.post(f"{DEAD}/drop", {"every": "1"}).text
    with Memd(site.settings) as app:
        assert {letter.code for letter in app.dead()} == {"E_BEN", "E_JSON"}
