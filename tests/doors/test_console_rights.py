"""Who may open what in the console: logins, links, scopes, users, forms of other sites; that a refusal tells nothing.

The pages and actions come from the tables, so that a new one is attacked too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
from support import wait_for
from support.console_guest import LOGIN, Guest, alert_of, by_link, code_of, cookie_of, link_of, logged_in, text_of
from support.console_visits import FORM, console
from support.http_support import ALL, Answer, Site, install
from support.recall_support import document, fact, store, turn

from memd.client import Memd
from memd.config import HttpSettings
from memd.context import Bucket
from memd.http import keyring
from memd.http.console import links
from memd.http.console.browser import HOME
from memd.http.console.logins import IDLE_S, LASTS_S, MOST, MOST_OF_TOKEN, Logins
from memd.http.console.page import Action, Page
from memd.http.console.pages import ACTIONS, PAGES
from memd.http.console.site import HEADERS
from memd.http.keyring import ANYBODY, SCOPES, Users
from memd.inbox import verbs
from memd.inbox.connection import connect, send

ANA = Users(frozenset({"ana"}))
OWN = ("logout", "language")
EVERYWHERE = [page.path for page in PAGES] + [action.path for action in ACTIONS] + [f"{HOME}/{name}" for name in OWN]
OF_USER: list[Page | Action] = [*(page for page in PAGES if page.of_user), *(one for one in ACTIONS if one.of_user)]
TURN = "the canoe leaks at its stern"
"""Words that were only said: no fact and no quote has them."""


def path_of(one: Page | Action) -> str:
    return one.path


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with tokens and the console."""
    with console(server_url) as site:
        yield site


@pytest.fixture(scope="module")
def held(running: Site) -> dict[str, str]:
    """Tokens by name. `not x`: every scope but x. `only`: console alone. `ana`, `prefix`: every scope, some users."""
    kinds = {
        **{f"not {scope}": (ALL, tuple(one for one in SCOPES if one != scope)) for scope in SCOPES},
        "only": (ALL, ("console",)),
        "ana": (ANA, SCOPES),
        "prefix": (Users(prefix="shop:"), SCOPES),
        "ana reads": (ANA, ("console",)),
        "ana short": (ANA, SCOPES),
    }
    file = running.settings.http.tokens
    assert file
    made = {name: keyring.new("desk", users, scopes) for name, (users, scopes) in kinds.items()}
    tree = json.loads(file.read_bytes())
    tree["tokens"] += [token.as_dict() for token, _ in made.values()]
    file.write_bytes(orjson.dumps(tree))
    last = made["ana short"][1]
    wait_for(lambda: running.ask("GET", "/v1/memory?user_id=ana", token=last).status == 200, "the tokens are known")
    return {name: text for name, (_, text) in made.items()}


@pytest.fixture
def site(running: Site) -> Site:
    install(running)
    return running


@pytest.fixture(scope="module")
def me(running: Site) -> Guest:
    """Who may do everything."""
    return logged_in(running, running.token)


@pytest.fixture(scope="module")
def of_ana(running: Site, held: dict[str, str]) -> Guest:
    """Who may do everything, of ana."""
    return logged_in(running, held["ana"])


