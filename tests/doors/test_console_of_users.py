"""The console's pages of one user: the timeline and the memory as of a day, projects with their rights, sessions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

import pytest
from support.console_visits import Visitor, console
from support.http_support import Site, install

from memd.client import Memd
from memd.context import Bucket
from memd.http import keyring
from memd.http.console.page import address
from memd.http.keyring import SCOPES, Users
from memd.http.projects import REFUSAL_S
from memd.memory import scoped
from memd.memory.document import Document, Fact, empty_document, facts_of, with_summary
from memd.memory.facts import archived
from memd.memory.new_facts import base_fact
from memd.memory.store.json_store import open_store
from memd.push.times import iso
from memd.recall.past import as_of

TIMELINE, PROJECT, SESSION = "/console/timeline", "/console/project", "/console/session"
PRIVATE = "fact_0000aaaa"


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with tokens and the console."""
    with console(server_url) as site:
        yield site


@pytest.fixture(scope="module")
def tokens(running: Site) -> dict[str, str]:
    """By user: a token that names that user alone and may do everything; one of another app, one that only looks."""
    file = running.settings.http.tokens
    assert file
    found = {}
    for name, app, user, scopes in (
        *((user, "shop", user, SCOPES) for user in ("ana", "ben", "vic", "zoe")),
        ("other", "rival", "ana", SCOPES),
    ):
        made, found[name] = keyring.new(app, Users(frozenset({user})), scopes)
        keyring.add(file, made)
    # The server knows the last one when it has read the file again, and with it all others.
    return {**found, "looks": running.give("shop", Users(frozenset({"ana"})), ("console",))}


@pytest.fixture
def site(running: Site) -> Site:
    """The server, whose inbox another test may have emptied."""
    install(running)
    return running


@pytest.fixture
def memd(site: Site) -> Iterator[Memd]:
    """A client of the same memory."""
    with Memd(site.settings) as client:
        yield client


def at(month: int, day: int, hour: int = 9) -> str:
    """A time of 2026."""
    return iso(datetime(2026, month, day, hour, tzinfo=UTC))


def fact(number: int, content: str, time: str, category: str = "context") -> Fact:
    """A fact of a conversation."""
    return base_fact(f"fact_{number:08x}", content, category, 0.9, time, "t")


def write(site: Site, user_id: str, **fields: object) -> Document:
    """Put a document with these fields into the store, as a worker would have written it."""
    store, bucket = open_store(site.settings), Bucket(user_id)
    loaded = store.load(bucket)
    document = {**empty_document(bucket), **fields, "revision": loaded.revision + 1}
    store.commit(bucket, loaded, document, lambda: True)
    return document


def lived(site: Site, user_id: str) -> Document:
    """Porto until March, then Lisbon; tea, evicted in April; chess, retired in May; something removed in June."""
    facts = [
        fact(1, "Lives in Porto.", at(1, 10), "identity"),
        fact(2, "Drinks tea.", at(1, 10), "preference"),
        fact(3, "Plays chess.", at(2, 5), "behavior"),
        fact(4, "Lives in Lisbon.", at(3, 2), "identity"),
        fact(5, "Owns a bicycle.", at(3, 2)),
    ]
    gone = [
        archived(facts[0], "replaced", at(3, 2), replaced_by="fact_00000004"),
        archived(facts[1], "evicted", at(4, 1)),
        archived(facts[2], "retired", at(5, 1), note="No time for it."),
    ]
    removed = [{"hash": "0" * 32, "removedAt": at(6, 1), "threads": []}]
    document = write(site, user_id, facts=facts[3:], archive=gone, removed=removed)
    document = with_summary(document, "topOfMind", "Settles in Porto.", at(1, 11))
    return write(site, user_id, **with_summary(document, "topOfMind", "Settles in Lisbon.", at(3, 3)))


# --- timeline ---


