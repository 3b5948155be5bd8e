"""Replays: saved replies fit a run whose gates, ids and documents differ from those that they were made for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.evaluation_support import Row, fact, read, replies, run, says, update, user, write

from memd.config import ApplySettings, Settings
from memd.config.settings import DrainSettings
from memd.context import Message
from memd.evaluation.answering import RequestFolder
from memd.evaluation.lines import BadLabels
from memd.evaluation.report import run_report
from memd.evaluation.saved_replies import SavedReply, changes, extraction, read_answers, read_replies, saved_from
from memd.evaluation.tables import notes
from memd.evaluation.tally import Rate
from memd.extraction import Request
from memd.extraction.short_ids import short_ids
from memd.memory.facts import content_of

PORTO = fact("The user lives in Porto.", "I live in Porto")
LISBON = fact("The user lives in Lisbon.", "We moved to Lisbon")
GONE = {"gone": [{"terms": [["porto"]]}]}
MOVE = user(says("I live in Porto."), says("We moved to Lisbon.", **GONE))


def short_id(tmp_path: Path) -> str:
    """What the second request calls the first fact."""
    measured, _, _ = run(read(tmp_path / "probe.jsonl", MOVE), replies(update(PORTO)))
    facts = measured.unanswered[0].request.document["facts"]
    return short_ids([fact["id"] for fact in facts])[facts[0]["id"]]


def stale(users_file: Path, saved: dict[str, SavedReply], settings: Settings | None = None) -> Rate | None:
    measured, _, _ = run(read(users_file, MOVE), saved, settings)
    assert measured.unanswered == []
    return measured.tally.rates().get("stale")


def test_a_saved_reply_names_known_facts_by_their_words(tmp_path: Path) -> None:
    """The id of the request becomes the fact's words when it is saved, and an id again when it is replayed."""
    answered = replies(update(PORTO), update(LISBON | {"replaces": [short_id(tmp_path)]}))
    _, _, recorder = run(read(tmp_path / "set.jsonl", MOVE), answered)
    recorder.write(tmp_path / "saved.jsonl")
    saved = read_replies([tmp_path / "saved.jsonl"])
    reply = saved["ines.s2.1"].reply
    assert reply is not None
    assert reply["newFacts"][0]["replaces"] == [{"fact": "The user lives in Porto."}]
    assert stale(tmp_path / "set.jsonl", saved) == Rate(0, 1)


def test_a_changed_gate_does_not_spoil_a_replay(tmp_path: Path) -> None:
    """Another fact before it gives the known one another id; without the known one, only the reference is lost."""
    boat = fact("The user owns a boat.", "I live in Porto")
    second = update(LISBON | {"replaces": [{"fact": "The user lives in Porto."}]})
    saved = replies(update(boat, PORTO), second)
    assert stale(tmp_path / "set.jsonl", saved) == Rate(0, 1)
    strict = Settings(apply=ApplySettings(confidence_threshold=0.95))
    sure = replies(
        update(PORTO), update(LISBON | {"confidence": 0.99, "replaces": [{"fact": "The user lives in Porto."}]})
    )
    measured, _, _ = run(read(tmp_path / "set.jsonl", MOVE), sure, strict)
    assert [one.group for one in measured.tally if one.figure == "refusal_wrong"] == ["low_confidence"]
    assert measured.tally.rates()["precision"].of == 1


def test_a_known_fact_in_slightly_other_words_is_found(tmp_path: Path) -> None:
    """The words in the document may be those of another reply that said the same."""
    worded = fact("User lives in Porto", "I live in Porto")
    saved = replies(update(worded), update(LISBON | {"replaces": [{"fact": "The user lives in Porto."}]}))
    assert stale(tmp_path / "set.jsonl", saved) == Rate(0, 1)


def test_a_merge_that_is_not_made_names_its_sources(tmp_path: Path) -> None:
    """A run that never asked for the merge has the sources apart; what the merged fact's end ends are these."""
    cat = fact("The user has a cat.", "I live in Porto")
    both = "The user lives in Porto and has a cat."
    sources = [{"fact": "The user lives in Porto."}, {"fact": "The user has a cat."}]
    first = update(PORTO, cat) | {"mergedFacts": [{"content": both, "sources": sources}]}
    assert stale(tmp_path / "set.jsonl", replies(first, update(LISBON | {"replaces": [{"fact": both}]}))) == Rate(0, 1)
    retired = {"id": {"fact": both}, "reason": "moved", "quote": "We moved to Lisbon."}
    assert stale(tmp_path / "set.jsonl", replies(first, update(LISBON, retiredFacts=[retired]))) == Rate(0, 1)


