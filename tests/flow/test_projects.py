"""Projects from a push to the members' prompts: marks, outbox, rights, disputes, leaving, forgetting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from support import MakeSettings, daemon, ended, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.context import of_project
from memd.errors import Rejected
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.memory.document import facts_of
from memd.memory.projects.outbox import outbox_of
from memd.memory.store.json_store import open_store
from memd.testing import ModelServer

_MESSAGE = re.compile(r'<m i="(\d+)" role="user"[^>]*?(?: project="(\d+)")?>([^<]*)</m>')
_PROJECT_FACT = re.compile(r'<project n="\d+">\n(.*?)\n</project>', re.S)


def labelled(request: dict[str, Any]) -> dict[str, Any]:
    """A model that makes one fact of each message: of the project where it is marked, else of the user.

    "Replace: <word>: ..." replaces the project's fact with that word.
    """
    prompt = request["messages"][-1]["content"]
    shown = [line.split(" ", 1) for block in _PROJECT_FACT.findall(prompt) for line in block.split("\n")]
    facts = []
    for number, mark, message in _MESSAGE.findall(prompt):
        said, replaced = message, list[str]()
        if message.startswith("Replace:"):
            _, word, said = (part.strip() for part in message.split(":", 2))
            replaced = [name for name, content in shown if word in content]
        facts.append(
            {
                "content": said,
                "category": "decision" if mark else "context",
                "confidence": 0.9,
                "scope": "project" if mark else "user",
                "durability": "durable",
                "authority": "descriptive",
                "evidence": [{"message": int(number), "quote": said}],
                "replaces": replaced,
            }
        )
    return {"summaries": {}, "newFacts": facts, "confirmedFacts": [], "retiredFacts": []}


@pytest.fixture
def app(asking: MakeSettings, model: ModelServer) -> Iterator[tuple[Memd, Settings]]:
    """A client of a daemon whose model labels what is a project's; project `apollo` of ana (owner), ben and vic."""
    model.responder = labelled
    settings = asking()
    with Memd(settings) as memd:
        memd.project("apollo").make("ana")
        memd.project("apollo").set_member("ben", "editor")
        memd.project("apollo").set_member("vic", "viewer")
        yield memd, settings


def say(
    memd: Memd, settings: Settings, user: str, *texts: str, thread: str = "t", project: str | None = "apollo"
) -> None:
    turns = [{"role": "user", "content": text, "id": f"{thread}-{text[:40]}"} for text in texts]
    with daemon(settings):
        memd.push(turns, thread_id=thread, user_id=user, now=True, project_id=project)
        assert ended(memd)["stored"] >= 1


def contents(facts: list[dict[str, Any]]) -> list[str]:
    return [fact["content"] for fact in facts]


def test_what_one_member_says_of_the_project_every_member_reads(app: tuple[Memd, Settings]) -> None:
    """In prompts and searches that name the project, and in no other; with quotes and who said them, not where."""
    memd, settings = app
    say(memd, settings, "ana", "The project uses pnpm for all packages.")
    for user in ("ana", "ben", "vic"):
        assert "pnpm" in memd.inject(user, project_id="apollo")
        assert [hit.fact["content"] for hit in memd.search(user, "pnpm", project_id="apollo")] == [
            "The project uses pnpm for all packages."
        ]
        assert "pnpm" not in memd.inject(user)
        assert not memd.search(user, "pnpm packages", include_said=False)
    for stranger in ("zoe", "ana2"):
        assert memd.inject(stranger, project_id="apollo") == memd.inject(stranger, project_id="none-such") == ""
        with pytest.raises(Rejected, match="E_PROJECT_UNKNOWN"):
            memd.project("apollo", as_user=stranger).facts()
    [fact] = memd.project("apollo", as_user="ben").facts()
    assert (fact["createdBy"], fact["visibility"], fact["scope"]) == ("ana", "members", "project")
    why = memd.project("apollo", as_user="ben").why(fact["id"])
    assert why["evidence"] == [
        {"by": "ana", "quote": "The project uses pnpm for all packages.", "saidAt": fact["saidAt"]}
    ]
    own = memd.project("apollo", as_user="ana").why(fact["id"])
    assert own["evidence"][0]["turn"] == "The project uses pnpm for all packages."
    assert "thread" not in str(facts_of(memd.project("apollo").check()))


