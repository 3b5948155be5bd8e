"""What requests carry: the fields of queries and bodies, checked by pydantic, said in the OpenAPI document as they are.

Everything is strict: an unknown field, a field named twice and a number written as text in JSON are refused.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema

from memd.context import DEFAULT_AGENT
from memd.errors import Rejected
from memd.push.validation import MAX_ID_BYTES, check_identifier, parse_json
from memd.recall.search import MAX_LIMIT, MAX_QUERY_CHARS, check_query

MAX_BODY_BYTES = 1024 * 1024
"""Bytes of a body that is no push; a query of 100,000 characters is told that it is too long, however it is escaped."""

MAX_THREAD_BYTES = MAX_ID_BYTES - 65
"""Bytes of a thread id that comes with a token: the app's name, of 64 at most, and a slash go before it."""

MAX_QUERY_FIELDS = 32
MAX_TOKENS = 100_000
PENDING = "Also what was said and not looked at yet."

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
_INTEGER = re.compile(r"-?[0-9]{1,15}")


def _agent(value: object) -> str:
    return DEFAULT_AGENT if value == "" else check_identifier("agent_name", value)


_EMPTY = {"type": "string", "maxLength": 0}
UserId = Annotated[str, PlainValidator(partial(check_identifier, "user_id")), WithJsonSchema(ID_SCHEMA)]
ThreadId = Annotated[str, PlainValidator(partial(check_identifier, "thread_id")), WithJsonSchema(ID_SCHEMA)]
RECEIPT_SCHEMA = {"type": "string", "pattern": r"^[0-9a-f]{32}\.[0-9a-f]{8}\.[1-9][0-9]{0,15}$"}
FACT_ID_SCHEMA = {"type": "string", "minLength": 1}
AgentName = Annotated[str, PlainValidator(_agent), WithJsonSchema({"anyOf": [ID_SCHEMA, _EMPTY]})]


def _moment(value: object) -> str:
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise Rejected("E_TIME", "a time is written 2026-11-21 or 2026-11-21T09:30:00Z")
    try:
        datetime.fromisoformat(value)
    except ValueError:  # the thirtieth of February, or the like
        raise Rejected("E_TIME", "there is no such time") from None
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
Content = Annotated[str, WithJsonSchema({"type": "string", "format": "memd-fact"})]
"""One sentence; the gates of `apply` judge it."""

Category = Annotated[str, WithJsonSchema({"type": "string", "format": "memd-category"})]


def _spelled(value: Any, *, kind: type) -> Any:
    """A number or truth value as queries spell it; anything else stays text, which its field then refuses."""
    if kind is int and isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if kind is bool and value in ("true", "false"):
        return value == "true"
    return value


def _whole(value: Any) -> Any:
    """A number as JSON may write it: 10.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS, description="Budget of the block, estimated.")]
Bool = Annotated[bool, BeforeValidator(partial(_spelled, kind=bool))]


class Input(BaseModel):
    """The fields of a query or of a body."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @property
    def whose(self) -> str | None:
        """The user that the request names; None names all of them."""
        user_id: str | None = getattr(self, "user_id")  # noqa: B009  (each kind of input declares it, or asks for all)
        return user_id


class Nothing(Input):
    """No fields."""

    @property
    def whose(self) -> str | None:
        return ""


class Whose(Input):
    """A user's memory, or that of one agent about them."""

    user_id: UserId
    agent_name: AgentName = DEFAULT_AGENT


class ReceiptQuery(Input):
    """Whose push it was."""

    user_id: UserId


class Flush(Input):
    """Which keys are due now; without a field, all."""

    user_id: UserId | None = None
    agent_name: AgentName | None = None
    thread_id: ThreadId | None = None
    wait: bool = Field(False, description="Answer when all that was accepted before has ended.")
    timeout_s: float = Field(
        20, ge=0, le=20, description="Seconds to wait, at most; a part of `request_timeout_s` when that is shorter."
    )


class InjectQuery(Whose):
    """A memory block for a prompt; `query` and `include_pending` as in search."""

    max_tokens: Annotated[Tokens, BeforeValidator(partial(_spelled, kind=int))] | None = None
    query: Query | None = Field(None, description="The facts that answer it best come first.")
    include_pending: Bool = Field(False, description=PENDING)


class Inject(Whose):
    """The same in a body, for queries that should not stand in an address."""

    max_tokens: Annotated[Tokens, BeforeValidator(_whole)] | None = None
    query: Query | None = Field(None, description="The facts that answer it best come first.")
    include_pending: bool = Field(False, description=PENDING)


class Search(Whose):
    """What to look for, and where."""

    query: Query
    limit: Whole = Field(10, ge=1, le=MAX_LIMIT, description="Facts at most.")
    categories: list[str] = Field([], max_length=100, description="Only these.")
    since: Moment | None = Field(None, description="Learned or changed then or later.")
    until: Moment | None = Field(None, description="Learned or changed before.")
    include_pending: bool = Field(False, description=PENDING)
    explain: bool = Field(False, description="With the factors of each score.")


class NewFact(Whose):
    """A fact to add by hand."""

    content: Content
    category: Category | None = None


class FactEdit(Whose):
    """What a fact says from now on."""

    content: Content | None = None
    category: Category | None = None


class Export(Input):
    """Whose memories to take out."""

    user_id: UserId
    agent_name: AgentName | None = Field(None, description="Only that of this agent; all of them when not named.")


class Forget(Input):
    """Whom to forget."""

    user_id: UserId
    agent_name: AgentName | None = Field(None, description="Only what this agent knows of the user.")
    dry_run: bool = Field(False, description="Only say what would be removed.")


def parse_query(model: type[Input], raw: bytes) -> Input:
    """The fields of a query string. Raises Rejected."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS)
    except UnicodeDecodeError:
        raise Rejected("E_UTF8", "the query is not UTF-8, percent-encoded") from None
    except ValueError:
        raise Rejected("E_QUERY", "the query has too many fields", limit=MAX_QUERY_FIELDS) from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Rejected("E_QUERY", "the query names a field twice")
    return _checked(model, fields)


def parse_body(model: type[Input], raw: bytes) -> Input:
    """The fields of a JSON body. Raises Rejected."""
    return _checked(model, parse_json(raw))


def _checked(model: type[Input], value: Any) -> Input:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> Rejected:
    """The first thing wrong; pydantic's words name types and limits, and the names that the model has."""
    first = error.errors(include_input=False, include_url=False)[0]
    if first["type"] == "extra_forbidden":
        return Rejected("E_UNKNOWN_FIELD", "there is no such field here; see /openapi.json for those there are")
    field = str(first["loc"][0]) if first["loc"] else ""
    if not field:
        return Rejected("E_BODY", "a body is a JSON object")
    if first["type"] == "missing":
        return Rejected(f"E_{field.upper()}_MISSING", f"{field} is required", field)
    limits = [value for value in first.get("ctx", {}).values() if type(value) in (int, float)]
    words = first["msg"]
    sentence = f"{field}: {words[:1].lower()}{words[1:]}"
    return Rejected(f"E_{field.upper()}", sentence, field, limits[0] if limits else None)
