"""The fields of queries and bodies: pydantic checks them, and the OpenAPI document has the same models.

Everything is strict: unknown fields, fields given twice, and numbers written as text in JSON are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import parse_qsl

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)

from memd.context import DEFAULT_AGENT
from memd.errors import Rejected
from memd.http.paging import PlaceCursor
from memd.identifiers import MAX_ID_BYTES, check_identifier
from memd.inbox.keys import MAX_LIMIT as MAX_ROWS
from memd.inbox.keys import SOURCES
from memd.memory.facts import ScopeKind
from memd.memory.listing import SCOPE_NAMES, By, ListFilters
from memd.memory.profiles import MOST_ITEMS, USER_FIELDS, ProfileField
from memd.push.strict_json import parse_json
from memd.recall.search import MAX_LIMIT, MAX_QUERY_CHARS, check_query

MAX_BODY_BYTES = 1024 * 1024
"""Bytes of a body other than a push: room for a query of 100,000 escaped characters, which is then refused by name."""


MAX_QUERY_FIELDS = 32
MAX_TOKENS = 100_000
PENDING = "Include messages from which no facts have been extracted yet."
MEMBER = "Only facts that this user brought into a project."
SINCE = "Only facts of this time or later; `by` says which time."
UNTIL = "Only facts before this time."
BY = "The time of a fact that `since` and `until` mean. learned: it was added or last changed."
OWN_THREAD = "The conversation that asks: its own facts are shown too, and its last turns give no excerpts."
OWN_PROJECT = "A project: what its members share is shown too, if the user is one, and what the user alone knows of it."

ID_PATTERN = (
    r"^[^\s\u0000-\u001f\u007f-\u009f]([^\u0000-\u001f\u007f-\u009f\u2028\u2029]*[^\s\u0000-\u001f\u007f-\u009f])?$"
)
ID_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_ID_BYTES,
    "pattern": ID_PATTERN,
    "format": "memd-id",
    "description": f"Opaque; 1 to {MAX_ID_BYTES} bytes of UTF-8, without control, bidi, tag or non-characters.",
}
_MOMENT = re.compile(
    r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?)?$"
)
_SNAKE = re.compile(r"([A-Z])")
_INTEGER = re.compile(r"-?[0-9]{1,15}")


def _agent(value: object) -> str:
    return DEFAULT_AGENT if value == "" else check_identifier("agent_name", value)


_EMPTY = {"type": "string", "maxLength": 0}
UserId = Annotated[str, PlainValidator(partial(check_identifier, "user_id")), WithJsonSchema(ID_SCHEMA)]
ThreadId = Annotated[str, PlainValidator(partial(check_identifier, "thread_id")), WithJsonSchema(ID_SCHEMA)]
ProjectId = Annotated[str, PlainValidator(partial(check_identifier, "project_id")), WithJsonSchema(ID_SCHEMA)]
RECEIPT_SCHEMA = {"type": "string", "pattern": r"^[0-9a-f]{32}\.[0-9a-f]{8}\.[1-9][0-9]{0,15}$"}
FACT_ID_SCHEMA = {"type": "string", "minLength": 1}
AgentName = Annotated[
    str,
    PlainValidator(_agent),
    WithJsonSchema({
        "anyOf": [ID_SCHEMA, _EMPTY],
        "description": "The agent whose memory of the user is meant; empty: the memory that is no agent's own.",
    }),
]  # fmt: skip


def _moment(value: object, info: ValidationInfo) -> str:
    field = info.field_name or ""
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise Rejected("E_TIME", "write a time as 2026-11-21 or 2026-11-21T09:30:00Z", field)
    try:
        datetime.fromisoformat(value)
    except ValueError:  # such as 30 February
        raise Rejected("E_TIME", "this date or time does not exist", field) from None
    return value


Query = Annotated[
    str,
    PlainValidator(check_query),
    WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS, "pattern": r"[^\s\u001c-\u001f\u0085]"}
    ),
]
Moment = Annotated[
    str, PlainValidator(_moment), WithJsonSchema({"type": "string", "pattern": _MOMENT.pattern, "format": "memd-time"})
]
PastMoment = Annotated[
    str,
    PlainValidator(_moment),
    WithJsonSchema({"type": "string", "pattern": _MOMENT.pattern, "format": "memd-past-time"}),
]
Content = Annotated[
    str,
    WithJsonSchema({"type": "string", "format": "memd-fact", "description": "What is to be remembered: one sentence."}),
]
"""memory/gates checks it."""


def _ways(names: Iterable[str]) -> list[str]:
    """The names of profile fields in either way of writing them."""
    return [*dict.fromkeys(way for name in names for way in (_SNAKE.sub(r"_\1", name).lower(), name))]


def names_schema(table: Mapping[str, ProfileField]) -> dict[str, Any]:
    """The schema of a profile field's name; `memory.profiles` checks it."""
    return {"type": "string", "enum": _ways(table), "description": "The name of a field, in either way of writing it."}