def test_the_timeline_tells_each_change_by_day(site: Site) -> None:
    """What was learned, replaced by what, retired and why, evicted, forgotten; the table has the plot's numbers."""
    lived(site, "tina")
    visitor = Visitor(site)
    page = visitor.get(f"{TIMELINE}?user=tina")
    for words in (
        "newly learned 5 replaced 1 retired 1 evicted 1 forgotten 1",
        "replaced Lives in Porto. → Lives in Lisbon.",
        "retired Plays chess. 09:00 behavior retired: the user said that it no longer holds No time for it.",
        "forgotten Removed for good: its words are gone. 09:00",
    ):
        assert words in page.text
    days = [link.partition("&at=")[2] for link in page.links if "&at=" in link]
    assert {"2026-06-01", "2026-05-01", "2026-04-01", "2026-03-02", "2026-02-05", "2026-01-10"} <= set(days)
    only = visitor.get(f"{TIMELINE}?user=tina&kind=evicted").text
    assert ("evicted Drinks tea." in only, "Lives in Porto." in only) == (True, False)
    assert visitor.get(f"{TIMELINE}?user=tina&kind=x", 422)
    empty = visitor.get(f"{TIMELINE}?user=nobody-yet").text
    assert "Nothing was learned yet." in empty


@pytest.mark.parametrize("day", ["2026-01-09", "2026-01-10", "2026-03-01", "2026-03-02", "2026-04-30", "2026-06-02"])
def test_a_day_shows_what_was_believed_at_its_end(site: Site, memd: Memd, day: str) -> None:
    """The facts and the summary of `memd show --at` for the first moment of the day after."""
    document = lived(site, "tina")
    moment = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)
    past = as_of(document, moment, site.settings.apply.archive_cap)
    believed = {one["content"] for one in facts_of(past.document)}
    page = Visitor(site).get(f"{TIMELINE}?user=tina&at={day}")
    shown = page.html.partition('id="result"')[2]
    told = set(page_facts(shown))
    if day < "2026-01-10":  # before the first change: the first day there is
        assert "At the end of 2026-01-10" in page.text
        return
    assert f"At the end of {day}" in page.text
    assert told == believed
    assert ("Settles in Porto." in shown, "Settles in Lisbon." in shown) == (
        "2026-01-10" < day < "2026-03-03",
        day >= "2026-03-03",
    )
    assert ("removed since" in page.text) == (day < "2026-06-01")
    if day == "2026-03-01":
        assert "Lives in Porto. replaced 2026-03-02 → Lives in Lisbon." in page.text


def page_facts(html: str) -> list[str]:
    """The facts of a past memory, as the page lists them."""
    return [part.partition("</bdi>")[0].rpartition("<bdi>")[2] for part in html.split("<li>")[1:]]


def test_the_slider_counts_days_from_the_first_change(site: Site) -> None:
    """By its place as by its date; beyond its ends it stays in them, and no address breaks the page."""
    lived(site, "tina")
    visitor = Visitor(site)
    by_place = visitor.get(f"{TIMELINE}?user=tina&day=51").text
    assert "At the end of 2026-03-02" in by_place
    assert by_place == visitor.get(f"{TIMELINE}?user=tina&at=2026-03-02").text
    span = (datetime.now(UTC).date() - date(2026, 1, 10)).days
    assert f'max="{span}"' in visitor.get(f"{TIMELINE}?user=tina").html
    for odd in ("day=99999", "day=-1", "at=9999-12-31", "at=0001-01-01", "at=soon", "before=x", "after=9999999&at=x"):
        visitor.get(f"{TIMELINE}?user=tina&{odd}")


def test_an_archived_fact_comes_back_by_hand(site: Site, memd: Memd) -> None:
    """What took its place says it again; what nothing replaced is added anew: both as a person's word."""
    lived(site, "tina")
    visitor = Visitor(site)
    forms = visitor.get(f"{TIMELINE}?user=tina").forms(f"{TIMELINE}/restore")
    assert [form["id"] for form in forms] == ["fact_00000003", "fact_00000002", "fact_00000001"]
    for form in forms[1:]:
        page = visitor.post(f"{TIMELINE}/restore", form)
        assert "The fact is back, as a person's word" in page.text
    rows = {one["content"]: (one["id"], one["source"], one["category"]) for one in memd.facts("tina")}
    assert rows.keys() == {"Lives in Porto.", "Owns a bicycle.", "Drinks tea."}
    assert rows["Lives in Porto."] == ("fact_00000004", "manual", "identity")
    assert rows["Drinks tea."][1:] == ("manual", "preference")
    assert "Lives in Lisbon." in {one["content"] for one in memd.archived("tina")}
    visitor.post(f"{TIMELINE}/restore", {**forms[0], "archived": at(5, 2)}, 422)
    assert "Plays chess." not in {one["content"] for one in memd.facts("tina")}


