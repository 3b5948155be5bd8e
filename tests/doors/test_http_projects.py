"""Projects over HTTP: rights by role, and attacks on them: what somebody may not read, nothing tells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from support.http_support import Site, install, project_requests, serving

from memd.client import Memd
from memd.context import Bucket
from memd.http.keyring import SCOPES, Users
from memd.memory import scoped
from memd.memory.document import empty_document
from memd.memory.new_facts import base_fact
from memd.memory.store.json_store import open_store

SECRETS = ("Kafka", "Friday", "freeze", "Nightjar", "9000")
PRIVATE = "fact_0000aaaa"


class Setting(NamedTuple):
    """A served project: of app shop, owner ana, admin adam, editor ben, viewer vic; dora has left."""

    site: Site
    tokens: dict[str, str]
    facts: dict[str, str]

    def ask(self, user: str, name: str, project: str = "apollo", fact: str | None = None, **more: str) -> Any:
        """One request, by the user's own token; `user` other: ana by another app."""
        whose = "ana" if user == "other" else user
        method, path, body = project_requests(whose, project, fact or self.facts["ana"], **more)[name]
        return self.site.ask(method, path, body, token=self.tokens[user])


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with tokens."""
    with serving(server_url, locked=True) as site:
        yield site


@pytest.fixture(scope="module")
def tokens(running: Site) -> dict[str, str]:
    """A token for each user, and one of another app; a server takes a second to see each."""
    users = ("ana", "adam", "ben", "vic", "dora", "zoe")
    made = {user: running.give("shop", Users(frozenset({user})), SCOPES) for user in users}
    return {**made, "other": running.give("rival", Users(frozenset({"ana"})), SCOPES)}


@pytest.fixture
def served(running: Site, tokens: dict[str, str]) -> Setting:
    install(running)
    settings = running.settings
    with Memd(settings) as memd:
        for project_id in ("apollo",):
            if not any(row.project_id == project_id for row in memd.projects()):
                project = memd.project(project_id)
                project.make("ana", app="shop")
                for user, role in (("adam", "admin"), ("ben", "editor"), ("vic", "viewer"), ("dora", "editor")):
                    project.set_member(user, role)
                project.remove_member("dora")
        facts = {}
        for user, content in (
            ("ana", "The project uses Kafka."),
            ("ben", "The project ships on Friday."),
            ("adam", "The budget freeze of the project is 9000."),
        ):
            mine = memd.project("apollo", as_user=user)
            known = [fact["id"] for fact in mine.facts() if fact["content"] == content]
            facts[user] = known[0] if known else mine.add_fact(content)
    store, own = open_store(settings), Bucket("ana")
    loaded = store.load(own)
    fact = base_fact(PRIVATE, "The project is called Nightjar.", "context", 0.9, "2026-01-01T00:00:00Z", "t")
    document = scoped.with_facts(
        {**empty_document(own), **loaded.document, "revision": loaded.revision + 1},
        [scoped.placed(fact, scoped.project("apollo"))],
    )
    store.commit(own, loaded, document, lambda: True)
    return Setting(running, tokens, facts)


def test_each_role_may_do_what_its_row_says(served: Setting) -> None:
    """Status by role: what reads, what changes one's own, what changes others'."""
    expected = {
        "projectMembers": {"ana": 200, "adam": 200, "ben": 200, "vic": 200},
        "projectFacts": {"ana": 200, "adam": 200, "ben": 200, "vic": 200},
        "projectTimeline": {"ana": 200, "adam": 200, "ben": 200, "vic": 200},
        "whyProjectFact": {"ana": 200, "adam": 200, "ben": 200, "vic": 200},
        "addProjectFact": {"vic": 403},
        "editProjectFact": {"ben": 403, "vic": 403},
        "removeProjectFact": {"ben": 403, "vic": 403},
        "hideFact": {"ben": 403, "vic": 403, "adam": 403},
        "decideDispute": {"ben": 403, "vic": 403},
        "setProjectMember": {"ben": 403, "vic": 403},
        "removeProjectMember": {"ben": 403, "vic": 403},
        "closeProject": {"adam": 403, "ben": 403, "vic": 403},
    }
    got = {name: {user: served.ask(user, name).status for user in row} for name, row in expected.items()}
    assert got == expected
    assert served.ask("ben", "editProjectFact", fact=served.facts["ben"]).status == 200


def test_who_may_not_read_cannot_tell_a_project_from_none(served: Setting) -> None:
    """Every operation by strangers, by who has left, by the owner through another app: answers are alike, by the byte.

    Over 100 attempts on facts that exist, facts that do not, and a private one; none answers anything but what it
    answers for a project that was never made.
    """
    tried = 0
    for user in ("zoe", "dora", "other"):
        for name in project_requests("x"):
            if name in ("projects", "makeProject"):
                continue
            on_fact = "/facts/" in project_requests("x")[name][1]
            for fact in (served.facts["ana"], "fact_ffffffff", PRIVATE) if on_fact else (PRIVATE, "fact_ffffffff"):
                there = served.ask(user, name, "apollo", fact)
                none = served.ask(user, name, "none-such", fact)
                assert there.same == none.same, (user, name)
                assert there.status in (403, 404), (user, name, there.status)
                assert not any(word.encode() in there.body for word in SECRETS)
                tried += 1
        listed = served.ask(user, "projects")
        assert listed.json == {"projects": []}
        whose = "ana" if user == "other" else user
        for named in ("apollo", "none-such"):
            body = {"user_id": whose, "query": "Kafka Friday freeze 9000", "project_id": named}
            found = served.site.ask("POST", "/v1/search", body, token=served.tokens[user])
            block = served.site.ask("GET", f"/v1/inject?user_id={whose}&project_id={named}", token=served.tokens[user])
            for answer in (found, block):
                assert not any(word.encode() in answer.body for word in ("Kafka", "Friday", "freeze", "9000"))
                tried += 1
    assert tried >= 100


def test_what_is_its_owners_alone_is_nobody_elses(served: Setting) -> None:
    """Not of the project's owner, not by a search, a count, or the id itself; the same as for an id that is none."""
    tried = 0
    for user in ("adam", "ben", "vic"):
        for name in (
            "whyProjectFact",
            "editProjectFact",
            "removeProjectFact",
            "publishFact",
            "hideFact",
            "decideDispute",
        ):
            there, none = (served.ask(user, name, fact=fact) for fact in (PRIVATE, "fact_ffffffff"))
            assert there.same == none.same, (user, name)
            tried += 1
        assert b"Nightjar" not in served.ask(user, "projectFacts").body
        body = {"user_id": user, "query": "called Nightjar", "project_id": "apollo"}
        found = served.site.ask("POST", "/v1/search", body, token=served.tokens[user])
        assert b"Nightjar" not in found.body
        tried += 2
    assert b"Nightjar" in served.ask("ana", "projectFacts").body
    assert tried >= 24