def values_schema(table: Mapping[str, ProfileField]) -> dict[str, Any]:
    """Which field takes which value: one alternative for each."""
    text: dict[str, Any] = {"type": "string", "format": "memd-fact"}
    values: dict[str, dict[str, Any]] = {
        "text": text,
        "tag": {"type": "string", "enum": ["en", "zh-CN", "ja"]},
        "list": {"type": "array", "items": text, "minItems": 1, "maxItems": MOST_ITEMS},
    }
    fields = table.items()
    return {
        "oneOf": [
            {
                "properties": {
                    "field": {"enum": _ways([name])},
                    "value": {"enum": list(one.choices)} if one.kind == "choice" else values[one.kind],
                }
            }
            for name, one in fields
        ]
    }


ProfileName = Annotated[str, WithJsonSchema(names_schema(USER_FIELDS))]
Category = Annotated[
    str,
    WithJsonSchema({
        "type": "string", "format": "memd-category", "description": "One of `apply.categories`; aliases count.",
    }),
]  # fmt: skip


def from_query(value: Any, *, kind: type) -> Any:
    """An integer or boolean as queries write it; anything else stays text, which its field then refuses."""
    if kind is int and isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if kind is bool and value in ("true", "false"):
        return value == "true"
    return value


def _integer(value: Any) -> Any:
    """JSON may write an integer as 10.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integer = Annotated[int, BeforeValidator(_integer)]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS, description="Budget of the block, in estimated tokens.")]
Bool = Annotated[bool, BeforeValidator(partial(from_query, kind=bool))]
Rows = Annotated[
    int,
    Field(ge=1, le=MAX_ROWS, description="Rows of a page, at most."),
    BeforeValidator(partial(from_query, kind=int)),
]
_NEXT = "`next` of the page before; empty for the first."
UserCursor = Annotated[
    str, Field(description=_NEXT, max_length=MAX_ID_BYTES + 32, pattern=r"^(-?[0-9]{1,24}:[^\u0000-\u001f]+)?$")
]
KeyCursor = Annotated[str, Field(description=_NEXT, pattern=rf"^(({'|'.join(SOURCES)}):[0-9]{{1,15}})?$")]


class Fields(BaseModel):
    """The fields of a query or of a body."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_bytes: ClassVar[int] = MAX_BODY_BYTES
    """Bytes that a body with these fields may have."""

    @property
    def user(self) -> str | None:
        """The user that the request names; None: all users."""
        user_id: str | None = getattr(self, "user_id")  # noqa: B009  (each subclass declares it, or overrides this)
        return user_id


class NoFields(Fields):
    """No fields."""

    @property
    def user(self) -> str | None:
        return ""


class OneMemory(Fields):
    """A user's memory, or one agent's memory of that user."""

    user_id: UserId
    agent_name: AgentName = DEFAULT_AGENT


