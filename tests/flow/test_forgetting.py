"""Forgetting by word: what a user asks to forget leaves every copy at once, from push to document, and stays away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from support import Cli, MakeSettings, daemon

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.inbox.receipt import Outcome
from memd.memory.hand.editing import Editing
from memd.memory.removed import fact_hash
from memd.memory.store.json_store import open_store
from memd.ops.audit import audit
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

Tell = Callable[..., Outcome]


def new_fact(content: str, quote: str, **fields: Any) -> dict[str, Any]:
    """A new fact of an update, with a quote of the first message."""
    return {
        "content": content, "category": "context", "confidence": 0.9, "scope": "user", "durability": "durable",
        "authority": "descriptive", "evidence": [{"message": 0, "quote": quote}],
    } | fields  # fmt: skip


def teller(app: Memd, model: ModelServer) -> Tell:
    """Tell something to the daemon, in a claim of its own; the reply's parts by keyword, by default one fact of it."""

    def tell(*texts: str, thread: str = "t", **reply: Any) -> Outcome:
        if reply:
            model.reply({"newFacts": [], "confirmedFacts": [], "retiredFacts": [], "summaries": {}} | reply)
        receipt = app.push([{"role": "user", "content": text} for text in texts], thread_id=thread, user_id="ana")
        app.flush(wait=True)
        return app.receipt(receipt.id or "")

    return tell


def test_what_is_forgotten_leaves_every_copy(asking: MakeSettings, model: ModelServer) -> None:
    """The fact, its older version, sentences of summaries, the previous version, the turns; it does not come back."""
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        tell = teller(app, model)
        old = "The user has a cabin in Zyxmoor"
        tell("We own a cabin in Zyxmoor.", newFacts=[new_fact(old, "a cabin in Zyxmoor")])
        [fact] = app.facts("ana")
        tell(
            "The cabin in Zyxmoor has two rooms.",
            newFacts=[new_fact(f"{old} with two rooms", "The cabin in Zyxmoor has two rooms", replaces=[fact["id"]])],
            summaries={"personalContext": "Drives to Zyxmoor at weekends. Works as a nurse."},
        )
        tell("I work as a nurse.")
        cabin, nurse = app.facts("ana")
        quote = "forget what I said about our place by the lake"
        gone = tell(f"Please {quote}.", thread="u", forgottenFacts=[{"id": cabin["id"], "quote": quote}])
        assert (gone.state, gone.refused) == ("stored", {})
        left = [path.name for path in (settings.data_dir / "users").rglob("*") if _holds(path, b"zyxmoor")]
        assert left == []
        document = app.document("ana")
        assert [one["id"] for one in document["facts"]] == [nurse["id"]]
        assert document["user"]["personalContext"]["summary"] == "Works as a nurse."
        assert {fact_hash(old), fact_hash(f"{old} with two rooms")} <= {one["hash"] for one in document["removed"]}
        again = tell("A cabin in Zyxmoor it is.", newFacts=[new_fact(old, "A cabin in Zyxmoor")])
        assert again.refused == {"removed": 1}


@pytest.mark.parametrize(
    ("wish", "quote", "salary"),
    [
        (
            "I earn 83,000 a year. The adoption thing, please forget I ever told you about that. Football is on now.",
            "The adoption thing, please forget I ever told you about that",
            "I earn 83,000 a year",
        ),
        (
            "我一年挣83000。我跟你讲过领养的事，这个你忘掉吧，家里人不乐意。Football is on now.",
            "领养的事，这个你忘掉吧",
            "我一年挣83000",
        ),
    ],
    ids=["English", "Chinese"],
)
def test_the_extractor_reads_what_a_wish_means_and_only_what_comes_after_it_is_a_fact(
    asking: MakeSettings, model: ModelServer, wish: str, quote: str, salary: str
) -> None:
    """The turn is sent, so that the fact can be named; before its wish it gives no fact, and it is not kept."""
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        tell = teller(app, model)
        assert tell(f"{quote}.", thread="first").state == "skipped", "a memory without facts has nothing to forget"
        assert not model.requests
        behind = new_fact("The user plays football now", "Football is on now")
        told = tell(wish, thread="first", newFacts=[behind, new_fact("The user earns 83,000 a year", salary)])
        assert told.refused == {"asked_not_to": 1}
        assert [one["content"] for one in app.facts("ana")] == [behind["content"]]
        tell("We started the adoption.", newFacts=[new_fact("The user adopts a child", "started the adoption")])
        fact = app.facts("ana")[-1]
        told = tell(
            wish,
            "I like tea.",
            thread="u",
            forgottenFacts=[{"id": fact["id"], "quote": quote}],
            newFacts=[
                new_fact("The user earns 83,000 a year", salary),
                new_fact("The user likes tea", "I like tea"),
            ],
            summaries={"personalContext": f"Likes tea. {salary}. Football is on."},
        )
        asked = str(model.requests[-1].body)
        assert quote in asked
        assert told.refused == {"asked_not_to": 1}
        document = app.document("ana")
        assert [one["content"] for one in document["facts"]] == ["The user plays football now", "The user likes tea"]
        assert document["user"]["personalContext"]["summary"] == "Likes tea. Football is on."
        assert quote.encode() not in b"".join(path.read_bytes() for path in settings.data_dir.rglob("said-*"))