def test_only_marked_messages_reach_the_project(app: tuple[Memd, Settings]) -> None:
    """Turns 1 to 3 are private, turn 4 names the project, and the app sends all of them again."""
    memd, settings = app
    private = ["I live in Porto.", "My doctor is Dr. Silva.", "I earn 83,000 a year."]
    turns = [{"role": "user", "content": text, "id": str(n)} for n, text in enumerate(private)]
    memd.push(turns, thread_id="t", user_id="ana")
    marked = {"role": "user", "content": "The project ships every second Friday.", "id": "9"}
    with daemon(settings):
        memd.push([*turns, marked], thread_id="t", user_id="ana", project_id="apollo", now=True)
        assert ended(memd)["stored"] >= 1
    assert contents(memd.project("apollo", as_user="ben").facts()) == ["The project ships every second Friday."]
    assert sorted(contents(memd.facts("ana"))) == sorted(private)


def test_a_project_whose_messages_are_all_known_is_not_asked_about(app: tuple[Memd, Settings]) -> None:
    """An app sends a whole conversation again; the project's message is known, and too far back to be context."""
    memd, settings = app
    known = {"role": "user", "content": "The project ships every second Friday.", "id": "p"}
    private = [{"role": "user", "content": f"I own {n} bikes.", "id": f"{n}"} for n in range(2, 8)]

    def push_all() -> None:
        memd.push([known], thread_id="t", user_id="ana", project_id="apollo")
        memd.push(private, thread_id="t", user_id="ana")

    push_all()
    with daemon(settings):
        assert "dead" not in ended(memd)
        push_all()
        memd.push([{"role": "user", "content": "I live in Porto.", "id": "9"}], thread_id="t", user_id="ana", now=True)
        assert "dead" not in ended(memd)
    assert "I live in Porto." in contents(memd.facts("ana"))
    assert contents(memd.project("apollo").facts()) == ["The project ships every second Friday."]


def test_a_word_of_the_private_part_keeps_a_fact_private(app: tuple[Memd, Settings], model: ModelServer) -> None:
    """The model mixes the user's own memory into a sentence for all: it stays with the user, and the others go."""
    memd, settings = app
    say(memd, settings, "ana", "My son Leo has asthma.", thread="home", project=None)

    def leaky(request: dict[str, Any]) -> dict[str, Any]:
        update = labelled(request)
        update["newFacts"][0]["content"] = "The project meets at 9 because of Leo's asthma."
        return update

    model.responder = leaky
    say(memd, settings, "ana", "The project meets at 9.", "The project runs on Postgres.")
    assert contents(memd.project("apollo", as_user="ben").facts()) == ["The project runs on Postgres."]
    [kept] = memd.project("apollo", as_user="ana").private()
    assert kept["content"] == "The project meets at 9 because of Leo's asthma."
    assert (kept["scope"], kept["scopeId"], kept["visibility"]) == ("project", "apollo", "owner_only")
    assert "asthma." in memd.inject("ana", project_id="apollo")
    assert "meets at 9" not in memd.inject("ana")


@pytest.mark.parametrize("user", ["vic", "zoe"])
def test_who_may_not_add_keeps_it_private(app: tuple[Memd, Settings], user: str) -> None:
    """A viewer, and who is no member; the push is accepted alike."""
    memd, settings = app
    say(memd, settings, user, "The project uses Rust.")
    assert memd.project("apollo").facts() == []
    assert "Rust" in memd.inject(user, project_id="apollo")
    assert "Rust" not in memd.inject("ana", project_id="apollo")


