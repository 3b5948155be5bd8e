"""Hostile content, broken documents, broken addresses and forms, a server that is away: no page breaks, nothing runs.

The pages and actions come from the tables, and their fields from their code, so that a new one is attacked too.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from html.parser import HTMLParser
from typing import Any

import pytest
from support import wait_for
from support.console_guest import LOGIN, Guest, code_of, link_of, logged_in, text_of
from support.console_visits import console
from support.http_support import Answer, Site, head, install, read_all, status_of
from support.proxy import Proxy
from support.recall_support import document, fact, store, turn, write

from memd.client import Memd
from memd.context import Bucket
from memd.http.console.page import Action, Page
from memd.http.console.pages import ACTIONS, PAGES
from memd.http.console.site import HEADERS, MAX_FORM_BYTES, MAX_LOGIN_BYTES
from memd.inbox import verbs
from memd.inbox.connection import connect, send
from memd.inbox.raw_door import RawDoor
from memd.memory.document import Document
from memd.memory.store.json_store import open_store
from memd.memory.store.paths import FILE, folder

XSS = "\"'><xss onload=alert(1)></script><script>alert(2)</script><img src=x onerror=alert(3)>"
TEXTS = (
    XSS,
    "[click](javascript:alert(1)) ![x](https://evil.example/?d=1) <!-- --> ]]> &lt;xss&gt; {{ 7*7 }} {% raw %}",
    "\u202edrawkcab\u2066 \u200b\ufeff\u2028line\u2029 \x1b[31mred\x07 \x00nul",
    "x" * 100_000 + "<xss>",
    "{user} {0.__class__} %s %(a)s $x \\",
)
PLACES = (
    {"user": "hostile", "id": "fact_00000000", "q": XSS, "thread": XSS, "project": "hostile", "agent": ""},
    {"user": "hostile", "id": "fact_00000001", "thread": "t", "show": "transcript", "agent": "<xss>", "category": XSS},
)


def path_of(one: Page | Action) -> str:
    return one.path


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with tokens and the console."""
    with console(server_url) as site:
        yield site


@pytest.fixture
def site(running: Site) -> Site:
    install(running)
    return running


@pytest.fixture(scope="module")
def me(running: Site) -> Guest:
    """Who may do everything."""
    return logged_in(running, running.token)


class Checked(HTMLParser):
    """A page with nothing in it that runs, loads from elsewhere, or came from a text. `texts`: what it shows."""

    NEVER = frozenset(
        [
            "xss",
            "img",
            "iframe",
            "frame",
            "object",
            "embed",
            "applet",
            "style",
            "base",
            "video",
            "audio",
            "template",
            "math",
            "foreignobject",
            "use",
        ]
    )

    def __init__(self, answer: Answer) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.ids: list[str] = []
        self._inside = ""
        self.feed(text_of(answer))
        self.close()
        assert len(self.ids) == len(set(self.ids)), [one for one in self.ids if self.ids.count(one) > 1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        assert tag not in self.NEVER, tag
        for name, value in attrs:
            assert re.fullmatch(r"[a-zA-Z-]+[0-9]?", name), name
            assert not name.startswith("on"), name
            assert name not in ("style", "srcdoc", "formmethod", "target"), name
            if name in ("href", "src", "action", "formaction"):
                assert re.match(r"/console(/|\?|$)|#", value or ""), (name, value)
            if name == "id":
                self.ids.append(value or "")
        named = dict(attrs)
        if tag == "script":
            assert str(named.get("src")).startswith("/console/static/")
        if tag == "form":
            assert named.get("method") in ("get", "post")

    def handle_data(self, data: str) -> None:
        if self._inside == "textarea":  # what a person edits, unchanged
            return
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\x00\x1b\x07]", data), ascii(data[:80])
        self.texts.append(data)


def checked(answer: Answer) -> Answer:
    """An answer with the console's headers and, as a page, with nothing that runs."""
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, answer
    if answer.headers.get("content-type", "").startswith("text/html"):
        Checked(answer)
    return answer


# --- hostile content ---