def test_a_merged_fact_is_added_beside_the_merge(site: Site, memd: Memd) -> None:
    """The merge goes on saying what its other sources said."""
    old, merge = fact(1, "Plays the cello.", at(1, 1)), fact(2, "Plays cello and chess.", at(2, 1))
    gone = [archived(old, "merged", at(2, 1), replaced_by="fact_00000002")]
    write(site, "mona", facts=[merge], archive=gone)
    visitor = Visitor(site)
    [form] = visitor.get(f"{TIMELINE}?user=mona").forms(f"{TIMELINE}/restore")
    visitor.post(f"{TIMELINE}/restore", form)
    assert {one["content"] for one in memd.facts("mona")} == {"Plays cello and chess.", "Plays the cello."}


def test_what_was_replaced_twice_comes_back_in_one_place(site: Site, memd: Memd) -> None:
    """Porto, Lisbon, Faro, reworded by hand: Porto takes the place of what is believed today."""
    porto, lisbon, faro = (
        fact(n, f"Lives in {city}.", at(n, 1)) for n, city in enumerate(("Porto", "Lisbon", "Faro"), 1)
    )
    gone = [
        archived(porto, "replaced", at(2, 1), replaced_by="fact_00000002"),
        archived(lisbon, "replaced", at(3, 1), replaced_by="fact_00000003"),
    ]
    write(site, "rui", facts=[faro], archive=gone)
    memd.edit_fact("rui", "fact_00000003", content="Lives in Faro's old town.")
    visitor = Visitor(site)
    page = visitor.get(f"{TIMELINE}?user=rui")
    assert "replaced Lives in Faro. → Lives in Faro's old town." in page.text
    [form] = [one for one in page.forms(f"{TIMELINE}/restore") if one["id"] == "fact_00000001"]
    visitor.post(f"{TIMELINE}/restore", form)
    assert [(one["id"], one["content"]) for one in memd.facts("rui")] == [("fact_00000003", "Lives in Porto.")]


def test_what_a_person_broke_or_an_attacker_wrote_is_text(site: Site) -> None:
    """Times before any calendar, markup, marks that turn the line round, ids that are none: the page stands."""
    nasty = "<script>alert(1)</script>![x](https://evil.example/x.png)\u202e" + "x" * 100_000
    facts = [{**fact(1, nasty, "0001-01-01T00:00:00Z"), "category": "<b>"}, fact(2, "Later.", "9999-12-31T23:00:00Z")]
    gone = [{"content": nasty, "archivedAt": at(1, 1), "archiveReason": "<i>", "createdAt": 7}]
    write(site, "eve", facts=facts, archive=gone)
    visitor = Visitor(site)
    for query in ("", "&at=2026-01-01", "&day=0"):
        page = visitor.get(f"{TIMELINE}?user=eve{query}")
        assert "<script>alert" not in page.html
        assert "<b>" not in page.html
        assert "\u202e" not in page.html
        assert len(page.html) < 60_000


def test_a_long_timeline_comes_in_pages(site: Site) -> None:
    """A full archive: pages of days, and the way to what was earlier; the plot has no more bars than it can show."""
    gone = [
        archived(fact(n, f"Fact number {n}.", at(1, 1)), "evicted", iso(datetime(2026, 1, 1 + n % 28, 9, tzinfo=UTC)))
        for n in range(1, 2_001)
    ]
    write(site, "lena", archive=gone)
    visitor = Visitor(site)
    page = visitor.get(f"{TIMELINE}?user=lena")
    assert len(page.html) < 400_000
    assert page.html.count("<rect") < 500
    before = next(link for link in page.links if "before=" in link)
    assert visitor.get(before).html != page.html


