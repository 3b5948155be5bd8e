"""Every action of the console, by clicking, with and without scripts; then looked at in the document and by the CLI."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import pytest
import redis
from support import Cli, MakeSettings, free_port
from support.chromium import Window, window
from support.console_sets import a_fact, filled, suspend, write
from support.console_site import Console, serving_console

from memd.adapters.agent_memory import AgentMemory
from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.http import keyring
from memd.http.console.pages import ACTIONS
from memd.http.console.translations import translate
from memd.http.keyring import Users
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.memory.store.json_store import open_store
from memd.push.times import iso

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Test = TypeVar("Test", bound=Callable[..., None])
TESTED: set[str] = set()
ANA = "ana & <bea>"
"""An id that every address and form has to encode."""


def does(*paths: str) -> Callable[[Test], Test]:
    """Marks a test of these actions."""
    TESTED.update(paths)
    return lambda test: test


def test_every_action_has_a_test() -> None:
    """Of the table."""
    assert {action.path for action in ACTIONS} == TESTED


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def here(browser: Browser, console: Console, request: pytest.FixtureRequest) -> Iterator[Window]:
    """A window of somebody who came by a one-time link."""
    with window(browser, console, scripts=request.param) as found:
        found.enter()
        yield found


@pytest.fixture
def listed(cli: Cli) -> Callable[..., Any]:
    """What a command prints as JSON."""

    def run(*words: str) -> Any:
        done = cli(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def turn(text: str = "I live in Porto.") -> list[dict[str, str]]:
    return [{"role": "user", "content": text, "id": "1"}]


def memory_of(here: Window, user: str = ANA) -> None:
    """Open a user's page as people do: by the list of users."""
    here.page.get_by_role("link", name="Users", exact=True).first.click()
    here.page.get_by_role("link", name=user, exact=True).click()


def says(here: Window, words: str) -> None:
    """The page that follows says what was done."""
    here.page.get_by_role("status").filter(has_text=words).wait_for()


def contents(memd: Memd, user: str = ANA) -> list[str]:
    return [fact["content"] for fact in memd.facts(user)]


@does("/console/queue/flush")
def test_one_key_is_flushed(here: Window, memd: Memd, listed: Callable[..., Any]) -> None:
    """Its row has a button; the other keys wait on."""
    for thread in ("monday", "tuesday"):
        memd.push(turn(), thread_id=thread, user_id=ANA)
    here.open("/console/queue")
    here.page.get_by_role("row").filter(has_text="monday").get_by_role("button", name="Flush").click()
    says(here, "1")
    assert {key.thread_id: key.state for key in memd.pending().keys} == {"monday": "due", "tuesday": "waiting"}
    assert {key["thread_id"]: key["state"] for key in listed("pending")["keys"]}["monday"] == "due"


@does("/console/user/add")
def test_a_fact_is_added(here: Window, memd: Memd, listed: Callable[..., Any]) -> None:
    """With a category, as a person's own word; the page shows it."""
    memd.add_fact(ANA, "Lives in Porto.")
    memory_of(here)
    here.page.get_by_text("Add a fact by hand").click()
    here.page.get_by_label("One sentence about the user").fill("Likes <b>green</b> tea & 茶.")
    here.page.locator("#category").select_option("preference")
    here.page.get_by_role("button", name="Add", exact=True).click()
    says(here, "added")
    fact = memd.facts(ANA)[1]
    assert (fact["content"], fact["category"], fact["source"]) == (
        "Likes <b>green</b> tea & 茶.",
        "preference",
        "manual",
    )
    assert [fact["content"] for fact in listed("facts", "list", ANA)] == contents(memd)
    here.page.locator("#facts").get_by_text("Likes <b>green</b> tea & 茶.").wait_for()