def hostile() -> Document:
    """A memory with hostile text in every field that may hold any."""
    facts = [
        fact(
            f"fact_{number:08x}",
            text,
            category=text if number else "correction",
            source=text,
            sourceError=text,
            backstory=text,
            subject={"person": text, "relationship": text},
            evidence=[{"thread": text, "message": text, "quote": text}],
            origin={"model": text, "promptVersion": text},
            createdAt="2026-01-01T00:00:00Z",
            claim=text,
            createdBy=text,
            approvedBy=text,
            archiveNote=text,
            visibility=text,
        )
        for number, text in enumerate(TEXTS)
    ]
    gone = [{**one, "archivedAt": "2026-02-01T00:00:00Z", "archiveReason": one["content"][:500]} for one in facts]
    more = [{**one, "id": f"fact_1{number:07x}"} for number, one in enumerate(facts)]
    return {
        **document(*facts, bucket=Bucket("hostile"), topOfMind=XSS, workContext=TEXTS[3]),
        "archive": [*gone, *({**one, "id": f"fact_2{number:07x}"} for number, one in enumerate(gone))],
        "doubtful": [{**one, "doubtfulWhy": XSS, "doubtfulAt": "2026-11-01T00:00:00Z"} for one in more],
        "suspended": [{**one, "id": f"fact_3{number:07x}", "suspendedWhy": XSS} for number, one in enumerate(more)],
        "withheld": [{"fact": "fact_00000000", "wanted": XSS, "why": XSS, "at": XSS, "note": XSS, "by": XSS}],
        "refused": [{**one, "refusedWhy": XSS, "refusedAt": XSS} for one in more],
        "profile": {
            "username": {"value": XSS, "updatedAt": XSS, "source": XSS},
            "expertiseAreas": {"value": list(TEXTS), "updatedAt": XSS, "source": "manual"},
        },
    }


@pytest.fixture(scope="module")
def planted(running: Site) -> None:
    """Hostile memories, turns, sessions, projects, keys and letters."""
    install(running)
    turns = [turn(str(number), text, thread="t") for number, text in enumerate(TEXTS[:3])]
    store(running.settings.data_dir, hostile(), *turns)
    with Memd(running.settings) as memd, connect(running.settings) as client:
        memd.add_fact("hostile", "Likes tea.", agent_name="<xss>")
        for number, user in enumerate(("<xss>", '"><xss>', "javascript:alert(1)", "../../etc", "x" * 256, "a&b=c#d?e")):
            memd.add_fact(user, "Likes tea.")
            memd.push([{"role": "user", "content": XSS}], thread_id=XSS, user_id=user, agent_name="<xss>")
            if number % 2:
                continue
            memd.push([{"role": "user", "content": TEXTS[2]}], thread_id=f"dead {XSS}", user_id=user, now=True)
            for claim in send(client, verbs.claim(running.settings, 10, 0, "w", "model")).taken:
                assert send(client, verbs.bury(claim.id, f"E_{number}<xss>", f"E_X: {XSS}"))
        memd.project("hostile").make("hostile")
        memd.project("hostile", as_user="hostile").add_fact("Ships every week.", category="decision")
        files, bucket = open_store(running.settings), Bucket("", project_id="hostile")
        loaded = files.load(bucket)
        facts = [
            {**one, "visibility": "members", "createdBy": "hostile", "disputes": [XSS]} for one in hostile()["facts"]
        ]
        profile = {"projectGoal": {"value": XSS, "updatedAt": XSS, "source": "manual"}}
        made = {**loaded.document, "facts": [*loaded.document["facts"], *facts], "profile": profile}
        files.commit(bucket, loaded, {**made, "revision": loaded.revision + 1}, lambda: True)
        session = memd.session(XSS, user_id="hostile")
        for text in TEXTS[:4]:
            session.user(text)
            session.assistant(text)
        session.save()
        for raw in (b"\x00\xff\xfe<xss>", b'{"a": "\\ud800<xss>"}', XSS.encode() * 500, b'"\xe2\x80\xae"', b"[" * 5000):
            client.rpush("memd:in", raw)
        RawDoor(running.settings, client).take_in(100)


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_hostile_content_is_text(site: Site, planted: None, me: Guest, page: Page) -> None:
    """Tags, attributes, addresses, marks of direction, templates and 100 KB: shown, and nothing of it works."""
    for fields, language in zip(({}, *PLACES), ("en", "en", "zh"), strict=True):
        answer = checked(me.open(page.path, fields, accept_language=language))
        assert answer.status < 500
        assert len(answer.body) < 2_500_000 or page.path == "/console/export"
    if page.path == "/console/dead":
        with Memd(site.settings) as memd:
            letters = memd.dead()
        assert len(letters) > 5
        for letter in letters:
            assert checked(me.open(f"{page.path}/letter", {"id": letter.id})).status == 200