def test_a_public_fact_is_for_the_tokens_of_the_app(served: Setting) -> None:
    """And for no other app's; nothing else of the project with it."""
    fact = served.facts["ben"]
    body = {"user_id": "ana", "project_id": "apollo", "visibility": "public"}
    assert served.site.ask("PATCH", f"/v1/projects/facts/{fact}", body, token=served.tokens["ana"]).status == 200
    seen = served.ask("zoe", "projectFacts")
    assert [row["id"] for row in seen.json["facts"]] == [fact]
    assert served.ask("other", "projectFacts").status == 404
    assert served.ask("zoe", "projectMembers").status == 404
    assert served.ask("zoe", "whyProjectFact", fact=served.facts["ana"]).status == 404
    body["visibility"] = "members"  # as the other tests find it
    assert served.site.ask("PATCH", f"/v1/projects/facts/{fact}", body, token=served.tokens["ana"]).status == 200
    assert served.ask("zoe", "projectFacts").status == 404


def test_the_time_of_a_refusal_tells_nothing(served: Setting) -> None:
    """A project of 60 facts and one that was never made are refused after the same least time."""
    with Memd(served.site.settings) as memd:
        for number in range(60):
            memd.project("apollo").add_fact(f"The project has box {number} in room {number * 3}.")
    times: dict[str, list[float]] = {"apollo": [], "none-such": []}
    for project in ("apollo", "none-such") * 5:
        began = time.perf_counter()
        assert served.ask("zoe", "projectMembers", project).status == 404
        times[project].append(time.perf_counter() - began)
    assert all(min(taken) >= 0.05 for taken in times.values())