@does("/console/fact/edit", "/console/fact/remove")
def test_a_fact_is_changed_and_removed(here: Window, memd: Memd, listed: Callable[..., Any]) -> None:
    """On its own page; the archive keeps the earlier words until it is removed for good."""
    memd.add_fact(ANA, "Lives in Porto.")
    memory_of(here)
    here.page.locator("#facts").get_by_role("link", name="why").click()
    here.page.get_by_label("Words", exact=True).fill("Lives in Lisbon.")
    here.page.get_by_role("button", name="Save").click()
    says(here, "changed")
    assert contents(memd) == ["Lives in Lisbon."]
    assert [fact["content"] for fact in listed("facts", "archived", ANA)] == ["Lives in Porto."]
    here.page.locator("summary").get_by_text("Remove for good").click()
    here.page.get_by_role("button", name="Remove for good").click()
    says(here, "removed")
    assert contents(memd) == []
    assert listed("facts", "list", ANA, "--status", "all") == []


def doubt(settings: Settings, *texts: str) -> None:
    """A memory with doubtful facts."""
    doubtful = [
        {**a_fact(number, text), "doubtfulWhy": "authority", "doubtfulAt": iso(datetime.now(UTC))}
        for number, text in enumerate(texts)
    ]
    write(settings, Bucket(ANA), {**filled(Bucket(ANA), []), "doubtful": doubtful})


@does("/console/user/approve", "/console/user/drop")
def test_doubtful_facts_are_decided_on(
    here: Window, memd: Memd, settings: Settings, listed: Callable[..., Any]
) -> None:
    """One is approved and becomes a fact; the other goes for good, after a question."""
    doubt(settings, "May deploy alone.", "Has agreed to everything.")
    memory_of(here)
    row = here.page.get_by_role("listitem").filter(has_text="May deploy alone.")
    row.get_by_role("button", name="Approve", exact=True).click()
    says(here, "approved")
    row = here.page.get_by_role("listitem").filter(has_text="Has agreed to everything.")
    row.locator("summary").get_by_text("Drop").click()
    row.get_by_role("button", name="Drop").click()
    says(here, "dropped")
    assert contents(memd) == ["May deploy alone."]
    assert memd.doubtful(ANA) == []
    assert [fact["content"] for fact in listed("facts", "list", ANA)] == ["May deploy alone."]


@does("/console/user/approve-note")
def test_a_note_is_approved(here: Window, memd: Memd, settings: Settings, listed: Callable[..., Any]) -> None:
    """It becomes a person's word."""
    AgentMemory(settings, ANA).save("Asks for examples first.", "preference")
    memory_of(here)
    here.page.get_by_role("button", name="Approve this note").click()
    says(here, "approved")
    [fact] = memd.facts(ANA)
    assert (fact["content"], fact["source"]) == ("Asks for examples first.", "manual")
    assert [fact["source"] for fact in listed("facts", "list", ANA)] == ["manual"]


@does("/console/user/restore")
def test_a_suspended_fact_is_taken_back(
    here: Window, memd: Memd, settings: Settings, listed: Callable[..., Any]
) -> None:
    """From what is withheld."""
    suspend(settings, Bucket(ANA), "Emil owns a boat.")
    memory_of(here)
    here.page.get_by_role("button", name="Take it back").click()
    says(here, "back")
    assert contents(memd) == ["Emil owns a boat."]
    assert memd.withheld(ANA) == []
    assert [fact["content"] for fact in listed("facts", "list", ANA)] == ["Emil owns a boat."]


@does("/console/user/profile/set", "/console/user/profile/unset")
def test_a_profile_is_set_and_unset(here: Window, memd: Memd, listed: Callable[..., Any]) -> None:
    """A list has one item a line."""
    memd.add_fact(ANA, "Lives in Porto.")
    memory_of(here)
    here.page.get_by_text("Set a field").click()
    here.page.locator("select[name=field]").select_option("expertiseAreas")
    here.page.get_by_label("Value; of a list").last.fill("Rust\nqueues")
    here.page.get_by_role("button", name="Set", exact=True).click()
    says(here, "changed")
    assert memd.profile(ANA)["expertiseAreas"]["value"] == ["Rust", "queues"]
    assert "expertiseAreas" in json.dumps(listed("profile", "show", ANA))
    here.page.get_by_role("button", name="Unset").click()
    says(here, "changed")
    assert memd.profile(ANA) == {}
    assert "expertiseAreas" not in json.dumps(listed("profile", "show", ANA))