def test_a_refusal_repeats_what_was_sent_as_text(site: Site, me: Guest) -> None:
    """Paths, queries, forms, referers: each as hostile as can be."""
    for path in ("/console/<xss>", "/console/%3Cxss%3E%22", "/console/%00", "/console/%ff", "/console/" + "x" * 9000):
        assert checked(me.open(path)).status == 404
    for page in PAGES:
        for fields in ({"user": XSS}, {"user": "a\0"}, {"agent": XSS, "user": "a", "after": XSS}, {XSS: XSS}):
            assert checked(me.open(page.path, fields)).status < 500
    checked(Guest(site).open(LOGIN, {"next": XSS}))
    checked(Guest(site).send(LOGIN, {"token": XSS, "next": XSS}))
    checked(me.open("/console/none", referer=f"{me.origin}/console{XSS}"))


# --- fields of the wrong type ---

VALUES: tuple[Any, ...] = (
    None, 5, -1, 1e308, True, [], {}, "", "text", [[1]], {"a": {"b": 1}}, ["x", None, {}], "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59", 2**63, "2026-13-99",
)  # fmt: skip
FACT_FIELDS = (
    "category", "confidence", "createdAt", "updatedAt", "lastConfirmedAt", "validUntil", "archivedAt", "archiveReason",
    "source", "scope", "scopeId", "sourceError", "backstory", "replacedBy", "confirmations", "replaces", "subject",
    "evidence", "origin", "saidAt", "claim", "visibility", "createdBy", "approvedBy", "archiveNote", "provenBy",
    "disputes", "doubtfulWhy", "doubtfulAt", "suspendedWhy", "suspendedAt", "refusedWhy", "refusedAt", "model",
    "promptVersion", "reviewedAt", "abstracts", "lastUsedAt", "status", "state", "importedFrom", "authority",
)  # fmt: skip


def crooked(prefix: str, shift: int = 0) -> list[dict[str, Any]]:
    """Facts in which each field has each of VALUES once; each fact has some readable evidence in its turn."""
    found = []
    for number in range(len(VALUES)):
        fields = {name: VALUES[(number + place + shift) % len(VALUES)] for place, name in enumerate(FACT_FIELDS)}
        found.append({"id": f"fact_{prefix}{number:07x}", "content": f"Crooked {number}", **fields})
    return found


def crooked_documents() -> Iterator[tuple[str, Document]]:
    """Memories of which the store reads each, though their fields have wrong types."""
    plain = document(bucket=Bucket("crooked"))
    inner = [
        {
            "evidence": [{"thread": value, "message": value, "quote": value, "saidAt": value, "order": value}],
            "subject": {"person": value, "relationship": value},
            "origin": {"model": value, "promptVersion": value},
        }
        for value in VALUES
    ]
    facts = [{"id": f"fact_9{number:07x}", "content": "Inner", **fields} for number, fields in enumerate(inner)]
    archived = [{**one, "archivedAt": "2026-02-01T00:00:00Z"} for one in crooked("1")]
    yield (
        "crooked",
        {
            **plain,
            "facts": [
                *(
                    {name: value for name, value in one.items() if name not in ("archivedAt", "archiveReason")}
                    for one in crooked("0")
                ),
                *facts,
            ],
            "archive": [*crooked("0", 5), *archived, *crooked("2")],
            "doubtful": crooked("3"),
            "suspended": crooked("4"),
            "refused": crooked("5"),
            "scoped": [{**one, "scope": "session", "scopeId": "t"} for one in crooked("6")],
            "withheld": [
                {
                    "fact": "fact_00000000",
                    **dict.fromkeys(("wanted", "why", "at", "source", "note", "by", "content"), value),
                }
                for value in VALUES
            ],
            "removed": [{"hash": "0" * 32, "removedAt": value, "threads": value} for value in VALUES],
            "user": dict.fromkeys(("workContext", "personalContext", "topOfMind"), 5),
            "history": {"recentMonths": {"summary": 5, "updatedAt": []}, "workContext": [1], "earlierContext": []},
        },
    )
    for number, value in enumerate(VALUES):
        yield (
            f"odd-{number}",
            {
                **document(fact("fact_00000000", "Odd"), bucket=Bucket(f"odd-{number}")),
                **dict.fromkeys(
                    (
                        "doubtful",
                        "suspended",
                        "refused",
                        "withheld",
                        "scoped",
                        "outbox",
                        "said",
                        "offRecord",
                        "lastUpdated",
                        "profiledAt",
                        "ledgerFormer",
                        "profile",
                        "unknown",
                        "members",
                    ),
                    value,
                ),
                "user": {"topOfMind": value, "workContext": {"summary": value, "updatedAt": value}},
                "history": {"recentMonths": {"summary": "text", "updatedAt": value, "versions": value}},
            },
        )
        yield (
            f"profile-{number}",
            {
                **document(fact("fact_00000000", "Odd"), bucket=Bucket(f"profile-{number}")),
                "profile": {
                    "username": {"value": value, "updatedAt": value, "source": value, "factIds": value},
                    "expertiseAreas": value,
                    "profession": {"value": "x", "updatedAt": value, "source": value},
                },
            },
        )


