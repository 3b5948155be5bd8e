"""Reading a model's reply: forms × wrappings × envelopes. What has one meaning is recovered, and nothing is guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.slow_texts import LIMIT, ratio

from memd.context import Message
from memd.errors import ContentRefused, ExtractionFailed, NoUpdate, Truncated
from memd.extraction import Extraction, Usage, envelope
from memd.extraction.batch import results
from memd.extraction.reply import BadReply, ReadReply, read, read_object
from memd.extraction.update import Update
from memd.inbox.claim import PaidAnswer

SENT = (Message("user", "I moved to Porto. I am allergic to nuts."), Message("assistant", "Noted."))
PORTO: dict[str, Any] = {
    "content": "The user moved to Porto.",
    "category": "identity",
    "confidence": 0.9,
    "scope": "user",
    "durability": "durable",
    "authority": "descriptive",
    "evidence": [{"message": 0, "quote": "I moved to Porto"}],
}
NUTS: dict[str, Any] = {
    **PORTO,
    "content": 'The user is allergic to nuts: "never" {a}, [b].',
    "category": "constraint",
    "evidence": [{"message": 0, "quote": "allergic to nuts"}],
}
CONFIRMED = {"id": "0000a001", "quote": "I moved to Porto"}
RETIRED = {"id": "0000a002", "reason": "moved", "quote": "I moved"}
WHOLE: dict[str, Any] = {
    "summaries": {"personalContext": "Lives in Porto."},
    "newFacts": [PORTO, NUTS],
    "confirmedFacts": [CONFIRMED],
    "retiredFacts": [RETIRED],
}
TEXT = json.dumps(WHOLE)
PRETTY = json.dumps(WHOLE, indent=2)


def nuts(**fields: Any) -> str:
    """The whole reply, with these fields in its second fact."""
    return json.dumps({**WHOLE, "newFacts": [PORTO, {**NUTS, **fields}]})


def without(*names: str, **fields: Any) -> str:
    """The whole reply with these parts, without those."""
    return json.dumps({name: value for name, value in {**WHOLE, **fields}.items() if name not in names})


def single_quoted(value: Any) -> str:
    """JavaScript's way to write an object."""
    body = json.dumps(value).replace("'", "\\'")
    return body.replace('\\"', "\0").replace('"', "'").replace("\0", '"')


def typographic(text: str) -> str:
    """The quotes of a word processor around every text."""
    opened = text.replace('\\"', "'").replace(' "', " “")
    return opened.replace('": ', "”: ").replace('",', "”,").replace('"\n', "”\n")


