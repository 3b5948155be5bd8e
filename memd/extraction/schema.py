"""The update's wire schema: what a model may answer, checked strictly, taken whole or not at all.

Bounds here only keep a runaway reply out; whether a fact is worth storing is decided by `memory.apply`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic.alias_generators import to_camel

from memd.extraction import strict
from memd.extraction.update import (
    ConfirmedFact,
    Evidence,
    MergedFact,
    NewFact,
    RetiredFact,
    ReviewedFact,
    Subject,
    Update,
)

Id = Annotated[str, Field(min_length=1, max_length=128)]
Line = Annotated[str, Field(max_length=500)]
Text = Annotated[str, Field(max_length=10_000)]
# Absent and null mean the same when read; the schema sent offers only absence, as union types slow decoding down.
OptionalLine = Annotated[Line | None, WithJsonSchema({"type": "string"})]
OptionalText = Annotated[Text | None, WithJsonSchema({"type": "string"})]
Days = Annotated[int, Field(ge=1, le=36_500)]


class Wire(BaseModel):
    """A part of the reply: camelCase, nothing unknown, no conversions between types."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, allow_inf_nan=False)


class WireEvidence(Wire):
    message: Annotated[int, Field(ge=0, le=100_000)]
    quote: Text


class WireSubject(Wire):
    person: Line
    relationship: Line


class WireNewFact(Wire):
    content: Text
    category: Annotated[str, Field(max_length=64)]
    confidence: Annotated[float, Field(ge=0, le=1)]
    scope: Literal["user", "thread", "project"]
    durability: Literal["durable", "temporary"]
    authority: Literal["descriptive", "transactional"]
    evidence: Annotated[list[WireEvidence], Field(max_length=20)]
    valid_days: Annotated[Days | None, WithJsonSchema({"type": "integer"})] = None
    source_error: OptionalText = None
    subject: Annotated[WireSubject | None, WithJsonSchema(WireSubject.model_json_schema())] = None
    backstory: OptionalText = None
    replaces: Annotated[list[Id], Field(max_length=50)] = []


class WireConfirmedFact(Wire):
    id: Id
    quote: Text


class WireRetiredFact(Wire):
    id: Id
    reason: Line
    quote: Text


class WireReviewedFact(Wire):
    id: Id
    verdict: Literal["keep", "extend", "retire"]
    valid_days: Annotated[Days | None, WithJsonSchema({"type": "integer"})] = None


class WireMergedFact(Wire):
    content: Text
    sources: Annotated[list[Id], Field(max_length=50)]


class WireSummaries(Wire):
    work_context: OptionalText = None
    personal_context: OptionalText = None
    top_of_mind: OptionalText = None
    recent_months: OptionalText = None
    earlier_context: OptionalText = None
    long_term_background: OptionalText = None


class WireUpdate(Wire):
    """At most 200 new facts: a claim holds far fewer statements, and 5,000 of them are a fault."""

    summaries: WireSummaries
    new_facts: Annotated[list[WireNewFact], Field(max_length=200)]
    confirmed_facts: Annotated[list[WireConfirmedFact], Field(max_length=500)]
    retired_facts: Annotated[list[WireRetiredFact], Field(max_length=500)]
    reviewed_facts: Annotated[list[WireReviewedFact], Field(max_length=500)] = []
    merged_facts: Annotated[list[WireMergedFact], Field(max_length=50)] = []


class BadReply(ValueError):
    """The text is not one update: `code` says which check it failed, `field` where; never what stood there."""

    def __init__(self, code: str, field: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.field = field


def parse_update(text: str) -> Update:
    """The update a reply holds, from its first byte to its last. Raises BadReply."""
    try:
        value = strict.loads(text)
    except ValueError:
        raise BadReply("not_json") from None
    try:
        wire = WireUpdate.model_validate(value)
    except ValidationError as error:
        place = error.errors(include_input=False, include_url=False, include_context=False)[0]
        known = "" if place["type"] == "extra_forbidden" else str(place["loc"][0]) if place["loc"] else ""
        raise BadReply("wrong_schema", known) from None
    return _to_update(wire)


def json_schema() -> dict[str, Any]:
    """The schema as the API wants it: only structure; bounds are checked here, as the API does not enforce them."""
    full = WireUpdate.model_json_schema(by_alias=True)
    schema: dict[str, Any] = _slim(full, full["$defs"])
    return schema


_KEPT = {"type", "properties", "required", "additionalProperties", "items", "enum"}


def _slim(node: Any, parts: dict[str, Any]) -> Any:
    """Structure alone, each part in its place: shorter than names and references to them."""
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _slim(parts[node["$ref"].rpartition("/")[2]], parts)
    kept = {key: value for key, value in node.items() if key in _KEPT}
    return {
        key: {name: _slim(inner, parts) for name, inner in value.items()}
        if key == "properties"
        else _slim(value, parts)
        for key, value in kept.items()
        if not (key == "type" and "enum" in node)
    }


def _to_update(wire: WireUpdate) -> Update:
    summaries = wire.summaries.model_dump(by_alias=True, exclude_none=True)
    return Update(
        summaries={name: text for name, text in summaries.items() if text.strip()},
        new_facts=tuple(map(_to_fact, wire.new_facts)),
        confirmed_facts=tuple(ConfirmedFact(fact.id, fact.quote) for fact in wire.confirmed_facts),
        retired_facts=tuple(RetiredFact(fact.id, fact.reason, fact.quote) for fact in wire.retired_facts),
        reviewed_facts=tuple(ReviewedFact(fact.id, fact.verdict, fact.valid_days) for fact in wire.reviewed_facts),
        merged_facts=tuple(MergedFact(fact.content, tuple(fact.sources)) for fact in wire.merged_facts),
    )


def _to_fact(wire: WireNewFact) -> NewFact:
    return NewFact(
        content=wire.content,
        category=wire.category,
        confidence=wire.confidence,
        scope=wire.scope,
        durability=wire.durability,
        authority=wire.authority,
        evidence=tuple(Evidence(piece.message, piece.quote) for piece in wire.evidence),
        valid_days=wire.valid_days,
        source_error=wire.source_error,
        subject=Subject(wire.subject.person, wire.subject.relationship) if wire.subject else None,
        backstory=wire.backstory,
        replaces=tuple(wire.replaces),
    )