@does("/console/user/forget")
def test_a_user_is_forgotten_by_typing_the_id(here: Window, memd: Memd, listed: Callable[..., Any]) -> None:
    """Not by typing another one; memory and pending messages are gone, those of others are not."""
    memd.add_fact(ANA, "Lives in Porto.")
    memd.add_fact("ben", "Lives in Oslo.")
    memd.push(turn(), thread_id="t", user_id=ANA)
    memory_of(here)
    forget = here.page.locator("form[action$='/user/forget']")
    here.page.locator("summary").get_by_text("Forget this user").click()
    here.refuses(422)
    forget.get_by_label("Type the user's id").fill("ana")
    forget.get_by_role("button").click()
    here.page.get_by_role("alert").first.wait_for()
    assert contents(memd) == ["Lives in Porto."]
    here.refuses()
    memory_of(here)
    here.page.locator("summary").get_by_text("Forget this user").click()
    forget.get_by_label("Type the user's id").fill(ANA)
    forget.get_by_role("button").click()
    says(here, "forgotten")
    assert [row.user_id for row in memd.users().users] == ["ben"]
    assert memd.pending().keys == ()
    assert [row["user_id"] for row in listed("users")["users"]] == ["ben"]


def bury(memd: Memd, client: redis.Redis, settings: Settings, *threads: str) -> None:
    """A dead letter of each thread."""
    for thread in threads:
        memd.push(turn(f"Words of {thread}."), thread_id=thread, user_id=ANA, now=True)
        [claim] = send(client, verbs.claim(settings, 1, 0, "host:1:a", "model")).taken
        assert send(client, verbs.bury(claim.id, f"E_{thread.upper()}", f"E_{thread.upper()}: for a test"))


def threads_of(rows: list[dict[str, Any]]) -> list[str]:
    return [row["thread_id"] for row in rows]


@does("/console/dead/retry", "/console/dead/drop")
def test_dead_letters_are_retried_and_dropped(
    here: Window, memd: Memd, client: redis.Redis, settings: Settings, listed: Callable[..., Any]
) -> None:
    """Chosen ones after a look at the text, all of one code, and all that are left after a question."""
    bury(memd, client, settings, "one", "two", "three", "four")
    here.page.get_by_role("link", name="Dead").first.click()
    here.page.get_by_role("row").filter(has_text="thread one").get_by_role("link", name="Text").click()
    here.page.get_by_text("Words of one.").wait_for()
    here.page.get_by_role("button", name="Retry it").click()
    says(here, "1")
    here.page.get_by_role("row").filter(has_text="thread two").get_by_role("checkbox").check()
    here.page.locator("summary").get_by_text("Drop the chosen").click()
    here.page.get_by_role("button", name="Drop the chosen").click()
    says(here, "1")
    assert threads_of(listed("dead", "list")) == ["three", "four"]
    here.page.get_by_role("link", name="E_THREE").click()
    here.page.locator("summary").get_by_text("Retry all of these").click()
    here.page.get_by_role("button", name="Retry all of these").click()
    says(here, "1")
    here.page.get_by_role("link", name="Dead").first.click()
    here.page.locator("summary").get_by_text("Drop all of these").click()
    here.page.get_by_role("button", name="Drop all of these").click()
    says(here, "1")
    assert memd.dead() == []
    assert sorted(key.thread_id for key in memd.pending().keys) == ["one", "three"]


@does("/console/timeline/restore")
def test_a_fact_comes_back_from_the_archive(here: Window, memd: Memd, listed: Callable[..., Any]) -> None:
    """As a person's word, by the timeline; what took its place goes to the archive."""
    edited = memd.add_fact(ANA, "Lives in Porto.")
    memd.edit_fact(ANA, edited, content="Lives in Lisbon.")
    memory_of(here)
    here.page.get_by_role("link", name="Timeline").click()
    row = here.page.get_by_role("listitem").filter(has_text="Lives in Porto. →")
    row.locator("summary").get_by_text("Restore").last.click()
    row.get_by_role("button", name="Restore").last.click()
    says(here, "")
    assert contents(memd) == ["Lives in Porto."]
    assert [fact["content"] for fact in listed("facts", "list", ANA)] == ["Lives in Porto."]