def test_a_replay_names_no_fact_that_its_request_does_not_show() -> None:
    """No model could: of a memory that is not shown whole, a reference to another fact is lost."""
    facts = [{"id": f"fact_{n}", "content": f"The user owns boat {n}.", "category": "context"} for n in range(2)]
    row = SavedReply("r", reply=update(LISBON | {"replaces": [{"fact": fact["content"]} for fact in facts]}))
    request = Request({"facts": facts}, (Message("user", "We moved to Lisbon."),), shown={"fact_1"})
    [replayed] = extraction(row, request, "model").update.new_facts
    assert replayed.replaces == ("fact_1",)


def test_a_wrong_id_stays_wrong(tmp_path: Path) -> None:
    """What a model made up is refused in the replay, as it was."""
    saved = replies(update(PORTO), update(LISBON | {"replaces": ["ffff"]}))
    measured, _, _ = run(read(tmp_path / "set.jsonl", MOVE), saved)
    assert [one.group for one in measured.tally if one.figure == "refusal_wrong"] == ["unknown_id"]


def test_what_has_changed_since_is_named(tmp_path: Path) -> None:
    """The parts of a request that differ from the one that was answered: messages here, known facts there."""
    answers = replies(update(PORTO), update(LISBON))
    _, _, recorder = run(read(tmp_path / "set.jsonl", MOVE), answers)
    same = run(read(tmp_path / "set.jsonl", MOVE), recorder.kept)[1]
    assert same.changed == {}
    other = user(says("I live in Porto. Hi!"), says("We moved to Lisbon.", **GONE))
    differs = run(read(tmp_path / "set.jsonl", other), recorder.kept)[1]
    assert differs.changed["ines.s1.1"] == ("messages",)
    less = {**recorder.kept, "ines.s1.1": SavedReply("ines.s1.1", reply=update())}
    assert run(read(tmp_path / "set.jsonl", MOVE), less)[1].changed == {"ines.s2.1": ("memory",)}
    assert changes({"a": ("memory",), "b": ("memory", "messages")}, lambda name: name != "b") == {
        "requests": 2, "prompt": 0, "memory": 2, "messages": 1, "names": ["a"],
    }  # fmt: skip


def test_a_reply_that_breaks_off_is_halved(tmp_path: Path) -> None:
    """Truncated replies are counted, and the halves of the conversation are asked for."""
    two = {"messages": [{"role": "user", "content": "I live in Porto."}, {"role": "user", "content": "I own a boat."}]}
    boat = fact("The user owns a boat.", "I own a boat")
    first = SavedReply("ines.s1.1", text='{"newFacts": [', stop_reason="max_tokens")
    halves = [SavedReply("ines.s1.2", reply=update(PORTO)), SavedReply("ines.s1.3", reply=update(boat))]
    measured, _, _ = run(read(tmp_path / "set.jsonl", user(two)), {row.name: row for row in (first, *halves)})
    rates = measured.tally.rates()
    assert rates["truncated"] == Rate(1, 3)
    assert rates["precision"].of == 2


def test_a_dense_message_is_one_request_in_pieces(tmp_path: Path) -> None:
    """A truncated reply to one message: its sentences are asked for apart, and their facts count together."""
    dense = {"messages": [{"role": "user", "content": "I live in Porto. I own a boat."}]}
    boat = fact("The user owns a boat.", "I own a boat")
    first = SavedReply("ines.s1.1", text='{"newFacts": [', stop_reason="max_tokens")
    pieces = [SavedReply("ines.s1.2", reply=update(PORTO)), SavedReply("ines.s1.3", reply=update(boat))]
    measured, _, _ = run(read(tmp_path / "set.jsonl", user(dense)), {row.name: row for row in (first, *pieces)})
    rates = measured.tally.rates()
    assert rates["truncated"] == Rate(1, 2)
    assert (rates["precision"].of, rates["quote"]) == (2, Rate(2, 2))


def test_a_reply_that_is_none_is_repaired(tmp_path: Path) -> None:
    """Replies without an update are counted, and the same conversation is asked for once more."""
    two = {"messages": [{"role": "user", "content": "I live in Porto."}, {"role": "user", "content": "I own a boat."}]}
    boat = fact("The user owns a boat.", "I own a boat")
    first, again = SavedReply("ines.s1.1", text="Sorry."), SavedReply("ines.s1.2", reply=update(PORTO, boat))
    measured, _, _ = run(read(tmp_path / "set.jsonl", user(two)), {row.name: row for row in (first, again)})
    rates = measured.tally.rates()
    assert rates["malformed"] == Rate(1, 2)
    assert rates["precision"].of == 2