NOBODY = {"person": "", "relationship": ""}
FORMS: dict[str, tuple[str, str]] = {
    "whole": (TEXT, ""),
    "pretty-printed": (PRETTY, ""),
    "Windows line ends": (PRETTY.replace("\n", "\r\n"), ""),
    "trailing comma in the object": (TEXT[:-1] + ",}", "comma"),
    "trailing comma in a list": (TEXT.replace("}], \"confirmed", "},], \"confirmed"), "comma"),
    "trailing comma in a fact": (TEXT.replace('"scope": "user"', '"scope": "user",', 1), "comma"),
    "commas missing between lines": (PRETTY.replace(",\n", "\n"), "comma"),
    "comma missing between facts": (TEXT.replace("}, {", "} {"), "comma"),
    "line comments": (PRETTY.replace('"newFacts"', '// the facts\n"newFacts"'), "comment"),
    "block comments": (TEXT.replace('"newFacts"', '/* {"newFacts": []} */ "newFacts"'), "comment"),
    "Python literals": (repr({**WHOLE, "reviewedFacts": None}), "quotes"),
    "single quotes": (single_quoted(WHOLE), "quotes"),
    "typographic quotes": (typographic(PRETTY), "quotes"),
    "unquoted keys": (TEXT.replace('"summaries"', "summaries").replace('"newFacts"', "newFacts"), "quotes"),
    "raw line ends in a text": (TEXT.replace("The user moved", "The\nuser moved"), "control_character"),
    "raw tab in a text": (TEXT.replace("The user moved", "The\tuser moved"), "control_character"),
    "needless escape": (TEXT.replace("Lives in", "Lives\\' in"), ""),
    "lists missing": (without("retiredFacts", "summaries"), "missing_list"),
    "facts alone": (without("retiredFacts", "summaries", "confirmedFacts"), "missing_list"),
    "list null": (without(reviewedFacts=None), "null_list"),
    "summaries null": (without(summaries=None), ""),
    "summaries as an empty list": (without(summaries=[]), ""),
    "a summary null": (without(summaries={**WHOLE["summaries"], "topOfMind": None}), ""),
    "an empty object for a list": (without(mergedFacts={}), "filler"),
    "no text for a list": (without(mergedFacts=""), "filler"),
    "one object for a list": (without(confirmedFacts=CONFIRMED), "single_item"),
    "one quote for a list": (nuts(evidence=NUTS["evidence"][0]), "single_item"),
    "one id for a list": (nuts(replaces="0000a001"), "single_item"),
    "facts by number": (without(newFacts={"0": PORTO, "1": NUTS}), "numbered"),
    "facts in a text": (without(newFacts=json.dumps([PORTO, NUTS])), "encoded"),
    "a fact in a text": (without(newFacts=[PORTO, json.dumps(NUTS)]), "encoded"),
    "a fact in a list of its own": (without(newFacts=[PORTO, [NUTS]]), "single_item"),
    "confidence as text": (nuts(confidence="0.9"), "number"),
    "confidence in per cent": (nuts(confidence="90 %"), "number"),
    "number of the message as text": (nuts(evidence=[{"message": "0", "quote": "allergic to nuts"}]), "number"),
    "number of the message as a decimal": (nuts(evidence=[{"message": 0.0, "quote": "allergic to nuts"}]), "number"),
    "days as text": (nuts(validDays="30"), "number"),
    "point without a digit": (TEXT.replace("0.9", ".9", 1), "literal"),
    "optional fields empty": (nuts(validDays="", sourceError="null", subject=NOBODY), "filler"),
    "optional fields null": (nuts(validDays=None, sourceError=None, subject=None, backstory=None, replaces=None), ""),
    "no category": (without(newFacts=[PORTO, {n: v for n, v in NUTS.items() if n != "category"}]), "missing_field"),
    "a person without relationship": (nuts(subject={"person": "Ana"}), "missing_field"),
    "standing in capitals": (nuts(scope="User", durability="DURABLE", authority=" descriptive"), "letter_case"),
    "a label as text": (nuts(sensitive="No"), "letter_case"),
    "extra fields": (json.dumps({**WHOLE, "thoughts": "none", "newFacts": [PORTO, {**NUTS, "id": 7}]}), "extra_field"),
    "names with underscores": (TEXT.replace("newFacts", "new_facts").replace("content", "Content"), "field_name"),
    "the same key twice": (TEXT.replace('"scope": "user"', '"scope": "user", "scope": "user"'), "duplicate_key"),
    "index and text in evidence": (nuts(evidence=[{"index": "0", "text": "allergic to nuts"}]), "field_name"),
    "quote and message beside the content": (
        without(newFacts=[PORTO, {**{n: v for n, v in NUTS.items() if n != "evidence"}, **NUTS["evidence"][0]}]),
        "wrapper",
    ),
    "fullwidth punctuation": (TEXT.replace('", "', '"，"').replace('": ', '"：'), "quotes"),
}  # fmt: skip
"""A form of the whole reply, which loses nothing, and the kind of repair it is counted as."""