class ReceiptQuery(Fields):
    """The user of the push."""

    user_id: UserId


class ThreadQuery(OneMemory, title="MemoryOfThread"):
    """One memory, as a conversation sees it."""

    thread_id: ThreadId | None = Field(None, description="A conversation, whose own facts are among the others.")
    at: PastMoment | None = Field(None, description="The memory as it was believed then; a day means its first moment.")


class FactsQuery(OneMemory, title="FactList"):
    """The facts to list."""

    category: str | None = Field(None, max_length=100, description="Only facts of this category; aliases count.")
    scope: ScopeKind | None = Field(None, description="Only facts of this scope.")
    status: Literal["active", "superseded", "archived", "all"] = Field(
        "active", description="superseded: archived for another fact in its place. archived: for any other reason."
    )
    member: UserId | None = Field(None, description=MEMBER)
    since: Moment | None = Field(None, description=SINCE)
    until: Moment | None = Field(None, description=UNTIL)
    by: By = Field("learned", description=BY)
    thread_id: ThreadId | None = Field(None, description="A conversation, whose own facts are listed, too.")
    project_id: ProjectId | None = Field(None, description="A project: what the user alone knows of it is listed, too.")
    after: PlaceCursor = ""
    limit: Rows = MAX_ROWS

    @property
    def filters(self) -> ListFilters:
        """The filters, as the library takes them."""
        return ListFilters(
            categories=() if self.category is None else (self.category,),
            scopes=() if self.scope is None else (self.scope,),
            status=self.status,
            member=self.member,
            since=self.since,
            until=self.until,
            by=self.by,
        )


class UsersQuery(NoFields):
    """A page of users."""

    by: Literal["id", "changed"] = Field("id", description="changed: the user that changed last comes first.")
    find: str = Field("", max_length=MAX_ID_BYTES, description="Only users whose id has this text in it, in any case.")
    after: UserCursor = ""
    limit: Rows = 100


class PendingQuery(Fields):
    """A page of a user's keys."""

    user_id: UserId
    after: KeyCursor = ""
    limit: Rows = 100


class FlushBody(Fields, title="Flush"):
    """The keys to make due now; without any field, all keys."""

    user_id: UserId | None = None
    agent_name: AgentName | None = None
    thread_id: ThreadId | None = None
    wait: bool = Field(False, description="Respond when every push accepted before has ended.")
    timeout_s: float = Field(
        20, ge=0, le=20, description="Wait at most this many seconds; capped by the server's `http.request_timeout_s`."
    )


class InjectQuery(OneMemory):
    """A memory block for a prompt."""

    max_tokens: Annotated[Tokens, BeforeValidator(partial(from_query, kind=int))] | None = None
    query: Query | None = Field(None, description="Facts that match this text come first.")
    thread_id: ThreadId | None = Field(None, description=OWN_THREAD)
    project_id: ProjectId | None = Field(None, description=OWN_PROJECT)
    include_pending: Bool = Field(False, description=PENDING)


class Inject(OneMemory):
    """The fields of `InjectQuery` in a body, for queries that should not appear in a URL."""

    max_tokens: Annotated[Tokens, BeforeValidator(_integer)] | None = None
    query: Query | None = Field(None, description="Facts that match this text come first.")
    thread_id: ThreadId | None = Field(None, description=OWN_THREAD)
    project_id: ProjectId | None = Field(None, description=OWN_PROJECT)
    include_pending: bool = Field(False, description=PENDING)