def test_who_only_looks_changes_nothing(site: Site, tokens: dict[str, str], memd: Memd) -> None:
    """Without the scope person there is no button, and the form is refused; users it does not name are not there."""
    lived(site, "ana")
    visitor = Visitor(site, tokens["looks"])
    page = visitor.get(f"{TIMELINE}?user=ana")
    assert page.forms(f"{TIMELINE}/restore") == []
    visitor.post(f"{TIMELINE}/restore", {"user": "ana", "id": "fact_00000002", "archived": at(4, 1)}, 403)
    assert "Drinks tea." not in {one["content"] for one in memd.facts("ana")}
    lived(site, "tina")
    assert visitor.get(f"{TIMELINE}?user=tina", 404).text == visitor.get(f"{TIMELINE}?user=none-such", 404).text


def test_the_pages_are_chinese_for_who_reads_chinese(site: Site, memd: Memd) -> None:
    """As the browser asks."""
    lived(site, "tina")
    memd.session("t", user_id="tina").save()
    visitor = Visitor(site)
    for path, words in (
        (f"{TIMELINE}?user=tina&at=2026-03-02", "2026-03-02 结束时"),
        ("/console/projects?user=tina", "该用户不是任何项目的成员。"),
        (f"{SESSION}?user=tina&thread=t", "窗口是空的。"),
    ):
        page = visitor.get(path, language="zh-CN")
        assert words in page.text, page.text


# --- projects ---


@pytest.fixture
def apollo(site: Site, memd: Memd, request: pytest.FixtureRequest) -> dict[str, str]:
    """A project of app shop: owner ana, editor ben, viewer vic; ana's Kafka and ben's Rabbit dispute; ana knows one
    thing alone. Returns its name, which is new in each test, and the ids of its facts by their last word."""
    name = f"p{abs(hash(request.node.name)) % 10**8}"
    project = memd.project(name)
    project.make("ana", app="shop")
    project.set_member("ben", "editor")
    project.set_member("vic", "viewer")
    ids = {"name": name}
    for user, word, category in (
        ("ana", "Kafka", "context"),
        ("ben", "Rabbit", "context"),
        ("ben", "Friday", "decision"),
    ):
        content = f"The project of {user} runs on {word}."
        ids[word] = memd.project(name, as_user=user).add_fact(content, category=category)
    store = open_store(site.settings)
    loaded = store.load(project.bucket)
    facts = [
        {**one, "disputes": [ids["Kafka"]]} if one["id"] == ids["Rabbit"] else dict(one)
        for one in facts_of(loaded.document)
    ]
    document = {**loaded.document, "facts": facts, "revision": loaded.revision + 1}
    store.commit(project.bucket, loaded, document, lambda: True)
    own = Bucket("ana")
    loaded = store.load(own)
    private = scoped.placed(fact(0xAAAA, "The project is called Nightjar.", at(1, 1)), scoped.project(name))
    document = {**empty_document(own), **loaded.document, "revision": loaded.revision + 1}
    store.commit(own, loaded, scoped.with_facts(document, [private]), lambda: True)
    return ids


def on(name: str, user: str = "ana") -> dict[str, str]:
    """The fields that name a project as a user."""
    return {"user": user, "project": name}


def page_of(name: str, user: str = "ana") -> str:
    """The address of a project's page."""
    return f"{PROJECT}?user={user}&project={name}"


ACTIONS = ("role", "remove-member", "publish", "hide", "decide")


def test_each_member_sees_the_project_with_their_rights(
    site: Site, tokens: dict[str, str], apollo: dict[str, str]
) -> None:
    """Members, facts, disputes, decisions for all; buttons for what the role allows; ana's private fact for ana."""
    name = apollo["name"]
    seen = {user: Visitor(site, tokens[user]).get(page_of(name, user)) for user in ("ana", "ben", "vic")}
    for page in seen.values():
        for words in ("runs on Kafka.", "runs on Rabbit.", "runs on Friday.", "3 members", "disputed"):
            assert words in page.text
    assert ["Nightjar" in page.text for page in seen.values()] == [True, False, False]
    buttons = {
        user: {action: len(page.forms(f"{PROJECT}/{action}")) for action in ACTIONS} for user, page in seen.items()
    }
    assert buttons["ana"] == {"role": 4, "remove-member": 3, "publish": 1, "hide": 2, "decide": 2}
    assert buttons["ben"] == {"role": 0, "remove-member": 1, "publish": 0, "hide": 3, "decide": 0}
    assert buttons["vic"] == {"role": 0, "remove-member": 1, "publish": 0, "hide": 0, "decide": 0}
    listed = Visitor(site, tokens["vic"]).get("/console/projects?user=vic").text
    assert f"{name} viewer shop 3 3" in listed