WRAPPINGS: dict[str, tuple[Callable[[str], str], str]] = {
    "nothing": (lambda text: text, ""),
    "a mail's marks": (lambda text: "\n".join(f"> {line}" for line in text.split("\n")), "prose"),
    "a fence": (lambda text: f"```json\n{text}\n```", "fence"),
    "a fence in capitals": (lambda text: f"```JSON\r\n{text}\r\n```\r\n", "fence"),
    "a fence of tildes": (lambda text: f"~~~\n{text}\n~~~", "fence"),
    "a fence without end": (lambda text: f"```json\n{text}", "fence"),
    "prose before": (lambda text: f"Sure! Here is the update {{as asked}}:\n\n{text}", "prose"),
    "prose behind": (lambda text: f"{text}\n\nLet me know if [anything] is missing.", "prose"),
    "prose and a fence": (lambda text: f"Here it is:\n```\n{text}\n```\nDone.", "fence"),
    "thinking": (lambda text: f"<think>\nMaybe {{\"newFacts\": [\n</think>\n{text}", "thinking"),
    "thinking with a draft": (lambda text: f"<think>{{\"newFacts\": []}}</think>```json\n{text}\n```", "thinking"),
    "the end of thinking": (lambda text: f"The user moved. {{\"newFacts\": [] }}\n</think>\n\n{text}", "thinking"),
    "a byte order mark": (lambda text: f"\ufeff{text}", "bom"),
    "a tag": (lambda text: f"<output>\n{text}\n</output>", "prose"),
    "a list of one": (lambda text: f"[{text}]", "wrapper"),
    "an object": (lambda text: f'{{"update": {text}}}', "wrapper"),
    "a template before": (lambda text: f'The form is {{"newFacts": [...]}}.\n{text}', "prose"),
    "the same twice": (lambda text: f"{text}\n\n{text}", "repeated"),
    "one brace too many": (lambda text: f"{text}\n}}", "prose"),
}  # fmt: skip


def contents(reply: ReadReply) -> list[str]:
    """The facts of a reply, with blanks as one space."""
    return [" ".join(fact.content.split()) for fact in reply.update.new_facts]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_every_form_in_every_wrapping_is_recovered(wrapping: str) -> None:
    """Both facts with their quotes, the confirmation; each repair is counted under its kind."""
    wrap, around = WRAPPINGS[wrapping]
    for form, (text, kind) in FORMS.items():
        reply = read(wrap(text))
        expected = [NUTS["content"].replace('"', "'") if form == "typographic quotes" else NUTS["content"]]
        assert contents(reply) == [PORTO["content"], *expected], form
        assert [fact.evidence[0].quote for fact in reply.update.new_facts] == [
            "I moved to Porto",
            "allergic to nuts",
        ], form
        assert [fact.confidence for fact in reply.update.new_facts] == [0.9, 0.9], form
        assert not reply.malformed, form
        assert {kind, around} - {""} <= reply.mended.keys(), (form, reply.mended)
        if "confirmedFacts" in text:
            assert [one.id for one in reply.update.confirmed_facts] == ["0000a001"], form


def test_a_whole_reply_is_not_mended() -> None:
    """Nothing is counted, and every part arrives."""
    reply = read(TEXT)
    assert (reply.mended, reply.malformed) == ({}, ())
    assert reply.update.summaries == WHOLE["summaries"]
    assert reply.update.retired_facts[0].reason == "moved"


ITEMS: dict[str, tuple[dict[str, Any], str]] = {
    "confidence above one": ({"confidence": 1.2}, "confidence"),
    "confidence of another scale": ({"confidence": 7}, "confidence"),
    "confidence in words": ({"confidence": "high"}, "confidence"),
    "confidence as a truth": ({"confidence": True}, "confidence"),
    "confidence null": ({"confidence": None}, "confidence"),
    "no number": ({"confidence": float("nan")}, "confidence"),
    "no end": ({"confidence": float("inf")}, "confidence"),
    "no days": ({"validDays": 0}, "validDays"),
    "days before": ({"validDays": -3}, "validDays"),
    "half a day": ({"validDays": 0.5}, "validDays"),
    "unknown scope": ({"scope": "world"}, "scope"),
    "no durability": ({"durability": None}, "durability"),
    "a sentence of 50 KB": ({"content": "x" * 50_000}, "content"),
    "half a character": ({"content": "\ud800"}, "content"),
    "evidence without a number": ({"evidence": [{"quote": "allergic to nuts"}]}, "evidence[0]"),
    "evidence as a bare quote": ({"evidence": ["allergic to nuts"]}, "evidence[0]"),
    "a number as quote": ({"evidence": [{"message": 0, "quote": 7}]}, "evidence[0].quote"),
    "a message before the first": ({"evidence": [{"message": -1, "quote": "allergic"}]}, "evidence[0].message"),
}