class SearchBody(OneMemory, title="Search"):
    """A search."""

    query: Query = Field(description="Words or a question. One that is nothing but a period brings what was said then.")
    limit: Integer = Field(10, ge=1, le=MAX_LIMIT, description="Return at most this many facts.")
    categories: list[str] = Field([], max_length=100, description="Only facts of these categories; aliases count.")
    scopes: list[ScopeKind] = Field([], max_length=len(SCOPE_NAMES), description="Only facts of these scopes.")
    member: UserId | None = Field(None, description=MEMBER)
    since: Moment | None = Field(None, description=SINCE)
    until: Moment | None = Field(None, description=UNTIL)
    by: By = Field("learned", description=BY)
    thread_id: ThreadId | None = Field(None, description=OWN_THREAD)
    project_id: ProjectId | None = Field(None, description=OWN_PROJECT)
    include_pending: bool = Field(False, description=PENDING)
    explain: bool = Field(False, description="Include the factors of each score.")


class AddFact(OneMemory, title="NewFact"):
    """A fact to add by hand."""

    content: Content
    category: Category | None = None


NoteCategory = Annotated[
    str,
    WithJsonSchema({
        "type": "string", "format": "memd-category", "not": {"const": "correction"},
        "description": "One of `apply.categories`, and no correction, which only the user can make; aliases count.",
    }),
]  # fmt: skip


class AddNote(OneMemory, title="NewNote"):
    """A fact to add in the name of an agent."""

    content: Content
    category: NoteCategory | None = None


class FactEdit(OneMemory):
    """The new content or category of a fact."""

    content: Content | None = None
    category: Category | None = None


class ProfileSet(OneMemory):
    """A field of a profile to set by hand."""

    model_config = ConfigDict(**Fields.model_config, json_schema_extra=values_schema(USER_FIELDS))

    field: ProfileName = Field(description="docs/editing.md says what each takes.")
    value: str | list[str] = Field(description="A text; a list of texts where the field is a list.")


class ProfileUnset(OneMemory):
    """A field of a profile to take out."""

    field: ProfileName


class Approval(OneMemory):
    """The memory of a doubtful fact that becomes a fact."""

    anyway: bool = Field(False, description="Also where something else was said later, or its time is over.")


class Decision(OneMemory):
    """The memory of a doubtful fact that is dropped."""


class Export(Fields):
    """The user whose memories are exported."""

    user_id: UserId
    agent_name: AgentName | None = Field(None, description="Only this agent's memory; every agent's when absent.")


class Forget(Fields):
    """The user to forget."""

    user_id: UserId
    agent_name: AgentName | None = Field(None, description="Only this agent's memory of the user.")
    dry_run: bool = Field(False, description="Report what would be removed, and remove nothing.")


def parse_query(model: type[Fields], raw: bytes) -> Fields:
    """The fields of a query string. Raises Rejected."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS)
    except UnicodeDecodeError:
        raise Rejected("E_UTF8", "the query must be percent-encoded UTF-8") from None
    except ValueError:
        raise Rejected("E_QUERY", "the query has too many fields", limit=MAX_QUERY_FIELDS) from None
    values = dict(pairs)
    if len(values) < len(pairs):
        raise Rejected("E_QUERY", "the query gives a field twice")
    return _checked(model, values)


def parse_body(model: type[Fields], raw: bytes) -> Fields:
    """The fields of a JSON body. Raises Rejected."""
    return _checked(model, parse_json(raw))


def _checked(model: type[Fields], value: Any) -> Fields:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> Rejected:
    """The first error. pydantic's messages name types, limits and our own field names, never the value."""
    first = error.errors(include_input=False, include_url=False)[0]
    if first["type"] == "extra_forbidden":
        return Rejected("E_UNKNOWN_FIELD", "unknown field; see /openapi.json for the fields of this request")
    field = str(first["loc"][0]) if first["loc"] else ""
    if not field:
        return Rejected("E_BODY", "the body must be a JSON object")
    if first["type"] == "missing":
        return Rejected(f"E_{field.upper()}_MISSING", f"{field} is required", field)
    limits = [value for value in first.get("ctx", {}).values() if type(value) in (int, float)]
    words = first["msg"]
    sentence = f"{field}: {words[:1].lower()}{words[1:]}"
    return Rejected(f"E_{field.upper()}", sentence, field, limits[0] if limits else None)