def test_a_reply_in_a_bad_form_is_used_and_counted(tmp_path: Path) -> None:
    """What was mended and refused is in the report, and in a replay of what a model was recorded to say."""
    boat = fact("The user owns a boat.", "I live in Porto", confidence=1.2)
    first = SavedReply("ines.s1.1", text=f"```json\n{json.dumps(update(PORTO, boat))}\n```")
    users = read(tmp_path / "set.jsonl", user(says("I live in Porto.")))
    measured, _, _ = run(users, {first.name: first})
    told = run_report(measured, {})
    assert (told["mended"], told["malformed_items"]) == ({"fence": 1}, 1)
    assert measured.tally.rates()["malformed"] == Rate(0, 1)
    assert "repairs of replies: 1 fence" in list(
        notes({"run": told, "groups": {}, "mistakes": {}, "extractor": "replay"})
    )
    request = Request({}, (Message("user", "I live in Porto."),))
    recorded = saved_from(first.name, extraction(first, request, "model"))
    again = extraction(recorded, request, "model")
    assert (again.mended, again.malformed) == ({"fence": 1}, ("newFacts[1].confidence",))


def test_sessions_have_their_own_time(tmp_path: Path) -> None:
    """The request's day, the facts' times and what is due for review follow the clock of the set."""
    short = fact("The user is on a diet.", "I am on a diet", validDays=20)
    sessions = [says("I am on a diet."), says("What a day!"), says("And a night.")]
    measured, _, _ = run(read(tmp_path / "set.jsonl", user(*sessions)), replies(update(short)))
    request = measured.unanswered[0].request
    assert str(request.today) == "2026-02-01"
    assert request.document["facts"][0]["createdAt"].startswith("2026-01-01")
    assert list(request.maintenance.review.values()) == ["ended"]


@pytest.mark.parametrize(
    ("producer", "expected"),
    [("whole", [2]), ("turns", [2]), ("growing", [2])],
)
def test_however_a_producer_sends_it_is_one_conversation(tmp_path: Path, producer: str, expected: list[int]) -> None:
    """One push, single turns, or the whole conversation again and again: the request has each message once."""
    messages = [
        {"id": "1", "role": "user", "content": "I live in Porto."},
        {"id": "2", "role": "assistant", "content": "Nice."},
    ]
    measured, _, _ = run(read(tmp_path / "set.jsonl", user({"messages": messages, "producer": producer})), {})
    assert [len(one.request.messages) for one in measured.unanswered] == expected


def test_a_long_conversation_is_asked_about_in_parts(tmp_path: Path) -> None:
    """As the inbox does it: claims of `drain.claim_tokens`, the oldest messages first."""
    session = {"messages": [{"role": "user", "content": f"I own boat number {n}."} for n in range(3)]}
    settings = Settings(drain=DrainSettings(claim_tokens=10))
    saved = {f"ines.s1.{n}": SavedReply(f"ines.s1.{n}", reply=update()) for n in (1, 2, 3)}
    measured, _, _ = run(read(tmp_path / "set.jsonl", user(session)), saved, settings)
    assert measured.tally.rates()["malformed"].of == 3


def test_requests_are_written_and_answers_read(tmp_path: Path) -> None:
    """A request for each user that cannot go on; answered ones are removed; answers are files or lines."""
    users = read(tmp_path / "set.jsonl", MOVE)
    folder, answers = tmp_path / "requests", tmp_path / "answers"
    measured, _, _ = run(users, {})
    assert RequestFolder(folder).write(measured.unanswered, {}) == 1
    assert "I live in Porto." in (folder / "ines.s1.1.md").read_text()
    assert sorted(file.name for file in folder.iterdir()) == ["_schema.json", "_system.md", "ines.s1.1.md"]
    write(answers / "mine.jsonl", {"name": "ines.s1.1", "reply": update(PORTO)})
    (answers / "ines.s2.1.json").write_text("no JSON at all")
    given = read_answers(answers)
    assert given["ines.s2.1"].text == "no JSON at all"
    measured, _, _ = run(users, {"ines.s1.1": given["ines.s1.1"]})
    assert RequestFolder(folder).write(measured.unanswered, given) == 1
    assert "lives in Porto" in (folder / "ines.s2.1.md").read_text()
    assert not (folder / "ines.s1.1.md").exists()


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"name": "a"}, "a reply has either `reply` or `text`"),
        ({"name": "a", "reply": {}, "text": ""}, "a reply has either `reply` or `text`"),
        ({"name": "a", "text": "", "sort": 1}, "Object contains an unknown field; allowed: name, "),
    ],
)
def test_a_bad_line_of_replies_is_named(tmp_path: Path, row: Row, why: str) -> None:
    """File, line and reason."""
    file = write(tmp_path / "r.jsonl", {"name": "b", "text": ""}, row)
    with pytest.raises(BadLabels, match=r"r\.jsonl, line 2: ") as found:
        read_replies([file])
    assert why in str(found.value)


def test_the_words_of_a_document_are_left_alone(tmp_path: Path) -> None:
    """A replay stores what the reply says, to the letter."""
    measured, _, _ = run(read(tmp_path / "set.jsonl", MOVE), replies(update(PORTO)))
    assert [content_of(one) for one in measured.unanswered[0].request.document["facts"]] == [PORTO["content"]]