def bare(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """An answer without what the login and the browser put into it; each answer has the console's headers."""
    kept = {name: value for name, value in HEADERS.items() if name != "cache-control"}
    assert {name: answer.headers.get(name) for name in kept} == kept, answer
    return answer.same


# --- without a login ---


@pytest.mark.parametrize("path", [*EVERYWHERE, f"{HOME}/no-such-page"])
def test_without_a_login_there_is_only_the_way_to_it(site: Site, me: Guest, path: str) -> None:
    """No cookie, an invented one, another's name, a token in its place: the same redirect, no page, nothing done."""
    name, _, secret = me.cookie.partition("=")
    cookies = ("", f"{name}=", f"{name}={'A' * 43}", f"{name}={secret}x", f"memd={secret}", f"{name}={site.token}")
    for guest in (Guest(site, cookie) for cookie in cookies):
        for answer in (guest.open(path), guest.open(path, method="HEAD"), guest.open(path, authorization=site.token)):
            assert (answer.status, answer.headers["location"]) == (303, guest_next(path))
            assert bare(answer)[2] == b""
        sent = guest.send(path, {"csrf": me.csrf, "user": "ana", "typed": "ana"})
        assert (sent.status, sent.headers["location"], sent.body) == (303, LOGIN, b"")
        assert guest.open(path, memd_live="1").status == 401


def guest_next(path: str) -> str:
    """Where somebody without a login is sent."""
    return LOGIN if path == HOME else f"{LOGIN}?next={path.replace('/', '%2F')}"


def test_a_login_ends_with_its_logout_and_with_its_token(site: Site, held: dict[str, str]) -> None:
    """The cookie opens nothing afterwards, and no cache kept a page that the back button could show."""
    guest = logged_in(site, held["only"])
    page = guest.open("/console/users")
    assert (page.status, page.headers["cache-control"]) == (200, "no-store")
    assert guest.send("/console/logout").headers["location"] == LOGIN
    assert guest.open("/console/users").status == 303
    short = logged_in(site, held["ana short"])
    file = site.settings.http.tokens
    assert file
    assert keyring.remove(file, held["ana short"].split("_")[1])
    wait_for(lambda: short.open("/console/users").status == 303, "the login is over with its token")


def test_a_new_login_is_a_new_secret_and_ends_the_one_before(site: Site, me: Guest) -> None:
    """Nobody can prepare a cookie for somebody else, and a browser leaves no login behind."""
    first = logged_in(site, site.token)
    second = Guest(site, first.cookie).send(LOGIN, {"token": site.token})
    assert cookie_of(second) not in ("", first.cookie)
    assert first.open("/console/users").status == 303
    planted = Guest(site, me.cookie.partition("=")[0] + "=planted").send(LOGIN, {"token": site.token})
    assert "planted" not in planted.headers["set-cookie"]


def test_the_cookie_is_for_these_pages_and_no_script(site: Site) -> None:
    """HttpOnly, SameSite=Strict, only below /console, of this port alone; Secure where the page came by TLS."""
    plain = Guest(site).send(LOGIN, {"token": site.token}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(plain.split("; "))
    assert (str(site.port) in plain.partition("=")[0], "Secure" in plain, "Domain" in plain) == (True, False, False)
    secure = Guest(site).send(LOGIN, {"token": site.token}, origin=f"https://127.0.0.1:{site.port}")
    assert "Secure" in secure.headers["set-cookie"].split("; ")


@pytest.mark.parametrize(
    "others",
    ["a b=c; {0}", '{0}; x={{"a": 1, "b": "2"}}', "{1}=x; {0}", "{0}; {1}=x", "=; ;;{0};", 'q="; {0}', "é=1; {0}"],
)
def test_cookies_of_other_programs_on_this_host_change_nothing(me: Guest, others: str) -> None:
    """Cookies know no ports: what another program has set must end no login, even under the same name."""
    cookie = others.format(me.cookie, me.cookie.partition("=")[0])
    assert Guest(me.site, cookie).open("/console/users").status == 200


def test_a_cookie_of_60_kb_costs_nothing(me: Guest) -> None:
    """http.cookies takes minutes for one of backslashes, and meanwhile the server answers nobody."""
    name = me.cookie.partition("=")[0]
    before = cpu_s(me.site)
    for value in ('"' + "\\" * 60_000 + '"', '"' + "\\1" * 30_000 + '"', "=" * 60_000, "a=b;" * 15_000):
        assert Guest(me.site, f"{name}={value}").open("/console/users").status == 303
    assert cpu_s(me.site) - before < 5


def cpu_s(site: Site) -> float:
    """The processor seconds that the server has used."""
    fields = Path(f"/proc/{site.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_logins_end_by_themselves_and_no_token_ends_those_of_another() -> None:
    """After an hour without a page, after eight hours, and when a token has too many, its own oldest."""
    now = [0.0]
    logins = Logins(lambda: now[0])
    first, mine = logins.begin(ANYBODY), keyring.new("app", ANA)[0]
    hundreds = [logins.begin(mine) for _ in range(MOST_OF_TOKEN + 5)]
    assert logins.find(first)
    assert [logins.find(one) is None for one in hundreds] == [True] * 5 + [False] * MOST_OF_TOKEN
    for _ in range(MOST):
        logins.begin(keyring.Token(f"{len(hundreds)}", "", "app", ANA, frozenset(), ""))
    now[0] = IDLE_S - 1
    assert logins.find(first, by_itself=True)
    now[0] = IDLE_S + 1
    assert logins.find(first) is None
    busy = logins.begin(ANYBODY)
    for hours in range(1, 9):
        now[0] = IDLE_S + 1 + hours * 3599.0
        assert logins.find(busy)
    now[0] = IDLE_S + 2 + LASTS_S
    assert logins.find(busy) is None


# --- one-time links ---


def test_a_link_lets_in_once(site: Site) -> None:
    """HEAD, which programs send to look at a link, leaves it as it is; then one browser gets in, and no second one."""
    link = link_of(site)
    assert Guest(site).open(link, method="HEAD").status == 401
    assert Guest(site).send(link, {"token": ""}).status == 401
    first = Guest(site).open(link)
    assert (first.status, bool(cookie_of(first))) == (200, True)
    again = Guest(site).open(link)
    assert (again.status, cookie_of(again)) == (401, "")
    assert bare(again)
    assert "used" in alert_of(again)
    assert by_link(site).open("/console/settings").status == 200


def test_of_many_who_ask_at_once_one_gets_in(site: Site) -> None:
    """Threads of several servers over one data folder: the file is removed once."""
    key = urlsplit(link_of(site)).query.partition("=")[2]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: links.use(site.settings.data_dir, key), range(64)))
    assert sum(found) == 1


def test_a_link_is_for_five_minutes(site: Site) -> None:
    """Neither an older one nor one from the future lets anybody in."""
    for shift in (-links.LASTS_S - 1, 3600):
        link = link_of(site)
        for file in (site.settings.data_dir / links.FOLDER).iterdir():
            os.utime(file, (file.stat().st_mtime + shift,) * 2)
        assert Guest(site).open(link).status == 401


@pytest.mark.parametrize(
    "key",
    ["", "..", "../tokens.json", "../../../../etc/passwd", "A" * 43, "A" * 42 + "/", "\0" * 43, "%2e%2e", "A" * 60_000],
)
def test_a_key_that_is_none_opens_nothing(site: Site, key: str) -> None:
    """The key is no path: the file's name is its hash. Nothing is removed."""
    folder = site.settings.data_dir / links.FOLDER
    link_of(site)
    files = sorted(folder.iterdir())
    answer = Guest(site).open(links.ENTER, {"key": key})
    assert (answer.status, cookie_of(answer)) == (401, "")
    assert sorted(folder.iterdir()) == files
    assert site.settings.http.tokens
    assert site.settings.http.tokens.exists()


def test_the_folder_of_links_has_no_keys(tmp_path: Path) -> None:
    """Only hashes, for the owner alone."""
    made = links.make(tmp_path, HttpSettings(port=1))
    [file] = (tmp_path / links.FOLDER).iterdir()
    assert urlsplit(made).query.partition("=")[2] not in file.name
    assert (file.stat().st_mode & 0o077, file.parent.stat().st_mode & 0o077) == (0, 0)


# --- scopes ---


def test_only_the_scope_console_logs_in(site: Site, held: dict[str, str]) -> None:
    """Every other scope together is not enough; unknown, damaged and empty tokens are told nothing else."""
    refused = Guest(site).send(LOGIN, {"token": held["not console"]})
    assert (refused.status, cookie_of(refused)) == (403, "")
    for text in (site.token[:-1], site.token + "x", "memd_000000000000_" + "A" * 43, "", "é", "\0", "A" * 9000):
        answer = Guest(site).send(LOGIN, {"token": text})
        assert (answer.status, cookie_of(answer), alert_of(answer)) == (401, "", "This is no valid token.")
        assert bare(answer)


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_a_page_is_for_who_has_its_scopes(running: Site, held: dict[str, str], page: Page) -> None:
    """Without one of them 403, and its name is in no menu; of all users only for a token of all."""
    fields = {"user": "ana", "thread": "t", "id": "x", "project": "apollo"}
    for scope in page.scopes:
        guest = guest_of(running, held, f"not {scope}")
        answer = guest.open(page.path, fields)
        assert (answer.status, code_of(answer), guest.open(page.path).status) == (403, "E_SCOPE", 403)
        assert f'href="{page.path}"' not in text_of(guest.open("/console/users"))
        assert f'href="{page.path}?' not in text_of(guest.open("/console/user", {"user": "ana"}))
    if page.everyone:
        for name in ("ana", "prefix"):
            guest = guest_of(running, held, name)
            answer = guest.open(page.path, fields)
            assert answer.status == (303 if page.path == HOME else 404)
            if page.path != HOME:
                assert f'href="{page.path}"' not in text_of(guest.open("/console/users"))


@pytest.mark.parametrize("action", ACTIONS, ids=path_of)
def test_an_action_is_for_who_has_its_scope(running: Site, held: dict[str, str], action: Action) -> None:
    """Every other scope together is not enough, whatever the form says. A change needs person or admin."""
    assert action.scope in ("person", "admin")
    fields = {"user": "ana", "id": "fact_00000000", "letter": "x", "typed": "ana", "thread": "t", "project": "apollo"}
    for name in (f"not {action.scope}", "only"):
        answer = guest_of(running, held, name).send(action.path, fields)
        assert (answer.status, code_of(answer)) == (403, "E_SCOPE")
    shown = guest_of(running, held, "only")
    for page in PAGES:
        if not page.scopes and page.path != HOME:
            assert f'action="{action.path}"' not in text_of(shown.open(page.path, fields))


_GUESTS: dict[tuple[int, str], Guest] = {}


def guest_of(site: Site, held: dict[str, str], name: str) -> Guest:
    """A login with this token, the same for all tests."""
    place = (site.port, name)
    if place not in _GUESTS:
        _GUESTS[place] = logged_in(site, held[name])
    return _GUESTS[place]


# --- other users ---


@pytest.mark.parametrize("one", OF_USER, ids=path_of)
def test_a_hidden_user_cannot_be_told_from_one_that_is_not_there(
    site: Site, of_ana: Guest, held: dict[str, str], one: Page | Action
) -> None:
    """A user with a memory and one without, byte for byte; also where the form and the address name different ones."""
    with Memd(site.settings) as memd:
        if not memd.facts("bob"):
            memd.add_fact("bob", "Bob keeps a secret garden.")
    [bob] = Memd(site.settings).facts("bob")
    fields = {"id": bob["id"], "thread": "t", "project": "apollo", "typed": "bob", "content": "Likes tea."}
    for guest, names in ((of_ana, ("bob", "nobody", "Ana", "an")), (guest_of(site, held, "prefix"), ("bob", "shop"))):
        answers = []
        for name in names:
            asked = {**fields, "user": name}
            found = guest.send(one.path, asked) if isinstance(one, Action) else guest.open(one.path, asked)
            status, headers, body = bare(found)
            kept = {key: value for key, value in headers.items() if key != "content-length"}
            answers.append((status, kept, body.replace(f"user={name}".encode(), b"user=")))
        assert answers[0][0] == 404
        assert all(answer == answers[0] for answer in answers)
    if isinstance(one, Action):
        for both in (
            of_ana.send(f"{one.path}?user=ana", {**fields, "user": "bob"}),
            of_ana.send(one.path, [("csrf", of_ana.csrf), ("user", "ana"), ("user", "bob"), *fields.items()]),
        ):
            assert both.status == 404
    assert [kept["id"] for kept in Memd(site.settings).facts("bob")] == [bob["id"]]


FIELDS: tuple[dict[str, str], ...] = (
    {},
    {"user": "ana"},
    {"user": "bob"},
    {"user": "ana", "q": "garden canoe", "thread": "t-bob", "project": "apollo", "id": "{fact}"},
    {"user": "ana", "id": "{letter}", "code": "E_BOB", "show": "transcript", "agent": "bob"},
    {"id": "{letter}", "code": "E_BOB", "by": "changed", "find": "b"},
    {"user": "ana", "id": "{receipt}", "after": "1"},
    {"id": "{receipt}", "after": "due:1"},
)
"""What somebody might ask for who knows of bob."""


def test_what_others_have_changes_nothing_that_a_token_sees(site: Site, held: dict[str, str]) -> None:
    """Every page before and after bob gets a memory, turns, sessions, projects, dead letters, 60 keys and an agent.

    Not a byte differs: no text, count, status, next page or header tells of them.
    """
    with connect(site.settings) as client:
        client.flushall()
    install(site)
    with Memd(site.settings) as memd:
        memd.add_fact("ana", "Lives in Porto.")
    guests = [guest_of(site, held, name) for name in ("ana", "ana reads")]
    named = {"fact": "fact_00000bob", "letter": "1" * 32, "receipt": f"{'0' * 32}.{'0' * 8}.1"}
    before = [seen(guest, named) for guest in guests]
    named = _with_bob(site)
    after = [seen(guest, named) for guest in guests]
    for guest_before, guest_after in zip(before, after, strict=True):
        for asked, answer in guest_before.items():
            assert guest_after[asked] == answer, asked
            assert b"bob's" not in answer[2]


def seen(guest: Guest, named: dict[str, str]) -> dict[tuple[str, int], tuple[int, dict[str, str], bytes]]:
    """Every page with all FIELDS. Names that differ, and what depends on the length of such a name, are left out."""
    found = {}
    for page in PAGES:
        for number, fields in enumerate(FIELDS):
            asked = {name: value.format(**named) for name, value in fields.items()}
            status, headers, body = guest.open(page.path, asked).same
            for value in named.values():
                body = re.sub(rb'"exportedAt":"[^"]*"', b"", body.replace(value.encode(), b"-"))
            kept = {name: value for name, value in headers.items() if name != "content-length"}
            found[page.path, number] = (status, kept, body)
    return found


def _with_bob(site: Site) -> dict[str, str]:
    """Bob has something of each kind; returns the names of some of it."""
    with Memd(site.settings) as memd, connect(site.settings) as client:
        memd.push([{"role": "user", "content": "bob's last words"}], thread_id="t-dead", user_id="bob", now=True)
        [claim] = send(client, verbs.claim(site.settings, 10, 0, "w", "model")).taken
        assert send(client, verbs.bury(claim.id, "E_BOB", "E_BOB: for a test"))
        receipt = memd.push([{"role": "user", "content": "bob's"}], thread_id="t-bob", user_id="bob").id
        for thread in range(60):
            memd.push([{"role": "user", "content": "bob's"}], thread_id=f"t-{thread}", user_id=f"bob-{thread}")
        made = document(fact("fact_00000bob", "This is bob's garden."), bucket=Bucket("bob"), topOfMind="bob's top")
        store(site.settings.data_dir, made, turn("1", "bob's canoe", thread="t-bob"))
        memd.add_fact("bob", "What bob's agent knows.", agent_name="bob")
        project = memd.project("apollo")
        project.make("bob")
        memd.project("apollo", as_user="bob").add_fact("This is bob's project.")
        session = memd.session("t-bob", user_id="bob")
        session.user("bob's session")
        session.save()
    return {"fact": "fact_00000bob", "letter": claim.id, "receipt": str(receipt)}


# --- what was said ---


def test_what_was_said_needs_its_scope_on_every_page(site: Site, held: dict[str, str]) -> None:
    """No turn, excerpt, session, letter, or word that only a turn has: in no page, search, block, export or file."""
    with connect(site.settings) as client:
        client.flushall()
    install(site)
    evidence = [{"thread": "t1", "message": "1", "quote": "Since 2019"}]
    made = document(fact("fact_0000000a", "The user paddles", evidence=evidence), bucket=Bucket("eva"))
    store(site.settings.data_dir, made, turn("1", f"Since 2019, and {TURN}."), turn("2", f"Now {TURN}."))
    with Memd(site.settings) as memd, connect(site.settings) as client:
        session = memd.session("t-eva", user_id="eva")
        session.user(TURN)
        session.save()
        memd.push([{"role": "user", "content": TURN}], thread_id="t-dead", user_id="eva", now=True)
        [claim] = send(client, verbs.claim(site.settings, 10, 0, "w", "model")).taken
        assert send(client, verbs.bury(claim.id, "E_TEST", "E_TEST: for a test"))
    asked = [
        {"user": "eva", "q": "canoe stern", "id": "fact_0000000a", "thread": "t-eva", "show": "transcript"},
        {"user": "eva", "q": TURN, "id": claim.id, "thread": "t"},
    ]

    def told(guest: Guest) -> set[str]:
        pages = [(page.path, guest.open(page.path, fields)) for page in PAGES for fields in asked]
        return {path for path, answer in pages if "canoe leaks" in shown_only(answer)}

    everybody = guest_of(site, held, "not status")
    assert {"/console/user", "/console/fact", "/console/export", "/console/session"} <= told(everybody)
    assert told(guest_of(site, held, "not said")) == set()
    found = guest_of(site, held, "not said").open("/console/user", {"user": "eva", "q": "stern"})
    assert "Nothing matches." in text_of(found)


def shown_only(answer: Answer) -> str:
    """A page without the fields of its own search form, which repeat the question."""
    return re.sub(r'(value|href)="[^"]*"', "", text_of(answer))


def test_facts_of_one_conversation_are_for_a_person(site: Site, me: Guest, held: dict[str, str]) -> None:
    """As over the API: who has not the scope person sees what holds everywhere."""
    made = document(fact("fact_0000000b", "The user lives in Porto"), bucket=Bucket("fay"))
    hidden = fact("fact_0000000c", "The user picked plan B", scope="session", scopeId="t")
    store(site.settings.data_dir, {**made, "scoped": [hidden]})
    fields = {"user": "fay", "id": "fact_0000000c", "thread": "t"}
    for guest, sees in ((me, True), (guest_of(site, held, "not person"), False)):
        assert ("picked plan B" in text_of(guest.open("/console/user", fields))) == sees
        assert (guest.open("/console/fact", fields).status == 200) == sees


# --- forms of other sites ---


@pytest.mark.parametrize("action", [*(action.path for action in ACTIONS), f"{HOME}/logout", f"{HOME}/language"])
def test_a_form_must_come_from_a_page_of_this_login(site: Site, me: Guest, of_ana: Guest, action: str) -> None:
    """Another origin, none, a wrong or missing mark, another type: refused before anything is looked at."""
    fields = {"user": "ana", "content": "I was forged.", "typed": "ana", "to": "zh"}
    port = site.port
    for origin in (
        "", "null", "http://evil.example", f"http://127.0.0.1:{port + 1}", f"http://localhost:{port}",
        f"http://127.0.0.1:{port}.evil.example", f"http://evil@127.0.0.1:{port}", f"file://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}/", "http://127.0.0.1",
    ):  # fmt: skip
        assert code_of(me.send(action, fields, origin=origin, referer=me.origin)) == "E_ORIGIN"
    marks: list[list[tuple[str, str]]] = [
        [], [("csrf", "")], [("csrf", of_ana.csrf)], [("csrf", me.csrf + "x")], [("csrf", me.csrf[:-1])],
        [("csrf", me.csrf), ("csrf", "x")], [("CSRF", me.csrf)], [("csrf", "é")],
    ]  # fmt: skip
    for mark in marks:
        assert code_of(me.send(action, [*fields.items(), *mark])) == "E_CSRF"
    assert code_of(me.send(f"{action}?csrf={me.csrf}", list(fields.items()))) == "E_CSRF"
    for kind in ("", "text/plain", "application/json", "multipart/form-data; boundary=x", f"{FORM}; charset=utf-16"):
        assert me.send(action, fields, content_type=kind).status == 415
    assert me.send(action, fields, content_encoding="gzip").status == 415
    assert me.open("/console/users").status == 200


def test_an_action_is_no_page_and_methods_cannot_be_changed(site: Site, me: Guest) -> None:
    """GET and HEAD change nothing, whatever headers say; other methods are refused; a page takes no form."""
    fields = {"user": "gus", "content": "I came by GET.", "csrf": me.csrf, "_method": "POST"}
    for action in ACTIONS:
        assert me.open(action.path, fields, x_http_method_override="POST").status == 404
        assert me.open(action.path, fields, method="HEAD", x_http_method="POST").status == 404
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
        assert me.open("/console/user/add", fields, method=method).status == 405
    for page in PAGES:
        assert me.send(page.path, fields).status in (404, 405)
    assert Memd(site.settings).facts("gus") == []


def test_nobody_can_be_logged_in_by_another_site(site: Site) -> None:
    """The login form, too, has to come from here."""
    for origin in ("", "null", "http://evil.example"):
        answer = Guest(site).send(LOGIN, {"token": site.token}, origin=origin)
        assert (answer.status, cookie_of(answer)) == (403, "")


@pytest.mark.parametrize(
    "evil",
    [
        "//evil.example", "https://evil.example", "/\\evil.example", "/console/\\evil", "/console//evil",
        "/console/../..//evil.example", "/console/../v1/users", "/consolex", "/console/x y", "/console/users\r\nx: y",
        "/console/users#\n", "/console/é", "/console/logout", "/console/enter?key=x",
        " /console/users", "javascript:x",
        "/console.evil.example", "/console@evil.example", "http:/console", "/console/users?x=\r\nset-cookie: a=b",
    ],
)  # fmt: skip
def test_a_redirect_stays_in_the_console(site: Site, me: Guest, evil: str) -> None:
    """After a login and after a change of the language: to a page of the console, else to the first one."""
    for answer in (
        Guest(site).send(LOGIN, {"token": site.token, "next": evil}),
        me.send("/console/language", {"back": evil}),
    ):
        assert (answer.status, answer.headers["location"]) == (303, HOME)
        assert "x" not in answer.headers
    page = me.open("/console/no-such-page", referer=f"http://127.0.0.1:{site.port}{''.join(evil.split())}")
    back = re.search(r'class="button" href="([^"]*)"', text_of(page))
    assert back
    assert back[1].startswith("/console")
    assert text_of(me.open("/console/no", referer="http://evil.example/console")).count("evil") == 0


def test_a_login_leads_back_to_its_page(site: Site) -> None:
    """Also after a token that was wrong; an address of thousands of characters is forgotten."""
    asked = Guest(site).open("/console/user", {"user": "安娜"}).headers["location"]
    form = re.search(r'name="next" value="([^"]*)"', text_of(Guest(site).open(asked)))
    assert form
    wrong = Guest(site).send(LOGIN, {"token": "x", "next": form[1]})
    again = re.search(r'name="next" value="([^"]*)"', text_of(wrong))
    assert again
    assert again[1] == form[1] == "/console/user?user=%E5%AE%89%E5%A8%9C"
    assert Guest(site).send(LOGIN, {"token": site.token, "next": form[1]}).headers["location"] == form[1]
    assert Guest(site).open("/console/users", {"find": "x" * 5000}).headers["location"] == LOGIN


def test_a_note_waits_for_its_page(site: Site, me: Guest) -> None:
    """Neither HEAD nor a page that refreshes itself nor a refusal takes the sentence away."""
    me.send("/console/user/add", {"user": "hal", "content": "Likes tea in the morning."})
    me.open("/console/users", method="HEAD")
    me.open("/console/users", memd_live="1")
    me.open("/console/users", {"after": "x"})
    assert "The fact is added" in text_of(me.open("/console/users"))
    assert "The fact is added" not in text_of(me.open("/console/users"))