def _holds(path: Any, word: bytes) -> bool:
    return path.is_file() and word in path.read_bytes().lower()


def test_more_than_three_are_suspended_until_a_person_decides(asking: MakeSettings, model: ModelServer) -> None:
    """Neither injected nor found; listed, audited, taken back or removed for good."""
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        tell = teller(app, model)
        tell(
            *(
                f"My friend Emil owns {thing}."
                for thing in ("a boat", "two dogs", "a bakery", "some land", "an old car")
            )
        )
        tell("I work as a nurse.")
        written = app.add_fact("ana", "Emil is the user's landlord")
        tell("Forget everything about Emil.", thread="u", newFacts=[])
        assert [fact["content"] for fact in app.facts("ana")] == ["I work as a nurse."]
        assert "Emil" not in app.inject("ana", query="What about Emil?")
        assert not app.search("ana", "Emil")
        held = app.withheld("ana")
        assert [(one["wanted"], one["why"]) for one in held] == [
            ("forgotten", "too_many_forgotten"), ("forgotten", "too_many_forgotten"), ("forgotten", "manual"),
        ]  # fmt: skip
        found = audit(app.document("ana"), datetime.now(UTC), settings.apply)
        assert [one.place for one in found if one.rule == "withheld"] == [f"suspended[{n}]" for n in range(3)]
        app.restore_fact("ana", written)
        app.remove_fact("ana", held[0]["fact"])
        assert [fact["id"] for fact in app.facts("ana")][1:] == [written]
        assert [one["fact"] for one in app.withheld("ana")] == [held[1]["fact"]]


def _at(settings: Any) -> tuple[Any, Any]:
    from datetime import UTC, datetime

    return datetime.now(UTC), settings.apply


def test_only_a_wish_forgets_and_no_wish_is_a_fact(asking: MakeSettings, model: ModelServer) -> None:
    """Quotes without a wish, unknown ids, and facts of what is off the record or only tells of the wish are refused."""
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        tell = teller(app, model)
        tell("I live in Porto.")
        [porto] = app.facts("ana")
        sold = tell(
            "I sold the boat.",
            forgottenFacts=[
                {"id": porto["id"], "quote": "I sold the boat"},
                {"id": porto["id"], "quote": "forget Porto"},
                {"id": "fact_00000000", "quote": "I sold the boat"},
            ],
        )
        assert sold.refused == {"no_wish": 1, "quote_not_found": 1, "unknown_id": 1}
        assert app.facts("ana") == [porto]
        told = tell(
            "Please forget my old address, I live in Lisbon now.",
            newFacts=[
                new_fact("The user lives in Lisbon", "I live in Lisbon now"),
                new_fact("The user asked that an old address be forgotten", "I live in Lisbon now"),
                new_fact("The user has an old address", "forget my old address"),
            ],
            forgottenFacts=[{"id": porto["id"], "quote": "forget my old address"}],
        )
        assert told.refused == {"asked_not_to": 2}
        assert [fact["content"] for fact in app.facts("ana")] == ["The user lives in Lisbon"]
        off = tell(
            "I like tea. Off the record: Karl was fired.",
            newFacts=[new_fact("Karl lost his job", "Karl was fired"), new_fact("The user likes tea", "I like tea")],
        )  # fmt: skip
        assert off.refused == {"asked_not_to": 1}
        assert [fact["content"] for fact in app.facts("ana")][1:] == ["The user likes tea"]
        assert "Karl" not in str(model.requests[-1].body)
        few = "One more thing to forget: what I drink"
        tea = app.facts("ana")[1]
        named = tell(f"{few}.", forgottenFacts=[{"id": tea["id"], "quote": few}])
        assert (named.refused, named.not_kept) == ({}, {"forget_wish": 1})
        assert [fact["content"] for fact in app.facts("ana")] == ["The user lives in Lisbon"]


def test_a_wish_that_points_back_forgets_what_only_that_turn_proves(asking: MakeSettings, model: ModelServer) -> None:
    """Without a word of the model; a fact that another turn proves too stays, without the quote that goes."""
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        tell = teller(app, model)
        tell("I like green tea a lot.", newFacts=[new_fact("The user likes green tea", "I like green tea")])
        [tea] = app.facts("ana")
        tell(
            "I earn 90k, and green tea is still the best.",
            newFacts=[new_fact("The user earns 90k", "I earn 90k")],
            confirmedFacts=[{"id": tea["id"], "quote": "green tea is still the best"}],
        )
        calls = model.calls
        tell("That was off the record.")
        assert model.calls == calls
        [left] = app.facts("ana")
        assert (left["content"], len(left["evidence"])) == ("The user likes green tea", 1)
        assert b"90k" not in orjson.dumps(app.document("ana"))
        store = open_store(settings)
        said = store.read_said(Bucket("ana"), store.load(Bucket("ana")).document)
        assert [turn.text for turn in said.turns] == ["I like green tea a lot."]
        assert Editing(settings).withheld(Bucket("ana")) == []