def test_an_owner_changes_members_and_facts(
    site: Site, tokens: dict[str, str], apollo: dict[str, str], memd: Memd
) -> None:
    """Every action by its form, and then as the library sees it."""
    name, visitor = apollo["name"], Visitor(site, tokens["ana"])
    project = memd.project(name)
    page = visitor.post(f"{PROJECT}/role", {**on(name), "member": "mia", "role": "editor"})
    assert "mia has the role editor now" in page.text
    assert project.members()["mia"].role == "editor"
    visitor.post(f"{PROJECT}/role", {**on(name), "member": "mia", "role": "admin"})
    assert project.members()["mia"].role == "admin"
    visitor.post(f"{PROJECT}/remove-member", {**on(name), "member": "mia"})
    assert "mia" not in project.members()
    visitor.post(f"{PROJECT}/publish", {**on(name), "id": PRIVATE})
    [shared] = [one["id"] for one in project.facts() if "Nightjar" in one["content"]]
    visitor.post(f"{PROJECT}/hide", {**on(name), "id": shared})
    assert not any("Nightjar" in one["content"] for one in project.facts())
    assert any("Nightjar" in one["content"] for one in memd.project(name, as_user="ana").facts())
    decided = visitor.post(f"{PROJECT}/decide", {**on(name), "id": apollo["Kafka"]})
    assert "Disputes" not in decided.text
    assert [one["content"] for one in project.archived()] == ["The project of ben runs on Rabbit."]
    assert "runs on Rabbit." in visitor.get(f"{page_of(name)}&status=superseded").text
    last = visitor.post(f"{PROJECT}/remove-member", {**on(name), "member": "ana"}, 422)
    assert "a project needs an owner" in last.text


def test_what_a_role_does_not_allow_is_refused(site: Site, tokens: dict[str, str], apollo: dict[str, str]) -> None:
    """Whatever form is sent: 403 for a member, and nothing has changed."""
    name = apollo["name"]
    for user in ("ben", "vic"):
        visitor = Visitor(site, tokens[user])
        before = visitor.get(page_of(name, user)).text
        fields = {**on(name, user), "member": user, "role": "owner", "id": apollo["Kafka"]}
        for action in ("role", "hide", "decide"):
            refused = visitor.post(f"{PROJECT}/{action}", fields, 403)
            assert "your role in this project does not allow it" in refused.text
        assert visitor.get(page_of(name, user)).text == before
    looks = Visitor(site, tokens["looks"])
    page = looks.get(page_of(name))
    assert all(page.forms(f"{PROJECT}/{action}") == [] for action in ACTIONS)
    looks.post(f"{PROJECT}/decide", {**on(name), "id": apollo["Kafka"]}, 403)


