"""Hooks for schemathesis: formats of memd serve's requests that the patterns of the document cannot express.

Loaded by SCHEMATHESIS_HOOKS in the process that `http_fuzz` starts.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import schemathesis
from hypothesis import strategies as st

from memd.config import ClientSettings
from memd.errors import Rejected
from memd.identifiers import check_identifier
from memd.memory import profiles
from memd.memory.hand import formats
from memd.memory.profiles import PROJECT_FIELDS, USER_FIELDS
from memd.push.strict_json import MAX_NUMBER_CHARS

MAX_BYTES = ClientSettings().read_bytes


def _is_id(value: str) -> bool:
    try:
        check_identifier("user_id", value)
    except Rejected:
        return False
    return True


_LETTERS = st.characters(exclude_categories=("Cs", "Cc"))
schemathesis.openapi.format("memd-id", st.text(_LETTERS, min_size=1, max_size=60).filter(_is_id))
schemathesis.openapi.format(
    "memd-fact",
    st.lists(st.sampled_from(("tea", "Porto", "likes", "喝绿茶", "梅子", "née")), min_size=5, max_size=9).map(" ".join),
)
schemathesis.openapi.format("memd-time", st.dates(min_value=date(1000, 1, 1)).map(str))
schemathesis.openapi.format("memd-past-time", st.dates(date(1000, 1, 1), date(2026, 1, 1)).map(str))


@schemathesis.hook
def filter_body(_: schemathesis.HookContext, body: Any) -> bool:
    """Leave out requests that the document cannot exclude: a number with too many digits; a message id like 5.0, which
    JSON Schema calls an integer; a body over the limit, refused before it is read; a document of another system, whose
    fields only the import knows.
    """
    if len(json.dumps(body, default=str)) > MAX_BYTES:
        return False
    if not isinstance(body, dict):
        return True
    if "field" in body and not _is_profile_value(body):
        return False
    if "document" in body and not _is_import(body):
        return False
    messages = body.get("messages")
    said = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    said += [data for one in said if isinstance(data := one.get("data"), dict)]
    ids = [one.get("id") for one in said]
    return not _has_long_number(body) and float not in map(type, ids)


@schemathesis.hook
def filter_case(_: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Leave out, also in the cases that try the limits of each field, such a document; a flush that waits: nothing
    works here, so it takes longer than a client waits for a response; and the `id` of a push that had nothing to do.
    """
    if {None, "null"} & set((case.path_parameters or {}).values()):
        return False
    body = case.body
    return not isinstance(body, dict) or (body.get("wait") is not True and ("document" not in body or _is_import(body)))


def _is_profile_value(body: dict[str, Any]) -> bool:
    """Whether the value is one of its field: which field takes what, the document says in words."""
    table = PROJECT_FIELDS if "project_id" in body else USER_FIELDS
    try:
        profiles.checked(profiles.field_name(body["field"], table), body.get("value"), table)
    except Rejected:
        return False
    return True


def _is_import(body: dict[str, Any]) -> bool:
    """Whether the import reads the document; for an agent it needs a memory of that agent, or a single one."""
    try:
        contents = formats.read(body["document"], body.get("format", "auto"), "ana")
    except Rejected:
        return False
    return body.get("agent_name") is None or len(contents.parcels) == 1


def _has_long_number(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_long_number, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | float) and len(repr(value)) > MAX_NUMBER_CHARS