@pytest.mark.parametrize("item", ITEMS)
def test_an_item_with_more_than_one_meaning_is_refused_alone(item: str) -> None:
    """1.2 may mean "very sure" or 12 %, 0 days "no end" or "today": neither is guessed; the other fact stays."""
    fields, place = ITEMS[item]
    reply = read(nuts(**fields))
    assert contents(reply) == [PORTO["content"]]
    assert reply.malformed == (f"newFacts[1].{place}",)


def test_a_value_given_twice_has_none() -> None:
    """In an item, only that item is refused, whatever comes first; two names for one field are the same."""
    for twice in ('"scope": "user", "scope": "thread"', '"scope": "thread", "Scope": "user"'):
        text = TEXT[::-1].replace('"scope": "user"'[::-1], twice[::-1], 1)[::-1]
        assert read(text).malformed == ("newFacts[1].scope",)


def test_of_proofs_and_ids_the_bad_ones_go() -> None:
    """One good quote proves a fact; an id that is none replaces nothing; both are named."""
    reply = read(nuts(evidence=[{"message": 0, "quote": None}, *NUTS["evidence"]], replaces=[7, "0000a001"]))
    assert len(reply.update.new_facts[1].evidence) == 1
    assert reply.update.new_facts[1].replaces == ("0000a001",)
    assert reply.malformed == ("newFacts[1].evidence[0].quote", "newFacts[1].replaces[0]")


def test_a_text_with_an_unknown_escape_is_refused_alone() -> None:
    """Nobody knows what `\\d` stands for: a quote, a content or a summary that has it is no text; the others count."""
    reply = read(TEXT.replace('allergic to nuts"}', 'allergic \\d"}').replace("Lives in", "Lives \\d"))
    assert (contents(reply), reply.update.summaries) == ([PORTO["content"]], {})
    assert set(reply.malformed) == {"newFacts[1].evidence[0].quote", "summaries.personalContext"}


def test_facts_on_lines_of_their_own_are_one_update() -> None:
    """With nothing between them; with words between them they may be a draft and its revision."""
    lines = f"{json.dumps(PORTO)}\n{json.dumps(NUTS)}\n"
    for text in (lines, f"```jsonl\n{lines}```"):
        assert contents(read(text)) == [PORTO["content"], NUTS["content"]]
    with pytest.raises(BadReply, match="two_objects"):
        read(lines.replace("\n", "\nor rather\n", 1))


@pytest.mark.parametrize(
    ("given", "hide", "bad"),
    [
        ("[0, 2]", (0, 2), ()),
        ("3", (3,), ()),
        ("null", (), ()),
        ('["1", 2.0]', (1, 2), ()),
        ('[1, -1, true, "all", 100001, null]', (1,), tuple(f"hide[{n}]" for n in range(1, 6))),
    ],
)
def test_the_numbers_of_messages_to_hide_are_read(given: str, hide: tuple[int, ...], bad: tuple[str, ...]) -> None:
    """One that is no number of a message is refused alone."""
    reply = read(f'{{"newFacts": [], "hide": {given}}}')
    assert (reply.update.hide, reply.malformed) == (hide, bad)


def test_the_bounds_hold() -> None:
    """5,000 facts: 200 are read and the others counted; a summary that has no name is refused without it."""
    reply = read(without(newFacts=[PORTO] * 5_000, summaries={"shoeSize": "9", "work_context": "Nurse."}))
    assert len(reply.update.new_facts) == 200
    assert (reply.malformed, reply.over) == (("summaries.*",), 4_800)
    assert reply.update.summaries == {"workContext": "Nurse."}


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens"])
def test_a_reply_with_too_many_items_is_like_a_truncated_one(reason: str) -> None:
    """Nothing said is lost: it is asked about in halves, and its 200 facts count only where nothing can be split."""
    text = without(newFacts=[{**PORTO, "content": f"Fact {n}."} for n in range(300)])
    body = {"content": [{"type": "text", "text": text}], "stop_reason": reason}
    with pytest.raises(Truncated) as caught:
        envelope.read(json.dumps(body).encode(), "application/json", SENT)
    assert (len(caught.value.complete.new_facts), caught.value.over) == (200, 100)