def test_who_may_not_read_cannot_tell_a_project_from_none(
    site: Site, tokens: dict[str, str], memd: Memd, apollo: dict[str, str]
) -> None:
    """Pages and forms of strangers, of who has left, of the owner by another app: the same bytes before the project
    is made as after, and never sooner; and a token that names other users cannot act as a member."""
    visitors = {"zoe": Visitor(site, tokens["zoe"]), "vic": Visitor(site, tokens["vic"])}
    visitors["ana"] = Visitor(site, tokens["other"])
    tried = {"zoe": ACTIONS, "vic": ("remove-member", "hide"), "ana": ("role", "decide")}

    def answers() -> list[tuple[int, bytes]]:
        found = []
        for user, visitor in visitors.items():
            began = time.monotonic()
            found.append(visitor.get(f"{page_of('secret-plan', user)}&status=all", 404).answer)
            assert time.monotonic() - began >= REFUSAL_S
            fields = {**on("secret-plan", user), "member": "zoe", "role": "owner", "id": fact_id}
            found += [visitor.post(f"{PROJECT}/{action}", fields, 404).answer for action in tried[user]]
            found.append(visitor.get(f"/console/projects?user={user}").answer)
        return [(answer.status, answer.body) for answer in found]

    fact_id = "fact_00000000"
    before = answers()
    project = memd.project("secret-plan")
    project.make("ana", app="shop")
    project.set_member("vic", "editor")
    fact_id = memd.project("secret-plan", as_user="vic").add_fact("The launch is in May.")
    project.remove_member("vic")
    assert answers() == before
    visitors["zoe"].get(page_of("secret-plan", "ana"), 404)


def test_what_is_public_is_seen_without_the_members(
    site: Site, tokens: dict[str, str], memd: Memd, apollo: dict[str, str]
) -> None:
    """A token of the project's app reads its public facts, and learns neither members nor decisions."""
    name = apollo["name"]
    memd.project(name).edit_fact(apollo["Friday"], visibility="public")
    page = Visitor(site, tokens["zoe"]).get(page_of(name, "zoe"))
    assert "runs on Friday." in page.text
    assert "no member: only what is public" in page.text
    for words in ("Kafka", "Decisions", "3 members", "vic"):
        assert words not in page.text


def test_what_holds_in_one_place_is_for_a_persons_eyes(
    site: Site, tokens: dict[str, str], apollo: dict[str, str]
) -> None:
    """As over HTTP: without the scope person the memory has no fact of one conversation or project, listed or by id."""
    address = f"/console/fact?user=ana&id={PRIVATE}&project={apollo['name']}"
    person, looks = Visitor(site, tokens["ana"]), Visitor(site, tokens["looks"])
    assert "Nightjar" in person.get("/console/user?user=ana").text
    assert "Nightjar" in person.get(address).text
    assert "Nightjar" not in looks.get("/console/user?user=ana").text
    looks.get(address, 404)


# --- sessions ---


@pytest.fixture
def talk(memd: Memd) -> None:
    """A session with tools that was compacted, went on, and has two turns that wait."""
    session = memd.session("trip to Porto", user_id="ana")
    session.system("Be brief.")
    session.user("I live in <b>Porto</b>. How is the weather?")
    session.assistant("I look.")
    session.tool_use("c1", "weather", {"city": "Porto"})
    session.tool_result("c1", "18 degrees")
    session.assistant("18 degrees.")
    session.business_state = "answered"
    session.checkpoint(agent_state={"step": 2})


@pytest.mark.usefixtures("talk")
def test_a_session_is_seen_with_its_window_and_transcript(site: Site, tokens: dict[str, str]) -> None:
    """In the list; turns with their tools, state, checkpoints; what a user wrote is text. Looking pushes nothing."""
    visitor = Visitor(site, tokens["ana"])
    [link] = [link for link in visitor.get("/console/sessions?user=ana").links if link.startswith(f"{SESSION}?")]
    page = visitor.get(link)
    for words in (
        "trip to Porto",
        "Turns in the window 5",
        "state answered",
        "I live in <b>Porto</b>. How is the weather?",
        'calls weather {"city":"Porto"}',
        "result of weather 18 degrees",
        "Nothing was compacted yet.",
    ):
        assert words in page.text, page.text
    assert "<b>Porto" not in page.html
    told = visitor.get(f"{link}&show=transcript").text
    assert "5 turns" in told
    assert told.index("I look.") < told.index("result of weather") < told.index("18 degrees.")
    visitor.get(f"{SESSION}?user=ana&thread=none-such", 404)
    visitor.get(f"{SESSION}?user=ben&thread=trip+to+Porto", 404)