def test_a_list_of_a_projects_facts_says_who_and_when(app: tuple[Memd, Settings]) -> None:
    """Filters by member, status and period; the day of the last use of what is shared, the time of one's own."""
    memd, settings = app
    say(memd, settings, "ana", "The project deploys on Fridays.")
    say(memd, settings, "ben", "The project uses Kafka.", thread="b")
    say(memd, settings, "vic", "The project uses Rust.", thread="v")
    as_vic = memd.project("apollo", as_user="vic")
    assert {(fact["status"], fact["lastUsedAt"]) for fact in as_vic.facts()} == {("active", None)}
    assert contents(as_vic.facts(member="ben")) == ["The project uses Kafka."]
    assert contents(as_vic.facts(member="vic")) == ["The project uses Rust."]
    assert as_vic.facts(status="archived") == as_vic.facts(until="2026-01-01") == as_vic.facts(member="zoe") == []
    memd.search("vic", "project", project_id="apollo")
    used = {fact["content"]: str(fact["lastUsedAt"]) for fact in as_vic.facts()}
    assert used["The project uses Kafka."].endswith("T00:00:00.000Z")
    assert used["The project uses Rust."] > used["The project uses Kafka."]


def test_opposites_of_two_members_stand_side_by_side_until_somebody_decides(app: tuple[Memd, Settings]) -> None:
    """Ben's word replaces nothing of Ana's; Ana's own second word replaces her first."""
    memd, settings = app
    say(memd, settings, "ana", "The project deploys on Fridays.")
    say(memd, settings, "ben", "Replace: Fridays: The project deploys on Mondays.", thread="b")
    first, second = memd.project("apollo", as_user="ana").facts()
    assert (first["createdBy"], second["createdBy"]) == ("ana", "ben")
    assert second["disputes"] == [first["id"]]
    with pytest.raises(Rejected, match="E_FORBIDDEN"):
        memd.project("apollo", as_user="ben").decide(second["id"])
    memd.project("apollo", as_user="ana").decide(second["id"])
    assert contents(memd.project("apollo").facts()) == ["The project deploys on Mondays."]
    assert [entry["archiveReason"] for entry in memd.project("apollo").archived()] == ["replaced"]

    say(memd, settings, "ben", "Replace: Mondays: The project deploys on Tuesdays.", thread="c")
    assert contents(memd.project("apollo").facts()) == ["The project deploys on Tuesdays."]


def test_leaving_and_forgetting(app: tuple[Memd, Settings]) -> None:
    """Who leaves reads nothing more; who is forgotten takes what only they proved along, in every copy."""
    memd, settings = app
    say(memd, settings, "ana", "The project uses Kafka.", "The project has a budget of 9000 euros.")
    say(memd, settings, "ben", "The project uses Kafka.", "The project freezes on 2026-12-20.", thread="b")
    memd.project("apollo", as_user="ben").remove_member("ben")
    assert memd.inject("ben", project_id="apollo") == ""
    assert len(memd.project("apollo").facts()) == 3
    memd.forget("ana")
    facts = memd.project("apollo").facts()
    assert sorted(contents(facts)) == ["The project freezes on 2026-12-20.", "The project uses Kafka."]
    assert {entry["by"] for fact in facts for entry in fact["evidence"]} == {"ben"}
    folder = Path(settings.data_dir, "projects", "apollo")
    for file in folder.rglob("*"):
        assert "9000" not in file.read_text(), file
        assert "ana" not in file.read_text(), file


@pytest.mark.files
def test_a_damaged_project_stops_nobody(app: tuple[Memd, Settings], client: redis.Redis) -> None:
    """The user's part is stored; the claim waits, and ends without a further call once the project is mended."""
    memd, settings = app
    file = Path(settings.data_dir, "projects", "apollo", "memory.json")
    good = file.read_bytes()
    newer = good.replace(b'"version": "1.0"', b'"version": "9.0"')
    file.write_bytes(newer)
    with daemon(settings):
        memd.push(
            [{"role": "user", "content": "The project uses Go.", "id": "1"}],
            thread_id="t", user_id="ana", now=True, project_id="apollo",
        )  # fmt: skip
        memd.push([{"role": "user", "content": "I like tea.", "id": "2"}], thread_id="o", user_id="ana", now=True)
        wait_for(lambda: contents(memd.facts("ana")) == ["I like tea."], "the other thread is stored")
        wait_for(lambda: bool(outbox_of(memd.document("ana"))), "the fact waits in the outbox")
        file.write_bytes(good)
        wait_for(lambda: memd.project("apollo").facts(), "the project has the fact")
        ended(memd)
    assert contents(memd.project("apollo").facts()) == ["The project uses Go."]