@pytest.fixture
def apollo(memd: Memd, settings: Settings) -> str:
    """A project of ana and ben, with one fact of each, which dispute each other."""
    project = memd.project("apollo & co")
    project.make(ANA)
    project.set_member("ben", "editor")
    kafka = memd.project(project.id, as_user=ANA).add_fact("Apollo runs on Kafka.")
    memd.project(project.id, as_user="ben").add_fact("Apollo runs on Rabbit.")
    document = open_store(settings).load(project.bucket).document
    facts = [{**fact, "disputes": [kafka]} if fact["id"] != kafka else fact for fact in document["facts"]]
    write(settings, project.bucket, {**document, "facts": facts})
    memd.add_fact(ANA, "Lives in Porto.")
    return project.id


def project_of(here: Window, project: str) -> None:
    """Open a project as ana sees it."""
    memory_of(here)
    here.page.get_by_role("link", name="Projects", exact=True).click()
    here.page.get_by_role("link", name=project, exact=True).click()


@does("/console/project/role", "/console/project/remove-member")
def test_members_come_and_go(here: Window, memd: Memd, apollo: str, listed: Callable[..., Any]) -> None:
    """One is added, one gets another role, one is removed after a question."""
    project_of(here, apollo)
    here.page.get_by_text("Add a member").click()
    here.page.locator("#member").fill("vic <v>")
    here.page.get_by_role("button", name="Add", exact=True).click()
    says(here, "")
    row = here.page.locator("#members").get_by_role("listitem")
    row.filter(has_text="vic <v>").get_by_role("combobox").select_option("admin")
    row.filter(has_text="vic <v>").get_by_role("button", name="Set").click()
    says(here, "")
    row.filter(has_text="ben").locator("summary").get_by_text("Remove").click()
    row.filter(has_text="ben").get_by_role("button", name="Remove").click()
    says(here, "")
    assert {name: member.role for name, member in memd.project(apollo).members().items()} == {
        ANA: "owner",
        "vic <v>": "admin",
    }
    assert "ben" not in json.dumps(listed("project", "members", apollo))


@does("/console/project/hide", "/console/project/publish", "/console/project/decide")
def test_a_project_is_told_what_holds(here: Window, memd: Memd, apollo: str, listed: Callable[..., Any]) -> None:
    """A dispute is settled for a fact, which then is hidden and published again."""
    project_of(here, apollo)
    holds = here.page.locator("summary", has_text="This one holds")
    disputed = here.page.get_by_role("listitem").filter(has=holds)
    kafka = disputed.filter(has_text=re.compile(r"^\s*Apollo runs on Kafka"))
    kafka.locator("summary", has_text="This one holds").click()
    kafka.get_by_role("button", name="This one holds").click()
    says(here, "")
    assert [fact["content"] for fact in listed("project", "facts", apollo)] == ["Apollo runs on Kafka."]
    fact = here.page.locator("#facts").get_by_role("listitem").filter(has_text="Apollo runs on Kafka.")
    for name, seen in (("Hide", 0), ("Publish", 1)):
        fact.locator("summary", has_text=name).click()
        fact.get_by_role("button", name=name).click()
        says(here, "")
        assert len(memd.project(apollo, as_user="ben").facts()) == seen


@does("/console/session/compact", "/console/session/remove")
def test_a_session_is_compacted_and_removed(here: Window, memd: Memd, listed: Callable[..., Any]) -> None:
    """A summary takes the place of all but the newest turn; then the session goes, and the memory stays."""
    memd.add_fact(ANA, "Lives in Porto.")
    session = memd.session("monday & co", user_id=ANA)
    for number in range(6):
        session.user(f"I tell you thing number {number}. " * 5)
        session.assistant("Noted.")
    session.save()
    memory_of(here)
    here.page.get_by_role("link", name="Sessions", exact=True).click()
    here.page.get_by_role("link", name="monday & co").click()
    for name in ("Compact", "Remove"):
        here.page.locator("summary").get_by_text(name).click()
        here.page.get_by_role("button", name=name).click()
        says(here, "")
        if name == "Compact":
            assert memd.session("monday & co", user_id=ANA).messages[0].kind == "summary"
    assert memd.sessions(ANA) == []
    assert "monday" not in json.dumps(listed("session", "list", ANA))
    assert contents(memd) == ["Lives in Porto."]


