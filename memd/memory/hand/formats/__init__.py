"""Formats: the table of what can be imported, each read by a module of its own into parcels.

A new format is a module with `recognises` and `read`, and a row here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from memd.errors import Rejected
from memd.memory.hand.formats import (
    chatgpt,
    claude_ai,
    deerflow,
    langgraph_items,
    mem0,
    memobase,
    own_exports,
    redis_memories,
)
from memd.memory.hand.formats.bundles import MAX_FILES, parse_json, read_path
from memd.memory.hand.formats.own_exports import EXPORT_VERSION, envelope
from memd.memory.hand.formats.parcels import (
    FILES,
    MAX_FACTS,
    ChatThread,
    Format,
    ImportContents,
    ImportFormat,
    Parcel,
    files_of,
    refuse,
)

__all__ = [
    "EXPORT_VERSION", "FORMATS", "ChatThread", "Format", "ImportContents", "Parcel",
    "envelope", "parse_json", "read", "read_path",
]  # fmt: skip

TABLE: Sequence[ImportFormat] = (
    ImportFormat("memd", "memd's export", own_exports.recognises, own_exports.read),
    ImportFormat("chatgpt", "ChatGPT's data export", chatgpt.recognises, chatgpt.read),
    ImportFormat("claude", "Claude's data export", claude_ai.recognises, claude_ai.read),
    ImportFormat("deerflow", "DeerFlow's memory", deerflow.recognises, deerflow.read),
    ImportFormat("langgraph", "items of a LangGraph store", langgraph_items.recognises, langgraph_items.read),
    ImportFormat("redis", "Redis' agent-memory-server", redis_memories.recognises, redis_memories.read),
    ImportFormat("memobase", "memobase's profile or events", memobase.recognises, memobase.read),
    ImportFormat("mem0", "mem0's get_all()", mem0.recognises, mem0.read),
)
"""The formats in the order in which they are recognised: what asks for least comes last."""

MAX_PATH_CHARS = 1_024
"""Characters of the path of a file in a folder or an archive."""

FORMATS = tuple(row.name for row in TABLE)


def read(value: object, form: str, user_id: str) -> ImportContents:
    """What an import holds for this user. `form`: a format, or auto. Raises Rejected."""
    try:
        value = parse_json(orjson.dumps(value))
    except (TypeError, ValueError):  # not JSON, nested too deeply, or a lone surrogate; its message may quote the value
        refuse("E_IMPORT_JSON", "an import must be valid JSON, without lone surrogates, nested at most 254 deep")
    _check_files(value)
    contents = _row(value, form).read(value, user_id)
    for parcel in contents.parcels:
        if len(parcel.facts) > MAX_FACTS:
            refuse("E_IMPORT_FACTS", f"an import has at most {MAX_FACTS} facts for one memory", "facts", MAX_FACTS)
    return contents


def _check_files(value: object) -> None:
    files = files_of(value)
    if len(files) > MAX_FILES:
        refuse("E_IMPORT_FILES", f"an import has at most {MAX_FILES} files", FILES, MAX_FILES)
    if any(len(path) > MAX_PATH_CHARS for path in files):
        refuse("E_IMPORT_FILES", f"the path of a file has at most {MAX_PATH_CHARS} characters", FILES, MAX_PATH_CHARS)


def _row(value: Any, form: str) -> ImportFormat:
    if form not in ("auto", *FORMATS):
        raise Rejected("E_IMPORT_FORMAT", f"format must be auto or one of {', '.join(FORMATS)}", "format")
    for row in TABLE:
        if row.name == form or (form == "auto" and row.recognises(value)):
            return row
    known = ", ".join(row.what for row in TABLE)
    raise Rejected("E_IMPORT_FORMAT", f"the format is not recognised; memd reads {known}")
