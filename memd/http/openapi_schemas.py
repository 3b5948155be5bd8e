"""JSON schemas of responses that no dataclass describes, and of a push."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter

from memd.config import ClientSettings, Settings
from memd.context import SIGNALS, SOURCE_KINDS, WIRE_VERSION
from memd.forget import Forgotten
from memd.http.fields import ID_SCHEMA
from memd.inbox.receipt import Outcome
from memd.memory.document import SECTIONS
from memd.memory.listing import Status
from memd.memory.projects import rights
from memd.projects.projects_of_store import ListedProject
from memd.projects.timeline import Moment
from memd.push.shapes import CALL, ITEMS, MAX_ROLE_CHARS, OUTPUT, ROLES
from memd.push.times import CREATED_AT_MAX, CREATED_AT_MIN
from memd.push.validation import MAX_NAME_CHARS, MAX_THREAD_BYTES

Schema = dict[str, Any]


def of(kind: Any) -> Schema:
    """The schema of a dataclass as orjson writes it; a schema is returned unchanged."""
    if isinstance(kind, dict):
        return kind
    return TypeAdapter(kind).json_schema(mode="serialization", ref_template="#/components/schemas/{model}")


_TEXT: Schema = {"type": "string"}
_SUMMARY: Schema = {"type": "object", "properties": {"summary": _TEXT, "updatedAt": _TEXT}}

FACT: Schema = {
    "type": "object",
    "description": "A fact; it may have further fields.",
    "required": ["id", "content"],
    "properties": {"id": _TEXT, "content": _TEXT},
}

DOCUMENT: Schema = {
    "type": "object",
    "description": "The memory document; it may have further fields.",
    "required": ["userId", "agentName", "revision", "user", "history", "facts", "archive"],
    "properties": {
        "version": _TEXT,
        "userId": _TEXT,
        "agentName": _TEXT,
        "revision": {"type": "integer", "minimum": 0},
        "lastUpdated": _TEXT,
        **{
            section: {
                "type": "object",
                "properties": {n: _SUMMARY for n, where in SECTIONS.items() if where == section},
            }
            for section in ("user", "history")
        },
        "facts": {"type": "array", "items": FACT},
        "archive": {"type": "array", "items": {"type": "object"}},
    },
}

FACTS: Schema = {
    "type": "object",
    "required": ["facts"],
    "properties": {"facts": {"type": "array", "items": FACT}},
}

_DERIVED: Schema = {
    "status": {"type": "string", "enum": list(get_args(Status))},
    "lastUsedAt": {"type": ["string", "null"], "description": "When a search last found it; null: never."},
}
LISTED_FACTS: Schema = {
    "type": "object",
    "required": ["facts"],
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                **FACT,
                "description": "A fact, or an archived one, which may have no id; it may have further fields.",
                "required": ["content", *_DERIVED],
                "properties": {**FACT["properties"], **_DERIVED},
            },
        }
    },
}

PROFILE: Schema = {
    "type": "object",
    "required": ["profile"],
    "properties": {"profile": {"type": "object", "additionalProperties": {"type": "object", "required": ["value"]}}},
}
PROFILE_FIELD: Schema = {"type": "object", "required": ["field"], "properties": {"field": _TEXT}}


def _row_of(kind: type) -> Schema:
    """A NamedTuple of texts and numbers, as the operations write it: an object."""
    types = {str: "string", int: "integer"}
    fields = get_type_hints(kind)
    return {
        "type": "object",
        "required": list(fields),
        "properties": {name: {"type": types[of]} for name, of in fields.items()},
    }


_ROLE: Schema = {"type": "string", "enum": list(rights.ROLES)}
MEMBER: Schema = {"type": "object", "required": ["user_id", "role"], "properties": {"user_id": _TEXT, "role": _ROLE}}
MEMBERS: Schema = {
    "type": "object",
    "required": ["members"],
    "properties": {"members": {"type": "array", "items": MEMBER}},
}
PROJECTS: Schema = {
    "type": "object",
    "required": ["projects"],
    "properties": {"projects": {"type": "array", "items": _row_of(ListedProject)}},
}
TIMELINE: Schema = {
    "type": "object",
    "required": ["timeline"],
    "properties": {"timeline": {"type": "array", "items": _row_of(Moment)}},
}
PROJECT_WHY: Schema = {
    "type": "object",
    "required": ["fact", "evidence", "disputes", "replaced"],
    "properties": {
        "fact": FACT,
        "evidence": {"type": "array", "items": {"type": "object"}},
        "disputes": {"type": "array", "items": FACT},
        "replaced": {"type": "array", "items": FACT},
    },
}

FACT_ID: Schema = {"type": "object", "required": ["id"], "properties": {"id": _TEXT}}

BLOCK: Schema = {
    "type": "object",
    "required": ["text", "version"],
    "properties": {
        "text": {
            "type": "string",
            "description": "The block, to be put into a prompt unchanged; empty when nothing is known.",
        },
        "version": {"type": "string", "description": "Equal exactly when the text is equal; also the ETag."},
    },
}

_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_NAMES = ("similarity", "confidence", "scope")
FOUND: Schema = {
    "type": "object",
    "required": ["found"],
    "properties": {
        "found": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["fact", "score", "kind", "pending", "agent_name"],
                "properties": {
                    "fact": {
                        "type": "object",
                        "description": "Of kind fact it has `status` and `lastUsedAt`, which is before this search.",
                        "required": ["content"],
                        "properties": _DERIVED,
                    },
                    "score": _SHARE,
                    "kind": {"type": "string", "enum": ["fact", "excerpt", "pending"]},
                    "pending": {"type": "boolean", "description": "A message not extracted yet: not verified."},
                    "agent_name": _TEXT,
                    "explain": {"type": "object", "required": [*_NAMES], "properties": dict.fromkeys(_NAMES, _SHARE)},
                },
            },
        }
    },
}

EXPORT: Schema = {"type": "object", "description": "The format of `memd import`."}

OUTCOME: Schema = of(Outcome)
FORGOTTEN: Schema = of(Forgotten)
FORGOTTEN["properties"]["dry_run"] = {"type": "boolean"}

HEALTH: Schema = {
    "type": "object",
    "required": ["status", "inbox"],
    "properties": {"status": {"const": "ok"}, "inbox": {"enum": ["ok", "unavailable"]}},
}

READY: Schema = {
    "type": "object",
    "required": ["status", "inbox", "store"],
    "properties": {name: {"const": "ok"} for name in ("status", "inbox", "store")},
}

PROBLEM: Schema = {
    "type": "object",
    "description": "RFC 9457 problem details, with memd's code and, where they apply, field and limit.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "code": {"type": "string", "pattern": "^E_[A-Z0-9_]+$"},
        "field": _TEXT,
        "limit": {"type": "number"},
    },
    "additionalProperties": False,
}


def push(settings: Settings) -> Schema:
    """A push, as `validation.check_push` checks it. With tokens, the app's name is put before its threads' ids."""
    limits = settings.client
    thread = ID_SCHEMA if settings.http.tokens is None else {**ID_SCHEMA, "maxLength": MAX_THREAD_BYTES}
    optional = {"anyOf": [ID_SCHEMA, {"type": "string", "maxLength": 0}, {"type": "null"}]}
    user = {"anyOf": [ID_SCHEMA, {"type": "null"}]} if limits.default_user is not None else ID_SCHEMA
    return {
        "type": "object",
        "description": "A push, in the format of the raw list; see docs/wire.md.",
        "required": ["thread_id", "messages", *(() if limits.default_user is not None else ("user_id",))],
        "properties": {
            "v": {
                "const": WIRE_VERSION,
                "description": "2 means version 2, without project_id and source; 1 also without names.",
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
            "signals": {"anyOf": [{"type": "array", "items": {"enum": list(SIGNALS)}}, {"type": "null"}]},
            "now": {"type": "boolean", "description": "Due at once."},
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
