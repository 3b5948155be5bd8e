"""The update an extractor returns: its types, their bounds, and the JSON schema sent to a model.

One set of Structs serves for all of them. The bounds only keep a runaway reply out; `memory.apply` decides which facts
are stored. `reply` makes an update of a model's text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct, field
from msgspec.json import schema

from memd.memory.document import SECTIONS

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Line = Annotated[str, Meta(max_length=500)]
Text = Annotated[str, Meta(max_length=10_000)]
Days = Annotated[int, Meta(ge=1, le=36_500)]
Number = Annotated[int, Meta(ge=0, le=100_000)]
"""The number of a message among those sent."""

REQUIRED = ("summaries", "newFacts", "confirmedFacts", "retiredFacts")
"""The parts that a model is asked for in every reply."""

AFFECTED = "affected"
"""Asked for before all parts, and read by nobody: a model that has first looked up which facts the messages bear on
leaves fewer of them standing beside what takes their place (evaluation/README.md, "Looked up first")."""


class UpdatePart(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Part of an update: camelCase in JSON, without unknown fields or conversions between types."""


class Evidence(UpdatePart, frozen=True):
    """A passage that proves a fact: `quote` is verbatim from message number `message` of those sent."""

    message: Number
    quote: Text


class Subject(UpdatePart, frozen=True):
    """The person a fact is about, if not the user, and their relationship to the user."""

    person: Line
    relationship: Line


class NewFact(UpdatePart, frozen=True):
    """One sentence worth remembering, with everything the gates need to judge it.

    `sensitive`: more private than an assistant needs; a model is asked for it only where `apply.sensitive` acts on it.
    """

    content: Text
    category: Annotated[str, Meta(max_length=64)]
    confidence: Annotated[float, Meta(ge=0, le=1)]
    scope: Literal["user", "thread", "project"]
    durability: Literal["durable", "temporary"]
    authority: Literal["descriptive", "transactional"]
    evidence: Annotated[tuple[Evidence, ...], Meta(max_length=20)]
    valid_days: Days | None = None
    source_error: Text | None = None
    subject: Subject | None = None
    backstory: Text | None = None
    replaces: Annotated[tuple[Id, ...], Meta(max_length=50)] = ()
    sensitive: bool = False


class ConfirmedFact(UpdatePart, frozen=True):
    """A fact of the document that the user stated again."""

    id: Id
    quote: Text


class RetiredFact(UpdatePart, frozen=True):
    """A fact of the document that no longer holds and that nothing replaces."""

    id: Id
    reason: Line
    quote: Text


class ForgottenFact(UpdatePart, frozen=True):
    """A fact of the document that the user asks to forget; `quote` is from the wish."""

    id: Id
    quote: Text


class ReviewedFact(UpdatePart, frozen=True):
    """The verdict on a fact that was offered for review; `extend` lets it hold for `valid_days` more."""

    id: Id
    verdict: Literal["keep", "extend", "retire"]
    valid_days: Days | None = None


class MergedFact(UpdatePart, frozen=True):
    """One sentence in place of several overlapping facts of a category; `sources` are the ids of those facts."""

    content: Text
    sources: Annotated[tuple[Id, ...], Meta(max_length=50)]


class ProfileItem(UpdatePart, frozen=True):
    """One field of the user's profile; `facts` are the ids that it rests on. Items of lists are parted by ";"."""

    field: Line
    value: Text
    facts: Annotated[tuple[Id, ...], Meta(max_length=50)] = ()


class Update(UpdatePart, frozen=True):
    """Everything one extraction wants changed; `summaries` holds the new text of each summary that changes.

    At most 200 new facts: a claim contains far fewer statements, so more of them are a fault.
    """

    summaries: Mapping[str, Text] = field(default_factory=dict)
    new_facts: Annotated[tuple[NewFact, ...], Meta(max_length=200)] = ()
    confirmed_facts: Annotated[tuple[ConfirmedFact, ...], Meta(max_length=500)] = ()
    retired_facts: Annotated[tuple[RetiredFact, ...], Meta(max_length=500)] = ()
    forgotten_facts: Annotated[tuple[ForgottenFact, ...], Meta(max_length=500)] = ()
    reviewed_facts: Annotated[tuple[ReviewedFact, ...], Meta(max_length=500)] = ()
    merged_facts: Annotated[tuple[MergedFact, ...], Meta(max_length=50)] = ()
    hide: Annotated[tuple[Number, ...], Meta(max_length=5_000)] = ()
    """Numbers of messages of which no sentence may be shown later as what the user said."""

    profile: Annotated[tuple[ProfileItem, ...], Meta(max_length=50)] = ()


_SENTENCES = {
    "no_object": "it holds no JSON object",
    "no_update": "its JSON names no part of an update",
    "not_json": "it is not valid JSON",
    "incomplete": "its JSON breaks off",
    "too_deep": "its JSON is nested too deep, or has too many values",
    "too_many_objects": "it holds too many braces",
    "two_objects": "it holds two different updates",
    "unclosed_thinking": "its thinking never ends",
    "unknown_part": "it has facts in a part that the schema does not have",
    "wrong_type": "a part has the wrong type, or occurs twice with different content",
    "malformed": "no item has the form that the schema asks for",
}


class BadReply(ValueError):
    """The text is not one update: `code` names the failed check, `field` the place in the update where it failed.

    Neither contains text of the reply, and nor does `sentence`, which says both in words.
    """

    def __init__(self, code: str, field: str = "") -> None:
        self.code = code
        self.field = field
        self.sentence = _SENTENCES[code] + (f" (at {field})" if field else "")
        super().__init__(code)


class Extras(NamedTuple):
    """What some requests ask for beyond what every request asks.

    `sensitive`: new facts are to be labelled so. `projects`: messages are marked for a project. `profile`: the user's
    profile is asked for.
    """

    sensitive: bool = False
    projects: bool = False
    profile: bool = False


PLAIN = Extras()


@cache  # making it costs as much as a call of the SDK
def json_schema(extras: Extras = PLAIN) -> dict[str, Any]:
    """The schema for the API: structure only. `reply` checks the bounds, which the API does not enforce.

    `extras`: the labels and parts that it has besides. The same object each time: nobody may change it.
    """
    full = schema(Update)
    result: dict[str, Any] = _structure(full, full["$defs"])
    result["required"] = [AFFECTED, *REQUIRED]
    result["properties"] = {AFFECTED: {"type": "array", "items": {"type": "string"}}, **result["properties"]}
    summaries = {name: {"type": "string"} for name in SECTIONS}  # a Struct would be closed by itself, a mapping is not
    if not extras.profile:
        del result["properties"]["profile"]
    if not extras.sensitive:
        del result["properties"]["newFacts"]["items"]["properties"]["sensitive"]
    result["properties"]["summaries"] = {"type": "object", "properties": summaries, "additionalProperties": False}
    return result


_KEPT = {"type", "properties", "required", "additionalProperties", "items", "enum"}


def _structure(node: Any, parts: dict[str, Any]) -> Any:
    """The structure alone, with each part in its place, which is shorter than names and references to them."""
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _structure(parts[node["$ref"].rpartition("/")[2]], parts)
    if "anyOf" in node:  # null is accepted but not offered: union types slow the model's decoding down
        return _structure(next(option for option in node["anyOf"] if option != {"type": "null"}), parts)
    return {
        key: {name: _structure(inner, parts) for name, inner in value.items()}
        if key == "properties"
        else _structure(value, parts)
        for key, value in node.items()
        if key in _KEPT
    }