@pytest.mark.usefixtures("talk")
def test_a_session_is_compacted_and_removed_by_its_verbs(site: Site, tokens: dict[str, str], memd: Memd) -> None:
    """A summary takes the place of the turns; a removal takes the session and leaves the list empty."""
    visitor, named = Visitor(site, tokens["ana"]), {"user": "ana", "thread": "trip to Porto"}
    page = visitor.post(f"{SESSION}/compact", named)
    assert "The window is compacted" in page.text
    assert "[Compressed]" in page.text
    assert memd.session("trip to Porto", user_id="ana").messages[1].kind == "summary"
    gone = visitor.post(f"{SESSION}/remove", named)
    assert "No session is stored." in gone.text
    assert memd.sessions("ana") == []
    visitor.post(f"{SESSION}/remove", named, 404)
    visitor.post(f"{SESSION}/compact", named, 404)
    assert memd.sessions("ana") == []


@pytest.mark.usefixtures("talk")
def test_sessions_need_the_scope_said(site: Site, tokens: dict[str, str]) -> None:
    """Neither pages nor actions, nor the tab, for a token that may not read what was said."""
    visitor = Visitor(site, tokens["looks"])
    visitor.get("/console/sessions?user=ana", 403)
    visitor.get(f"{SESSION}?user=ana&thread=trip+to+Porto", 403)
    visitor.post(f"{SESSION}/remove", {"user": "ana", "thread": "trip to Porto"}, 403)
    assert not any(link.startswith("/console/sessions") for link in visitor.get(f"{TIMELINE}?user=ana").links)


def test_hostile_words_of_members_and_turns_are_text(site: Site, memd: Memd) -> None:
    """Markup, pictures, marks that turn the line round, a hundred thousand characters: shown as text, and cut."""
    nasty = "<img src=x onerror=alert(1)>\u202e\x1b[31m![x](https://evil.example/x.png)"
    member = "eve<script>alert(1)</script>"
    project = memd.project("hostile")
    project.make(member)
    store = open_store(site.settings)
    loaded = store.load(project.bucket)
    entry = {"by": nasty, "quote": nasty + "q" * 100_000, "saidAt": "then"}
    shared = {"scope": "project", "scopeId": "hostile", "createdBy": member, "visibility": "members"}
    facts = [
        {
            **fact(n, f"{n} {nasty}" + "x" * 100_000, "never", "decision"),
            **shared,
            "evidence": [entry],
            "backstory": nasty,
        }
        for n in range(10)
    ]
    document = {**loaded.document, "facts": facts, "revision": loaded.revision + 1}
    store.commit(project.bucket, loaded, document, lambda: True)
    session = memd.session(nasty[:28], user_id=member)
    session.user(nasty + "u" * 100_000)
    session.tool_use("c", nasty, {"<b>": nasty})
    session.tool_result("c", nasty)
    session.save()
    visitor = Visitor(site)
    named = urlencode({"user": member, "project": "hostile", "thread": nasty[:28]})
    for path in ("/console/projects", PROJECT, "/console/sessions", SESSION, f"{SESSION}?show=transcript"):
        page = visitor.get(f"{path}{'&' if '?' in path else '?'}{named}")
        for words in ("<img", "<script>alert", "<b>", "\u202e", "\x1b"):
            assert words not in page.html, (path, words)
        assert len(page.html) < 700_000, path


def test_users_are_found_by_a_part_of_their_id(site: Site) -> None:
    """In any case and any language, page by page; a token finds only those that it names."""
    with Memd(site.settings) as app:
        for name in ("Müller-1", "müller-2", "王芳", "anna"):
            app.add_fact(name, "Lives in Porto.")
    visitor = Visitor(site, site.give("shop", Users(every=True), ("console",)))
    assert "Müller-1" in (page := visitor.get(address("/console/users", find="MÜLLER")).text)
    assert "müller-2" in page
    assert "王芳" not in page
    assert "王芳" in visitor.get(address("/console/users", find="芳", by="changed")).text
    assert "No user's id has this in it." in visitor.get("/console/users?find=nobody").text
    narrow = Visitor(site, site.give("shop", Users(prefix="müller"), ("console",)))
    assert "anna" not in (page := narrow.get("/console/users?find=n").text)
    assert "müller-2" not in page
    assert "müller-2" in narrow.get("/console/users?find=2").text