@does("/console/audit/mend")
def test_findings_are_mended(here: Window, memd: Memd, settings: Settings, listed: Callable[..., Any]) -> None:
    """Of two suspicious facts one is confirmed by hand, one is removed for good."""
    unproven = [
        {name: value for name, value in a_fact(number, text).items() if name != "evidence"}
        for number, text in enumerate(("Plays the cello in an orchestra.", "Owns a boat called Luna."))
    ]
    write(settings, Bucket(ANA), {**filled(Bucket(ANA), []), "facts": unproven})
    memory_of(here)
    here.page.get_by_role("link", name="Audit", exact=True).click()
    for text, name in (("cello", "Confirm by hand"), ("boat", "Remove for good")):
        row = here.page.get_by_role("listitem").filter(has_text=text).first
        row.locator("summary", has_text=name).click()
        row.get_by_role("button", name=name).click()
        says(here, "")
    assert [(fact["content"], fact["source"]) for fact in memd.facts(ANA)] == [(unproven[0]["content"], "manual")]
    assert [fact["content"] for fact in listed("facts", "list", ANA)] == [unproven[0]["content"]]


def test_a_memory_is_exported(here: Window, memd: Memd, cli: Cli) -> None:
    """As the file that `memd export` writes."""
    memd.add_fact(ANA, "Lives in Porto.")
    memory_of(here)
    with here.page.expect_download() as saved:
        here.page.get_by_role("link", name="Export").click()
    exported = json.loads(saved.value.path().read_text())
    printed = json.loads(cli("export", ANA).stdout)
    assert exported.keys() == printed.keys()
    assert "Lives in Porto." in json.dumps(exported)


def test_the_language_is_chosen_and_kept(here: Window, memd: Memd) -> None:
    """By the button at the top, on every page that follows, and back."""
    here.page.get_by_role("button", name="中文").click()
    here.page.get_by_role("heading", name=translate("zh", "Overview")).wait_for()
    here.open("/console/users")
    assert (here.page.get_attribute("html", "lang") or "").startswith("zh")
    here.page.get_by_role("button", name="English").click()
    here.page.get_by_role("heading", name="Users").wait_for()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_token_logs_in_and_out(
    browser: Browser, configured: MakeSettings, memd: Memd, data_dir: Path, scripts: bool
) -> None:
    """The page asked for before is opened after; without a login, and with a token of other scopes, no page is."""
    memd.add_fact(ANA, "Lives in Porto.")
    tokens = data_dir / "tokens.json"
    wrong, right = token(tokens, "read"), token(tokens, "console")
    settings = configured(http__console=True, http__port=free_port(), http__tokens=str(tokens))
    with serving_console(settings) as console, window(browser, console, scripts=scripts) as here:
        here.open(f"/console/user?{urlencode({'user': ANA})}")
        field, button = here.page.get_by_label("Token"), here.page.get_by_role("button", name="Log in")
        for text, status in ((f"{right}x", 401), (wrong, 403)):
            here.refuses(status)
            field.fill(text)
            button.click()
            here.page.get_by_role("alert").wait_for()
        here.refuses()
        here.open(f"/console/user?{urlencode({'user': ANA})}")
        field.fill(right)
        button.click()
        here.page.locator("#facts").get_by_text("Lives in Porto.").wait_for()
        assert here.page.get_by_role("button", name="Forget this user").count() == 0
        here.page.get_by_role("button", name="Log out").click()
        field.wait_for()
        here.open("/console/queue")
        field.wait_for()


def token(file: Path, *scopes: keyring.Scope) -> str:
    """A new token for all users."""
    made, text = keyring.new("desk", Users(every=True), scopes)
    keyring.add(file, made)
    return text


@pytest.mark.usefixtures("memd")
def test_a_link_works_once(browser: Browser, console: Console) -> None:
    """In one browser; a second one is not let in."""
    link = console.link()
    with window(browser, console) as first:
        first.open(link)
        first.page.get_by_role("heading", name="Overview").wait_for()
    with window(browser, console) as second:
        second.refuses(401)
        second.open(link)
        second.page.get_by_role("alert").wait_for()
        second.open("/console/users")
        assert "/login" in second.page.url