IDA = {
    "The user's name is Ida": "My name is Ida",
    "The user is allergic to peanuts": "I am allergic to peanuts",
    "The user is vegetarian": "I am vegetarian",
    "The user has asthma": "I have asthma",
    "The user lives in Lisbon": "I live in Lisbon",
}


@pytest.mark.parametrize("extractor", ["rules", "model"])
@pytest.mark.parametrize("thread", ["t", "u"])
def test_a_wish_to_forget_one_thing_keeps_what_was_said_beside_it(
    extractor: str, thread: str, asking: MakeSettings, settings: Settings, model: ModelServer
) -> None:
    """The fact goes with its turn; the others of the turn stay with their quotes, and are confirmed when said again."""
    chosen = asking() if extractor == "model" else settings
    with daemon(chosen), Memd(chosen) as app:
        tell = teller(app, model)
        tell(". ".join(IDA.values()) + ".", newFacts=[new_fact(content, quote) for content, quote in IDA.items()])
        before = app.facts("ana")
        assert len(before) == len(IDA)
        gone = tell("Forget what I told you about Lisbon.", thread=thread, newFacts=[])
        assert (gone.state, gone.not_kept["forget_wish"]) == ("stored", 1)
        assert app.facts("ana") == before[:4]
        assert app.withheld("ana") == []
        left = [path.name for path in (chosen.data_dir / "users").rglob("*") if _holds(path, b"lisbon")]
        assert left == []
        store = open_store(chosen)
        assert not store.read_said(Bucket("ana"), store.load(Bucket("ana")).document).turns
        peanuts = [new_fact("The user is allergic to peanuts", "I am allergic to peanuts")]
        again = tell("I am allergic to peanuts.", thread="v", newFacts=peanuts)
        assert (again.state, again.refused) == ("stored", {})
        assert [fact.get("confirmations", 0) for fact in app.facts("ana")] == [0, 1, 0, 0]


def test_what_is_to_be_remembered_is_said_outright(asking: MakeSettings, model: ModelServer) -> None:
    """A lesser confidence than that of a correction in so many words is the model's error."""
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        tell = teller(app, model)
        tell(
            "Please remember that I am allergic to nuts. I may move.",
            newFacts=[
                new_fact("The user is allergic to nuts", "I am allergic to nuts", confidence=0.5),
                new_fact("The user moves", "I may move", confidence=0.5),
            ],
        )
        tell("记住我对青霉素过敏。", newFacts=[new_fact("用户对青霉素过敏", "我对青霉素过敏", confidence=0.6)])
        assert [(fact["content"], fact["confidence"]) for fact in app.facts("ana")] == [
            ("The user is allergic to nuts", 0.95), ("用户对青霉素过敏", 0.95),
        ]  # fmt: skip


def test_who_asks_to_forget_everything_is_a_stranger_until_a_person_decides(
    asking: MakeSettings, model: ModelServer, cli: Cli
) -> None:
    """Nothing is injected or found, no excerpt neither; the receipt says why, and a person can take all of it back."""
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        tell = teller(app, model)
        home, job = "I live in Zyxmoor.", "I work as a nurse."
        summary = {"personalContext": "A nurse in Zyxmoor."}
        tell(home, newFacts=[new_fact("The user lives in Zyxmoor", "live in Zyxmoor")], summaries=summary)
        tell(job, thread="u", newFacts=[new_fact("The user is a nurse", "work as a nurse")])
        assert "Zyxmoor" in app.inject("ana", query="Zyxmoor")
        asked = tell("Please forget everything you know about me.", thread="v")
        assert (asked.state, asked.not_kept) == ("stored", {"forget_wish": 1})
        assert not app.facts("ana")
        assert not app.search("ana", "Zyxmoor")
        assert "Zyxmoor" not in app.inject("ana", query="Zyxmoor")
        waiting = app.withheld("ana")
        assert [(one["wanted"], one["why"]) for one in waiting] == [("forgotten", "everything")] * 2
        assert "suspended, context" in cli("why", "ana", waiting[0]["fact"]).stdout
        assert cli("facts", "restore", "ana").returncode == 2
        assert cli("facts", "restore", "ana", "--all").stdout.count("restored") == 2
        assert len(app.facts("ana")) == 2
        again = cli("facts", "restore", "ana", "--all")
        assert (again.returncode, again.stdout) == (0, "")
        assert "nothing is suspended" in again.stderr
