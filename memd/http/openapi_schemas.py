"""JSON schemas of responses that no dataclass describes. Each object with a title is a type of that name to clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter

from memd.forget import Forgotten
from memd.inbox.dead import Letter, LetterPage
from memd.inbox.hours import Hour
from memd.inbox.receipt import Outcome
from memd.memory.document import SECTIONS
from memd.memory.hand.formats import EXPORT_VERSION
from memd.memory.hand.transfer import Imported
from memd.memory.listing import Status
from memd.memory.projects import rights
from memd.ops.audit import Finding
from memd.projects.projects_of_store import ListedProject
from memd.projects.timeline import Moment

Schema = dict[str, Any]


def of(kind: Any) -> Schema:
    """The schema of a dataclass as orjson writes it, with all its fields; a schema is returned unchanged."""
    if isinstance(kind, dict):
        return kind
    schema = TypeAdapter(kind).json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    for one in (schema, *schema.get("$defs", {}).values()):
        one["required"] = list(one["properties"])
    return schema


def _object(title: str, properties: Schema, optional: Schema | None = None, **more: Any) -> Schema:
    """An object: the properties that it always has, and those that it may have."""
    return {
        "title": title,
        "type": "object",
        "required": list(properties),
        "properties": {**properties, **(optional or {})},
        **more,
    }


def _list(title: str, name: str, item: Schema, optional: Schema | None = None) -> Schema:
    """All rows, in a field."""
    return _object(title, {name: {"type": "array", "items": item}}, optional)


def _page(title: str, name: str, item: Schema) -> Schema:
    """A page of rows."""
    return _object(title, {name: {"type": "array", "items": item}, "next": _NEXT})


def _row_of(kind: type) -> Schema:
    """A NamedTuple of texts and numbers, as the operations write it: an object."""
    types = {str: "string", int: "integer"}
    return _object(kind.__name__, {name: {"type": types[of]} for name, of in get_type_hints(kind).items()})


def _without(schema: Schema, names: Sequence[str]) -> Schema:
    """A schema of an object without some of its properties."""
    properties = {name: value for name, value in schema["properties"].items() if name not in names}
    return {**schema, "properties": properties, "required": [name for name in schema["required"] if name not in names]}


_TEXT: Schema = {"type": "string"}
_NEXT: Schema = {"type": "string", "description": "`after` of the next page; empty on the last."}
_COUNT: Schema = {"type": "integer"}
_OPEN: Schema = {"additionalProperties": True}
_ANYTHING: Schema = {"type": "array", "items": {"type": "object"}}
_SUMMARY = _object("Summary", {}, {"summary": _TEXT, "updatedAt": _TEXT})

FACT = _object("Fact", {"id": _TEXT, "content": _TEXT}, description="A fact; it may have further fields.", **_OPEN)
DOUBTFUL = _list("DoubtfulFacts", "facts", FACT)

DOCUMENT = _object(
    "Document",
    {
        "userId": _TEXT,
        "agentName": _TEXT,
        **{
            section: _object(title, {}, {name: _SUMMARY for name, where in SECTIONS.items() if where == section})
            for section, title in (("user", "UserSummaries"), ("history", "HistorySummaries"))
        },
        "facts": {"type": "array", "items": FACT},
    },
    {
        "version": _TEXT,
        "revision": {"type": "integer", "minimum": 0},
        "lastUpdated": _TEXT,
        "archive": _ANYTHING,
        "asOf": {"type": "string", "description": "With `at`: it. Such a document has no revision and no archive."},
        "missing": {"type": "array", "items": _TEXT, "description": "With `at`: why it may be incomplete."},
    },
    description="The memory document; it may have further fields.",
    **_OPEN,
)

_STATUS: Schema = {"type": "string", "enum": list(get_args(Status))}
_DERIVED: Schema = {
    "status": _STATUS,
    "lastUsedAt": {"type": ["string", "null"], "description": "When a search last found it; null: never."},
}
LISTED_FACTS = _page(
    "Facts",
    "facts",
    _object(
        "ListedFact",
        {"content": _TEXT, **_DERIVED},
        {"id": _TEXT},
        description="A fact, or an archived one, which may have no id; it may have further fields.",
        **_OPEN,
    ),
)
ARCHIVED_FACTS = _page(
    "ArchivedFacts",
    "facts",
    _object(
        "ArchivedFact",
        {"content": _TEXT, **_DERIVED},
        {
            "id": _TEXT,
            "archivedAt": _TEXT,
            "archiveReason": {"type": "string", "description": "As in `reason`, or a person's own word."},
            "archiveNote": _TEXT,
            "replacedBy": {"type": "string", "description": "The id of the fact in its place."},
        },
        description="An archived fact, which may have no id; it may have further fields.",
        **_OPEN,
    ),
)

_TURN = _object("Turn", {"role": _TEXT, "text": _TEXT, "saidAt": _TEXT})
_QUOTE = _object(
    "Quote",
    {},
    {
        "quote": _TEXT,
        "thread": _TEXT,
        "message": _TEXT,
        "turns": {
            "type": "array",
            "description": "The turns around the quote, with the scope `said`, as far as they are kept.",
            "items": _TURN,
        },
    },
    **_OPEN,
)
_TOLD: Schema = {
    "state": {"enum": ["active", "suspended", "archived"]},
    "content": _TEXT,
    "category": _TEXT,
    "confidence": {"type": "number"},
    "evidence": {"type": "array", "items": _QUOTE},
    "status": _STATUS,
}
_OTHER = _object(
    "OtherFact",
    {"id": _TEXT, "content": {"type": ["string", "null"]}},
    description="Another fact; `content` is null when the archive no longer has it.",
    **_OPEN,
)
WHY = _object(
    "Account",
    {
        "id": _TEXT,
        **_TOLD,
        "lastUsedAt": _DERIVED["lastUsedAt"],
        "replaced": {"type": "array", "items": _OTHER},
        "earlier": {
            "type": "array",
            "description": "The versions before this one, the latest first.",
            "items": _object("Version", _TOLD, **_OPEN),
        },
    },
    {"replacedBy": _OTHER, "withheld": _ANYTHING},
    description="A fact with all that is known about it; it may have further fields.",
    **_OPEN,
)

WITHHELD = _list(
    "WithheldEntries",
    "withheld",
    _object(
        "WithheldEntry",
        {"fact": {"type": "string", "description": "The id of the fact."}},
        {
            "wanted": {"type": "string", "description": "What was to become of it."},
            "why": {"type": ["string", "null"], "description": "Why memd did not follow."},
            "at": {"type": ["string", "null"]},
            "source": {"type": ["string", "null"]},
            "content": {"type": "string", "description": "Of a suspended fact."},
        },
        **_OPEN,
    ),
)

PROFILE = _object(
    "Profile",
    {"profile": {"type": "object", "additionalProperties": {"type": "object", "required": ["value"]}}},
)
PROFILE_FIELD = _object("ProfileFieldName", {"field": _TEXT})

MEMBER = _object("Member", {"user_id": _TEXT, "role": {"type": "string", "enum": list(rights.ROLES)}})
MEMBERS = _list("Members", "members", MEMBER)
PROJECTS = _list("Projects", "projects", _row_of(ListedProject))
TIMELINE = _page("Timeline", "timeline", _row_of(Moment))
PROJECT_WHY = _object(
    "ProjectAccount",
    {
        "fact": FACT,
        "evidence": _ANYTHING,
        "disputes": {"type": "array", "items": FACT},
        "replaced": {"type": "array", "items": FACT},
    },
)

ID = _object("Id", {"id": _TEXT})

_WORDS_ONLY: Schema = {
    "words_only": {
        "type": "string",
        "description": "Why the search went by words alone: the embedder failed, or no fact has a vector. Else absent.",
    }
}

BLOCK = _object(
    "Block",
    {
        "text": {
            "type": "string",
            "description": "The block, to be put into a prompt unchanged; empty when nothing is known.",
        },
        "version": {"type": "string", "description": "Equal exactly when the text is equal; also the ETag."},
    },
    _WORDS_ONLY,
)

_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
FOUND = _list(
    "SearchResult",
    "found",
    _object(
        "Found",
        {
            "fact": _object(
                "FoundFact",
                {"content": _TEXT},
                {"id": _TEXT, **_DERIVED},
                description="Of kind fact it has `status` and `lastUsedAt`, which is before this search.",
                **_OPEN,
            ),
            "score": _SHARE,
            "kind": {"type": "string", "enum": ["fact", "excerpt", "pending"]},
            "pending": {"type": "boolean", "description": "A message not extracted yet: not verified."},
            "agent_name": _TEXT,
        },
        {"explain": _object("Explanation", dict.fromkeys(("similarity", "confidence", "scope"), _SHARE))},
    ),
    _WORDS_ONLY,
)

_DRY_RUN: Schema = {"dry_run": {"type": "boolean"}}
EXPORT = _object(
    "ExportOfMemd",
    {"format": {"const": "memd"}, "version": {"const": EXPORT_VERSION}, "memories": _ANYTHING},
    description="What import takes; it may have further fields.",
    **_OPEN,
)
IMPORTED = of(Imported)
IMPORTED["properties"] |= _DRY_RUN

_LETTER = _without(of(Letter), ("owner", "bucket"))  # hashes that name nothing outside the inbox
LETTER: Schema = {
    **_LETTER,
    "title": "LetterContent",
    "description": "A dead letter. `origin`: the raw list of a push that was never taken in, which has no ids.",
    "properties": {
        **_LETTER["properties"],
        "messages": {**_ANYTHING, "description": "With the scope `said`."},
        "raw": {"type": ["string", "null"], "description": "With the scope `said`: the raw push."},
    },
}
_PAGE = of(LetterPage)
DEAD: Schema = {
    **_PAGE,
    "$defs": {},
    "title": "Letters",
    "description": "Of the letters that the token may see. `codes`: how many of the newest `looked_at` have which.",
    "properties": {**_PAGE["properties"], "letters": {"type": "array", "items": _LETTER}, "next": _NEXT},
}
RETRIED = _object("Retried", {"retried": _COUNT, "stay": _COUNT})
DROPPED = _object("Dropped", {"dropped": _COUNT})

AUDIT = _object(
    "Audit",
    {
        "facts": {"type": "integer", "description": "How many facts the memory has."},
        "counts": {"type": "object", "additionalProperties": _COUNT, "description": "Findings by rule."},
        "findings": {"type": "array", "items": of(Finding)},
        "next": _NEXT,
    },
)
HOURS = _list("Hours", "hours", of(Hour))

OUTCOME = of(Outcome)
FORGOTTEN = of(Forgotten)
FORGOTTEN["properties"] |= _DRY_RUN

HEALTH = _object("Health", {"status": {"const": "ok"}, "inbox": {"enum": ["ok", "unavailable"]}})
READY = _object("Readiness", {name: {"const": "ok"} for name in ("status", "inbox", "store")})

PROBLEM = _object(
    "Problem",
    {
        "type": _TEXT,
        "title": _TEXT,
        "status": _COUNT,
        "detail": _TEXT,
        "code": {"type": "string", "pattern": "^E_[A-Z0-9_]+$"},
    },
    {"field": _TEXT, "limit": {"type": "number"}},
    description="RFC 9457 problem details, with memd's code and, where they apply, field and limit.",
    additionalProperties=False,
)