@pytest.fixture(scope="module")
def bent(running: Site) -> list[str]:
    """Memories of wrong types; the users that have them."""
    made = list(crooked_documents())
    for _, one in made:
        write(running.settings.data_dir, one)
    return [user for user, _ in made]


@pytest.mark.long
def test_a_field_of_the_wrong_type_breaks_no_page(site: Site, bent: list[str], me: Guest) -> None:
    """Every field that a template reads with every wrong type: a page, and nothing in the log."""
    prefixes = "01234569"
    ids = [f"fact_{prefix}{number:07x}" for prefix in prefixes for number in range(len(VALUES))]
    broken = []
    for page in PAGES:
        whole = page.path in ("/console/user", "/console/timeline", "/console/audit", "/console/export")
        users = bent if whole else ["crooked"]
        for user in users:
            asked = [{"user": user, "q": "crooked odd text", "id": "fact_00000000", "thread": "t", "at": "2026-03-01"}]
            if page.path == "/console/fact" and user == "crooked":
                asked = [{"user": user, "id": fact_id, "thread": "t"} for fact_id in ids]
            for fields in asked:
                answer = me.open(page.path, fields, accept_language="zh")
                if answer.status >= 500:
                    broken.append((page.path, fields, code_of(answer)))
    assert broken == [], last_errors(site)


def last_errors(site: Site) -> str:
    """The last failures of the server's log."""
    lines = (site.settings.data_dir / "serve0.log").read_text().splitlines()
    return "\n".join([line for line in lines if "http_failed" in line][-5:])


# --- broken addresses and forms ---

NASTY = ("9" * 5000, "\0", "٣", "x" * 5000, "-1", "\u202e", "..", "due:99999999999999", "²:²", "0001-01-01", "1e9", "é")
_FIELD = re.compile(r"""(?:value|values|start)\(\s*"(\w+)\"""")


def nasty(one: Page | Action) -> Iterator[dict[str, str]]:
    """For each field that the module of a page or an action reads, fields with some of NASTY in it."""
    module = inspect.getmodule(one.run)
    assert module
    names = sorted({"user", "agent", "after", *_FIELD.findall(inspect.getsource(module))})
    good = {"user": "nasty", "id": "fact_00000000", "thread": "t", "project": "p", "letter": "x"}
    for place, name in enumerate(names):
        many = NASTY[:3] if isinstance(one, Page) else NASTY[:1]
        yield from ({**good, name: value} for value in (*many, NASTY[3 + place % (len(NASTY) - 3)]))


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_an_address_that_is_wrong_in_any_field_gets_a_page(site: Site, me: Guest, page: Page) -> None:
    """Numbers of thousands of digits, controls, digits of other scripts, paths: refused, or read as nothing."""
    for fields in nasty(page):
        assert me.open(page.path, fields).status < 500, last_errors(site)
    for raw in ("%ff", "a=%ed%a0%80", "&&&=&", "user=ana&user=", "&".join(["a=1"] * 2100)):
        assert checked(me.open(f"{page.path}?{raw}")).status < 500


@pytest.mark.parametrize("action", ACTIONS, ids=path_of)
def test_a_form_that_is_wrong_in_any_field_gets_a_page(site: Site, me: Guest, action: Action) -> None:
    """The same for forms: a refusal or a redirect into the console."""
    for fields in nasty(action):
        answer = me.send(action.path, fields)
        assert answer.status < 500, last_errors(site)
        assert answer.status != 303 or answer.headers["location"].startswith("/console")
    assert checked(me.send(action.path, {})).status < 500