def test_the_receipt_tells_what_became_of_it(app: tuple[Memd, Settings]) -> None:
    """How many facts the project has now, and what stayed private."""
    memd, settings = app
    with daemon(settings):
        receipt = memd.push(
            [{"role": "user", "content": "The project uses Go.", "id": "1"}],
            thread_id="t", user_id="ben", now=True, project_id="apollo",
        )  # fmt: skip
        ended(memd)
    assert receipt.id is not None
    outcome = memd.receipt(receipt.id)
    assert (outcome.state, outcome.project) == ("stored", {"facts": 1})


def test_the_first_push_marks_a_message_for_good(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Marked and pushed again without, unmarked and pushed again with a mark, claimed and given back."""
    one, two = ({"role": "user", "content": f"Message {name}", "id": name} for name in ("one", "two"))

    def marks() -> dict[str, str]:
        [claim] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
        found = {message.content: message.project for message in claim.messages}
        send(client, verbs.release(claim.id, "paused"))
        return found

    memd.push([one], thread_id="t", user_id="u", project_id="a b/ü#%", now=True)
    memd.push([one, two], thread_id="t", user_id="u", now=True)
    memd.push([one, two], thread_id="t", user_id="u", project_id="other", now=True)
    expected = {"Message one": "a b/ü#%", "Message two": ""}
    assert marks() == expected
    [claim] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    memd.push([two, one], thread_id="t", user_id="u", project_id="third", now=True)
    send(client, verbs.release(claim.id, "paused"))
    assert marks() == expected


def test_publish_and_hide(app: tuple[Memd, Settings]) -> None:
    """What its creator keeps private is nobody else's, whatever their role; what others said too is not hidden."""
    memd, settings = app
    say(memd, settings, "ben", "The project uses Kafka.")
    [fact] = memd.project("apollo", as_user="ben").facts()
    private = memd.project("apollo", as_user="ben").hide(fact["id"])
    assert memd.project("apollo", as_user="ana").facts() == memd.project("apollo").facts() == []
    assert "Kafka" not in memd.inject("ana", project_id="apollo")
    assert "Kafka" in memd.inject("ben", project_id="apollo")
    shared = memd.project("apollo", as_user="ben").publish(private)
    assert "Kafka" in memd.inject("ana", project_id="apollo")
    assert memd.project("apollo", as_user="ben").private() == []
    say(memd, settings, "ana", "The project uses Kafka.", thread="a")
    with pytest.raises(Rejected, match="E_NOT_YOURS_ALONE"):
        memd.project("apollo", as_user="ben").hide(shared)
    assert open_store(settings).load(of_project("apollo")).document["facts"][0]["createdBy"] == "ben"


def test_what_words_come_from_is_kept_with_their_facts(app: tuple[Memd, Settings]) -> None:
    """The source of a push, with the facts that rest on it, private and shared."""
    memd, settings = app
    source = {"kind": "knowledge_base", "id": "handbook-7"}
    with daemon(settings):
        for user, text, project in (("ana", "The project uses Go.", "apollo"), ("ben", "I like tea.", None)):
            turn = {"role": "user", "content": text, "id": text}
            memd.push([turn], thread_id="t", user_id=user, now=True, project_id=project, source=source)
        ended(memd)
    for fact in (*memd.project("apollo").facts(), *memd.facts("ben")):
        assert (fact["sourceKind"], fact["sourceId"]) == ("knowledge_base", "handbook-7")
