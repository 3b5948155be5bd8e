"""The fields of queries and bodies of operations for admins: dead letters, import, audit; and the period of costs."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from memd.http.fields import AgentName, Fields, NoFields, OneMemory, Rows, UserId, from_query
from memd.http.openapi_schemas import EXPORT
from memd.http.paging import PlaceCursor
from memd.inbox.cost import MOST_DAYS
from memd.inbox.dead import MAX_LIMIT
from memd.memory.hand.formats import Format
from memd.ops.audit.rules import RULES

IMPORT_BYTES = 8 * 1024 * 1024
"""Bytes of a body with an import. `memd import` reads larger ones."""

LETTER_ID_SCHEMA = {"type": "string", "pattern": "^[0-9A-Za-z-]{1,100}$"}

_ITEMS = {"type": "array", "items": {"type": "object", "properties": {"memory": {"type": "string"}}}}
_EXPORT = {
    "anyOf": [
        EXPORT,
        {
            "type": "object",
            "title": "MemoryOfDeerFlow",
            "required": ["facts"],
            "properties": {"facts": {"type": "array"}},
        },
        {"type": "object", "title": "MemoriesOfMem0", "required": ["results"], "properties": {"results": _ITEMS}},
        _ITEMS,
    ]
}

RuleName = Annotated[
    str,
    Field(
        pattern=f"^({'|'.join(RULES)})$",
        description="Only findings of this rule.",
        json_schema_extra={"enum": list(RULES)},
    ),
]
Code = Annotated[str, Field(max_length=100, description="Letters with this code.")]
OfUser = Annotated[UserId, Field(description="Letters of this user; without it, of all users that the token names.")]


class DeadQuery(Fields, title="DeadLetters"):
    """A page of dead letters."""

    user_id: OfUser | None = None
    code: Code | None = None
    after: PlaceCursor = ""
    limit: Annotated[
        int,
        Field(ge=1, le=MAX_LIMIT, description="Letters of a page, at most."),
        BeforeValidator(partial(from_query, kind=int)),
    ] = 100


class DeadChoice(Fields, title="ChosenLetters"):
    """The dead letters to retry or to drop: those that every field given selects."""

    model_config = ConfigDict(
        **Fields.model_config,
        json_schema_extra={
            "anyOf": [
                {"required": ["ids"], "properties": {"ids": {"minItems": 1}}},
                {"required": ["code"], "properties": {"code": {"type": "string", "minLength": 1}}},
                {"required": ["user_id"], "properties": {"user_id": {"type": "string"}}},
                {"required": ["every"], "properties": {"every": {"const": True}}},
            ]
        },
    )

    ids: list[Annotated[str, Field(pattern=LETTER_ID_SCHEMA["pattern"])]] = Field(
        [], max_length=MAX_LIMIT, description="Letters with these ids; unknown ones are passed over."
    )
    code: Code | None = None
    user_id: OfUser | None = None
    every: bool = Field(False, description="All letters that the token names, where no other field selects any.")


class ImportBody(Fields, title="Import"):
    """An export to merge into a user's memories."""

    max_bytes: ClassVar[int] = IMPORT_BYTES

    user_id: UserId
    agent_name: AgentName | None = Field(None, description="Import into the memory of this agent.")
    format: Literal["auto", Format] = Field("auto", description="auto: told by the document's form.")
    best: bool = Field(
        False, description="Of more facts than `apply.max_facts` has room for, import the best; else 422 E_IMPORT_FULL."
    )
    conversations: bool = Field(True, description="Push the conversations of a chat export, too.")
    dry_run: bool = Field(False, description="Report what would be imported, and change nothing.")
    document: Annotated[Any, WithJsonSchema(_EXPORT)] = Field(
        description="The output of export, or what another system exports, unchanged: docs/moving.md lists them."
    )


class AuditQuery(OneMemory, title="Audit"):
    """A memory to audit, and the findings to return."""

    rule: RuleName | None = None
    after: PlaceCursor = ""
    limit: Rows = 200


class CostQuery(NoFields, title="Days"):
    """The days to count."""

    days: Annotated[
        int,
        Field(ge=0, le=MOST_DAYS, description="Also each of the last days, today included."),
        BeforeValidator(partial(from_query, kind=int)),
    ] = 0