def test_forms_have_a_size(site: Site, me: Guest) -> None:
    """Refused by their length, also in chunks; the form for everybody is the shortest; too many fields are refused."""
    for path, most in (("/console/user/add", MAX_FORM_BYTES), (LOGIN, MAX_LOGIN_BYTES)):
        assert me.send(path, raw=b"a=" + b"x" * most).status == 413
        assert me.send(path, raw=b"&".join([b"a=1"] * 2100)).status == 400
        for raw in (b"a=%ff", b"a=\xff", b"csrf=%ed%a0%80", b"%00=%00", b"=", b"&" * 1000):
            assert checked(me.send(path, raw=raw)).status in (400, 401, 403)
    lines = (f"Origin: http://localhost:{site.port}", "Content-Type: application/x-www-form-urlencoded")
    begun = head("POST", LOGIN, *lines, "Transfer-Encoding: chunked").replace(
        b"Host: localhost", f"Host: localhost:{site.port}".encode()
    )
    with site.line(begun, b"8000\r\n" + b"a" * 0x8000 + b"\r\n0\r\n\r\n") as line:
        assert status_of(line.recv(4096)) == 413
    both = head("POST", LOGIN, *lines, "Transfer-Encoding: chunked", "Content-Length: 5")
    with site.line(both, b"0\r\n\r\n") as line:
        assert status_of(line.recv(4096)) == 400


# --- what is away ---


@pytest.mark.long
def test_pages_answer_while_the_inbox_hangs_and_other_doors_do_not_notice(server_url: str) -> None:
    """Each page and action within the time of a request; then all of it again, also without a folder of users."""
    with Proxy(server_url) as proxy, console(proxy.url, http__request_timeout_s=2) as site:
        install(site)
        me = logged_in(site, site.token)
        fields = {"user": "ana", "id": "fact_00000000", "letter": "x", "thread": "t", "project": "p", "how": "drop"}
        me.send("/console/user/add", {"user": "ana", "content": "Lives in Porto."})
        with ThreadPoolExecutor(len(PAGES) + len(ACTIONS)) as threads:
            proxy.silent = True
            asked = [threads.submit(me.open, page.path, fields) for page in PAGES]
            asked += [threads.submit(me.send, action.path, fields) for action in ACTIONS]
            assert site.ask("GET", "/v1/memory?user_id=ana").status == 200
            assert Guest(site).open(LOGIN).status == 200
            answers = [one.result() for one in asked]
        assert {code_of(one) for one in answers if one.status >= 500} == {"E_TIMEOUT"}
        proxy.silent = False
        wait_for(lambda: me.open("/console/queue").status == 200, "the inbox is back")
        file = folder(site.settings.data_dir, Bucket("ana"), shared=False) / FILE
        file.write_bytes(b'{"facts": [')
        codes = {page.path: code_of(me.open(page.path, fields)) for page in PAGES}
        assert (codes["/console/user"], "E_INTERNAL" in codes.values()) == ("E_DOCUMENT", False)
        shutil.rmtree(file.parents[1])
        assert [page.path for page in PAGES if me.open(page.path, fields).status >= 500] == []


@pytest.mark.long
def test_a_login_that_sends_its_form_slowly_holds_nobody_up(server_url: str) -> None:
    """The body has `http.read_timeout_s`; meanwhile the pages answer."""
    with console(server_url, http__read_timeout_s=1) as site:
        lines = (f"Origin: http://localhost:{site.port}", "Content-Type: application/x-www-form-urlencoded")
        begun = head("POST", LOGIN, *lines, "Content-Length: 100").replace(
            b"Host: localhost", f"Host: localhost:{site.port}".encode()
        )
        with ExitStack() as stack:
            slow = [stack.enter_context(site.line(begun, b"token=")) for _ in range(20)]
            assert Guest(site).open(LOGIN).status == 200
            assert {status_of(read_all(line)) for line in slow} == {408}


@pytest.mark.long
def test_neither_log_nor_figures_name_anybody(site: Site, planted: None, me: Guest) -> None:
    """After all that: no id, text, token, cookie or key of a link in the log; the figures know the table's paths."""
    Guest(site).open(link_of(site) + "x")
    answer = site.ask("GET", "/metrics")
    routes = set(re.findall(r'route="(/console[^"]*)"', text_of(answer)))
    known = (
        {page.path for page in PAGES}
        | {action.path for action in ACTIONS}
        | {f"/console/{name}" for name in ("login", "enter", "…")}
    )
    assert routes <= known | {"/console/logout", "/console/language"}
    log = (site.settings.data_dir / "serve0.log").read_text()
    secrets = (site.token, me.cookie.partition("=")[2], me.csrf)
    for words in ("hostile", "crooked", "nasty", "Porto", *secrets):
        assert words not in log + text_of(answer), words
    assert "xss" not in log  # the figures have the codes of letters, which workers name
