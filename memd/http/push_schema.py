"""The JSON schema of a push, in every shape of a message that docs/wire.md lists."""

from __future__ import annotations

from collections.abc import Iterator

from memd.config import ClientSettings, Settings
from memd.context import SIGNALS, SOURCE_KINDS, WIRE_VERSION
from memd.http.fields import ID_SCHEMA
from memd.http.openapi_schemas import Schema
from memd.push.shapes import CALL, ITEMS, MAX_ROLE_CHARS, OUTPUT, ROLES
from memd.push.times import CREATED_AT_MAX, CREATED_AT_MIN
from memd.push.validation import MAX_NAME_CHARS, MAX_THREAD_BYTES


def push(settings: Settings) -> Schema:
    """A push, as `validation.check_push` checks it. With tokens, the app's name is put before its threads' ids."""
    limits = settings.client
    thread = ID_SCHEMA if settings.http.tokens is None else {**ID_SCHEMA, "maxLength": MAX_THREAD_BYTES}
    optional = {"anyOf": [ID_SCHEMA, {"type": "string", "maxLength": 0}, {"type": "null"}]}
    user = {"anyOf": [ID_SCHEMA, {"type": "null"}]} if limits.default_user is not None else ID_SCHEMA
    return {
        "title": "Push",
        "type": "object",
        "description": "A push, in the format of the raw list; see docs/wire.md.",
        "required": ["thread_id", "messages", *(() if limits.default_user is not None else ("user_id",))],
        "properties": {
            "v": {
                "const": WIRE_VERSION,
                "description": "3 means version 3, without traceparent; 2 also without project_id and source; "
                "1 also without names.",
            },
            "thread_id": thread,
            "user_id": user,
            "user_name": {
                "anyOf": _NAME,
                "description": "What the user is called. A message whose name is neither this nor user_id is somebody "
                "else's, and proves only facts about that person.",
            },
            "agent_name": optional,
            "project_id": {
                **optional,
                "description": "The project that these messages are about. A message keeps what its first push said.",
            },
            "source": {
                "description": "What the words come from.",
                "anyOf": [
                    {
                        "type": "object",
                        "required": ["kind"],
                        "properties": {"kind": {"enum": list(SOURCE_KINDS)}, "id": optional},
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ],
            },
            "messages": {
                "type": "array",
                "minItems": 1,
                "description": f"Of what filtering leaves, the newest {limits.max_messages} messages within "
                f"{limits.max_push_bytes} bytes are kept; the receipt counts the others as over_limit.",
                "items": _message(limits),
            },
            "signals": {
                "description": "What the app noticed in the last user message: hints to the model, beside memd's own.",
                "anyOf": [{"type": "array", "items": {"enum": list(SIGNALS)}}, {"type": "null"}],
            },
            "now": {"type": "boolean", "description": "Due at once."},
            "traceparent": {
                "type": ["string", "null"],
                "description": "The trace that the push belongs to (W3C Trace Context), also as a header. What has not "
                "its form is left out.",
            },
        },
        "additionalProperties": False,
    }


_NAME: list[Schema] = [
    {**ID_SCHEMA, "maxLength": MAX_NAME_CHARS},
    {"type": "string", "maxLength": 0},
    {"type": "null"},
]
"""The name of a speaker."""


def _message(limits: ClientSettings) -> Schema:
    """A message in any of the shapes of docs/wire.md."""
    plain = _plain_message(limits)
    wrapped: Schema = {
        "type": "object",
        "description": "What LangChain's `messages_to_dict` makes of a message.",
        "required": ["type", "data"],
        "properties": {"type": {"type": "string"}, "data": {**plain, "required": ["role"]}},
        "additionalProperties": False,
    }
    return {"anyOf": [plain, wrapped]}


def _plain_message(limits: ClientSettings) -> Schema:
    text = {
        "type": "string",
        "description": f"Of more than {limits.max_message_chars} characters the head and the tail are kept; the "
        "receipt counts the message as truncated.",
    }
    blocks = {"type": "array", "description": "Content blocks; only their text is read, joined like one text."}
    message_id = [
        ID_SCHEMA,
        {"type": "string", "maxLength": 0},
        {"type": "integer", "minimum": -(2**63), "maximum": 2**64 - 1},  # beyond these, JSON numbers are read as floats
        {"type": "null"},
    ]
    created = [
        {"type": "string", "pattern": "^[0-9][0-9T:. +Zz-]{3,63}$"},
        {"type": "number", "minimum": CREATED_AT_MIN, "maximum": CREATED_AT_MAX},
        {"type": "null"},
    ]
    return {
        "type": "object",
        "description": "A message in a shape that docs/wire.md lists; fields that are not listed are ignored.",
        "anyOf": list(_speakers()),
        "properties": {
            "content": {"anyOf": [text, blocks, {"type": "null"}]},
            "parts": {"anyOf": [blocks, {"type": "null"}]},
            "id": {"anyOf": message_id},
            "created_at": {"anyOf": created},
        },
    }


def _speakers() -> Iterator[Schema]:
    """Who may speak, by role or type; a user's message needs content or parts. A tool's name is no speaker's."""
    users, replies = ([name for name, kind in ROLES.items() if kind == wanted] for wanted in ("user", "assistant"))
    others = [name for name, kind in ROLES.items() if kind not in ("user", "assistant")]
    items = [*map(_any_case, ITEMS), f".{{1,48}}({CALL}|{OUTPUT})"]
    no_role: Schema = {"role": {"enum": [None, ""]}}
    for field, more, absent in (("role", [], {}), ("type", items, no_role)):
        named = {**absent, "name": {"anyOf": _NAME}}
        yield {"required": [field], "properties": {field: _names(others, more), **absent}}
        yield {"required": [field], "properties": {field: _names(replies, []), **named}}
        yield {"required": [field, "content"], "properties": {field: _names(users, []), **named}}
        yield {"required": [field, "parts"], "properties": {field: _names(users, []), **named}}


def _names(roles: list[str], others: list[str]) -> Schema:
    names = "|".join(
        [f"({'|'.join(map(_any_case, roles))}){_any_case_optional('message')}{_any_case_optional('chunk')}", *others]
    )
    return {"type": "string", "pattern": f"^({names})$", "maxLength": MAX_ROLE_CHARS}


def _any_case(name: str) -> str:
    """A regex for a name in small and capital letters; JSON Schema has no flag for it."""
    return "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in name)


def _any_case_optional(name: str) -> str:
    return f"({_any_case(name)})?"