REFUSED = {
    "prose": ("I found nothing worth remembering.", "no_object"),
    "a refusal": ("I cannot help with that {sorry}.", "no_update"),
    "nothing": ("", "no_object"),
    "an empty object": ("{}", "no_update"),
    "an empty list": ("[]", "no_update"),
    "another object": ('{"error": {"message": "overloaded"}}', "no_update"),
    "two different updates": (TEXT + "\n" + nuts(confidence=0.5), "two_objects"),
    "two different updates in a list": (f"[{TEXT}, {nuts(confidence=0.5)}]", "two_objects"),
    "an empty one and a full one": ('{"newFacts": []} or rather ' + TEXT, "two_objects"),
    "a fact beside an update": (json.dumps(PORTO) + '{"newFacts": []}', "two_objects"),
    "thinking without end": ("<think>" + TEXT, "unclosed_thinking"),
    "a draft before the end of thinking": (TEXT + "</think>Nothing to store.", "no_update"),
    "an unescaped quote": (TEXT.replace("I moved to Porto", 'I "moved" to Porto'), "not_json"),
    "an unescaped apostrophe": (single_quoted(WHOLE).replace("The user moved", "The user's move"), "not_json"),
    "a value missing": (TEXT.replace('"confidence": 0.9', '"confidence": '), "not_json"),
    "an ellipsis for facts": (TEXT.replace(json.dumps(NUTS), "..."), "no_update"),
    "a bare word": (TEXT.replace('"0000a001"', "abcd"), "not_json"),
    "an unknown escape in a name": (TEXT.replace('"newFacts"', '"new\\dFacts"'), "not_json"),
    "a wrong bracket": (TEXT[:-2] + "}}", "not_json"),
    "broken, then whole": (TEXT.replace("0.9", "0.9.9") + TEXT, "not_json"),
    "facts as a text": (without(newFacts="The user moved to Porto."), "wrong_type"),
    "facts under another name": (json.dumps({"summaries": {}, "facts": [PORTO]}), "unknown_part"),
    "facts twice": (TEXT[:-1] + ', "newFacts": []}', "wrong_type"),
    "no usable fact": (without(newFacts=[{**PORTO, "scope": "?"}, {"fact": "The user moved."}]), "malformed"),
    "no usable item": (json.dumps({"confirmedFacts": ["0000a001"]}), "malformed"),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_what_is_not_one_update_is_refused_whole(shape: str) -> None:
    """In every wrapping that adds no update of its own; the error holds no text of the reply."""
    text, code = REFUSED[shape]
    for wrapping in ("nothing", "a fence", "prose before", "a byte order mark", "a tag"):
        with pytest.raises(BadReply) as refused:
            read(WRAPPINGS[wrapping][0](text))
        assert refused.value.code in {code, "no_object", "no_update"} if code.startswith("no_") else {code}
        assert "Porto" not in refused.value.sentence


@pytest.mark.parametrize("wrapping", ["nothing", "a fence", "prose before", "prose behind", "the end of thinking"])
def test_an_object_of_a_message_is_a_quotation(wrapping: str) -> None:
    """A user pastes an update; a model that refuses it, or repeats it, and quotes it stores nothing of it."""
    wrap, _ = WRAPPINGS[wrapping]
    for pasted in (PRETTY, f"Please store this: {TEXT} Thanks."):
        with pytest.raises(BadReply):
            read(wrap(TEXT), [pasted])
        whole = nuts(confidence=0.5)
        assert len(read(f"Not {TEXT}, but this: {whole}", [pasted]).update.new_facts) == 2
    assert read(wrap(TEXT), ['{"newFacts": []}']).update.new_facts
    empty = '{"summaries": {}, "newFacts": []}'
    assert read(empty, [empty]).update == Update()


def test_a_reply_that_breaks_off_anywhere_gives_whole_items_or_none() -> None:
    """It is never taken for whole; asked for its complete items, it gives those and no piece of another."""
    for end in range(1, len(TEXT), 3):
        with pytest.raises(BadReply):
            read(TEXT[:end])
        try:
            reply = read("```json\n" + TEXT[:end], partial=True)
        except BadReply:  # nothing was complete
            assert end < TEXT.index(', {"content"')
            continue
        assert contents(reply) in ([], [PORTO["content"]], [PORTO["content"], NUTS["content"]])
        assert reply.update.summaries in ({}, WHOLE["summaries"])
        assert all(one.id == "0000a001" for one in reply.update.confirmed_facts)


# The envelope


def text(value: str | None) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(value: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": "update", "input": value}


def enveloped(content: list[Any], **fields: Any) -> ReadReply:
    """The reply in a response of the Messages API."""
    raw = json.dumps({"content": content, "usage": {"output_tokens": 7}, **fields}).encode()
    reply, usage = envelope.read(raw, "application/json", SENT)
    assert usage.output_tokens == 7
    return reply


THINKING = {"type": "thinking", "thinking": TEXT, "signature": ""}
END = {"stop_reason": "end_turn"}
ENVELOPES: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "thinking first": ([THINKING, text(TEXT)], END, ""),
    "empty texts": ([text(""), text(TEXT), text("\n")], END, ""),
    "a text null": ([text(None), text(TEXT)], END, ""),
    "two halves": ([text(TEXT[:300]), text(TEXT[300:])], END, "blocks"),
    "fence in blocks": ([text("```json\n"), text(TEXT), text("\n```")], END, "blocks"),
    "no stop reason": ([text(TEXT)], {}, "stop_reason"),
    "stop reason null": ([text(TEXT)], {"stop_reason": None}, "stop_reason"),
    "stop reason of another API": ([text(TEXT)], {"stop_reason": "stop"}, "stop_reason"),
    "a tool call": ([call(WHOLE)], {"stop_reason": "tool_use"}, "tool_call"),
    "a tool call with a remark": ([text("I note this."), call(WHOLE)], {"stop_reason": "tool_use"}, "tool_call"),
    "a tool call in a text": ([call({"update": TEXT})], END, "tool_call"),
    "the same in text and call": ([text(TEXT), call(WHOLE)], {"stop_reason": "tool_use"}, "tool_call"),
    "a tool call as text": ([call(f"```json\n{TEXT}\n```")], END, "tool_call"),
    "another tool beside": ([call({"query": "x"}), text(TEXT)], END, ""),
    "unknown blocks": ([{"type": "citations", "text": "x"}, text(TEXT), "stray"], END, ""),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_every_envelope_with_a_whole_update_is_an_answer(name: str) -> None:
    """Texts are joined, thinking and empty texts ignored; a tool call whose input is the update is one."""
    content, fields, kind = ENVELOPES[name]
    reply = enveloped(content, **fields)
    assert contents(reply) == [PORTO["content"], NUTS["content"]]
    assert not kind or reply.mended[kind] == 1


@pytest.mark.parametrize(
    ("content", "fields", "error", "code"),
    [
        ([text(TEXT), text('{"newFacts": []}')], END, NoUpdate, "bad_reply"),
        ([text('{"newFacts": []}'), call(WHOLE)], END, NoUpdate, "bad_reply"),
        ([call(WHOLE), call({"newFacts": []})], END, NoUpdate, "bad_reply"),
        ([call(TEXT[:-1] + ', "newFacts": []}')], END, NoUpdate, "bad_reply"),
        ([THINKING], END, NoUpdate, "bad_reply"),
        ([text(TEXT[:-9])], END, NoUpdate, "bad_reply"),
        ([text(TEXT[:-9])], {}, Truncated, "truncated"),
        ([text(TEXT[:-9])], {"stop_reason": "length"}, Truncated, "truncated"),
        ([text(TEXT)], {"stop_reason": "tool_use"}, NoUpdate, "unexpected_stop"),
        ([text(TEXT)], {"stop_reason": "content_filter"}, ContentRefused, "refusal"),
    ],
)
def test_an_envelope_without_one_whole_update_is_none(
    content: list[Any], fields: dict[str, Any], error: type[ExtractionFailed], code: str
) -> None:
    """Different updates, thinking alone, a text that breaks off: each has its failure, and its cost."""
    with pytest.raises(error) as refused:
        enveloped(content, **fields)
    assert (refused.value.code, refused.value.usage.output_tokens) == (code, 7)


def test_a_truncated_reply_brings_its_complete_items() -> None:
    """For the one case in which nothing can be split any more."""
    with pytest.raises(Truncated) as refused:
        enveloped([text(TEXT[: TEXT.index("allergic")])], stop_reason="max_tokens")
    assert isinstance(refused.value.complete, Update)
    assert [fact.content for fact in refused.value.complete.new_facts] == [PORTO["content"]]


def test_an_object_of_a_tool_call_is_read_like_a_text() -> None:
    """The OpenAI protocol carries it as text, this one as an object: the update is the same."""
    assert read_object(WHOLE).update == read(TEXT).update
    with pytest.raises(BadReply):
        read_object([WHOLE, {**WHOLE, "newFacts": []}])


def test_every_kind_of_repair_is_in_the_docs() -> None:
    """The first column of the table in docs/replies.md names the kinds that the tables above produce, and no other."""
    replies = [read(text) for text, _ in FORMS.values()] + [read(wrap(TEXT)) for wrap, _ in WRAPPINGS.values()]
    replies += [enveloped(content, **fields) for content, fields, _ in ENVELOPES.values()]
    replies += [read(json.dumps([PORTO]))]
    page = (Path(__file__).parents[2] / "docs/replies.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == {kind for reply in replies for kind in reply.mended}


def test_the_reply_in_the_docs_needs_no_mending() -> None:
    """docs/replies.md shows one whole reply."""
    page = (Path(__file__).parents[2] / "docs/replies.md").read_text(encoding="utf-8")
    shown = read(page.split("```text\n")[1].split("```")[0])
    assert (len(shown.update.new_facts), dict(shown.mended), shown.malformed) == (1, {}, ())


def test_an_answer_that_waits_for_the_store_keeps_what_was_mended() -> None:
    """It is counted when it is stored, as the answer of a call is; one that an older version kept has no form."""
    given = Extraction(read(TEXT).update, Usage(), "model", "1", {"fence": 1}, ("newFacts[2]",))
    kept = results.keep(given, SENT)
    assert results.kept(kept, SENT) == given
    older = PaidAnswer(kept.fingerprint, json.dumps({"kind": "kept", "body": {}}).encode())
    assert results.kept(older, SENT) == Extraction(Update(), Usage(), "model", "1")


HOSTILE = (
    "{", "[", '{"a":', "[{", "{a", "{a/*", "```json\n", '"', "<think>", "</think>", '{"a":1}', "{},", '{"a":1,', "{ ",
    " ", "[{'", "\\", '{"\\', "{“", "`", "1,", "[1,", "//", "/*", "*", "{'a':", "\\u00", "e1", "-", ".", "0", "，",
    "\ufeff", "~~~\n", '{\\"', "<|channel|>final<|message|>", '{"newFacts":[]}', '{"a":[],', '"a",', "{}", "[THINK]",
    '{"update":',
)  # fmt: skip


def look_at(text: str) -> None:
    """Read a text that is hardly ever an update."""
    with suppress(BadReply):
        read(text)


@pytest.mark.parametrize("begin", ["", '{"newFacts":[', "prose ```json\n", '{"a":"'])
def test_hostile_replies_take_linear_time(begin: str) -> None:
    """25,000 characters of any piece cost some ten times what 2,500 do."""
    slow = {piece: times for piece in HOSTILE if (times := ratio(lambda text: look_at(begin + text), piece)) > LIMIT}
    assert not slow
