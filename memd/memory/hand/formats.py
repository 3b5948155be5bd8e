"""Formats: the importable formats, each read into parcels.

memd's own export, or one of its documents; DeerFlow's `memory.json` (version 1.0); mem0's `get_all()`, as
`{"results": [...]}` or as a plain list.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import orjson

from memd.context import DEFAULT_AGENT, Bucket
from memd.disk.files import MAX_BYTES
from memd.errors import DocumentDamaged, DocumentTooNew, Rejected
from memd.identifiers import check_identifier
from memd.memory import doubtful, scoped
from memd.memory.document import SECTIONS, Document, Fact, archive_of, facts_of, ledger_of, tombstones_of
from memd.memory.parsing import parse

Format = Literal["memd", "deerflow", "mem0"]
FORMATS: tuple[Format, ...] = ("memd", "deerflow", "mem0")

EXPORT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Parcel:
    """The import of one memory. `user_id`: its owner; None when the format has no owner.

    `refused`: items that could not be read, counted by reason.
    """

    source: Format
    user_id: str | None
    agent_name: str
    facts: tuple[Fact, ...]
    summaries: dict[str, dict[str, Any]] = field(default_factory=dict)
    archive: tuple[Fact, ...] = ()
    ledger: dict[str, list[str]] = field(default_factory=dict)
    removed: tuple[dict[str, Any], ...] = ()
    said: object = None
    doubtful: tuple[Fact, ...] = ()
    scoped: tuple[Fact, ...] = ()
    refused: Counter[str] = field(default_factory=Counter)


def envelope(
    user_id: str, documents: list[Document], now: str, *, tasks: list[dict[str, Any]], sessions: list[dict[str, Any]]
) -> dict[str, Any]:
    """memd's export: the documents as they are, the user's own memory first; the rest agent by agent."""
    return {
        "format": "memd",
        "version": EXPORT_VERSION,
        "exportedAt": now,
        "userId": user_id,
        "memories": documents,
        "tasks": tasks,
        "sessions": sessions,
    }


def parse_json(raw: bytes) -> Any:
    """The JSON value of a file's bytes. Raises Rejected with the place."""
    if len(raw) > MAX_BYTES:
        _refuse("E_IMPORT_SIZE", f"an import has at most {MAX_BYTES} bytes")
    try:
        return orjson.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        _refuse("E_IMPORT_JSON", f"not JSON at line {error.lineno}, column {error.colno}")


def read(value: object, form: str, user_id: str) -> tuple[Format, list[Parcel]]:
    """The format of an import, and its parcels for this user. `form`: a format, or auto. Raises Rejected."""
    try:
        value = parse_json(orjson.dumps(value))
    except (TypeError, ValueError):  # not JSON, or a lone surrogate; orjson's message may quote the value
        _refuse("E_IMPORT_JSON", "an import must be valid JSON, without lone surrogates")
    form = _recognised(value) if form == "auto" else form
    if form == "memd":
        return "memd", _memd(value)
    if form == "deerflow":
        return "deerflow", [_document(value, "", "deerflow")]
    if form == "mem0":
        return "mem0", [_mem0(value, user_id)]
    raise Rejected("E_IMPORT_FORMAT", f"format must be auto or one of {', '.join(FORMATS)}", "format")


def _recognised(value: object) -> Format:
    if isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("results"), list)):
        return "mem0"
    if isinstance(value, dict):
        if value.get("format") == "memd" or "userId" in value or "ledger" in value:
            return "memd"
        if {"facts", "user", "history"} & set(value):
            return "deerflow"
    raise Rejected(
        "E_IMPORT_FORMAT", "the import is neither memd's export, nor DeerFlow's memory.json, nor mem0's get_all()"
    )


def _memd(value: object) -> list[Parcel]:
    if not isinstance(value, dict):
        _refuse("E_IMPORT_SHAPE", "the top level must be an object")
    if "memories" not in value:
        return [_document(value, "", "memd")]
    if value.get("version") != EXPORT_VERSION:
        _refuse("E_IMPORT_VERSION", f"version must be {EXPORT_VERSION}; a newer memd may have written this", "version")
    documents = value["memories"]
    if not isinstance(documents, list):
        _refuse("E_IMPORT_SHAPE", "memories must be a list", "memories")
    parcels = [_document(document, f"memories[{number}]", "memd") for number, document in enumerate(documents)]
    if len({parcel.agent_name for parcel in parcels}) != len(parcels):
        _refuse("E_IMPORT_SHAPE", "memories must name each agent once", "memories")
    return parcels


def _document(value: object, place: str, source: Format) -> Parcel:
    at = f"{place}: " if place else ""
    if not isinstance(value, dict):
        _refuse("E_IMPORT_SHAPE", f"{at}a memory must be an object", place)
    user, agent = value.get("userId", ""), value.get("agentName", DEFAULT_AGENT)
    if not isinstance(user, str) or not isinstance(agent, str):
        _refuse("E_IMPORT_SHAPE", f"{at}userId and agentName must be text", place)
    try:
        document = parse(orjson.dumps(value), Bucket(user, agent))
    except DocumentTooNew:
        _refuse("E_IMPORT_VERSION", f"{at}this memory was written by a newer version; upgrade memd", "version")
    except DocumentDamaged as error:
        code, _, sentence = str(error).partition(": ")
        _refuse(code.replace("E_DOCUMENT", "E_IMPORT"), f"{at}{sentence}", f"{place}.{error.place}".lstrip("."))
    own = source == "memd"
    return Parcel(
        source,
        user if own else None,
        check_identifier("agent_name", agent) if agent and own else DEFAULT_AGENT,
        tuple(facts_of(document)),
        dict(_summaries(document)),
        tuple(archive_of(document)) if own else (),
        ledger_of(document) if own else {},
        tuple(tombstones_of(document)) if own else (),
        document.get("said") if own else None,
        tuple(doubtful.facts_of(document)) if own else (),
        tuple(scoped.facts_of(document)) if own else (),
    )


def _summaries(document: Document) -> list[tuple[str, dict[str, Any]]]:
    entries = ((name, document[section].get(name)) for name, section in SECTIONS.items())
    return [
        (name, entry) for name, entry in entries if isinstance(entry, dict) and isinstance(entry.get("summary"), str)
    ]


def _mem0(value: object, user_id: str) -> Parcel:
    items = value.get("results") if isinstance(value, dict) else value
    if not isinstance(items, list):
        _refuse("E_IMPORT_SHAPE", "results must be a list", "results")
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            _refuse("E_IMPORT_SHAPE", f"results[{number}] must be an object", f"results[{number}]")
    # An export without a filter holds many users: nobody must get another user's memories.
    owners = {item["user_id"] for item in items if isinstance(item.get("user_id"), str)}
    refused: Counter[str] = Counter()
    facts: list[Fact] = []
    for item in items:
        if len(owners) > 1 and item.get("user_id") != user_id:
            refused["other_user"] += 1
        elif not isinstance(item.get("memory"), str):
            refused["no_text"] += 1
        else:
            facts.append(_fact(item))
    return Parcel("mem0", None, DEFAULT_AGENT, tuple(facts), refused=refused)


def _fact(item: dict[str, Any]) -> Fact:
    """A memory of mem0 as a fact; `imports` fills in what is absent."""
    metadata = item["metadata"] if isinstance(item.get("metadata"), dict) else {}
    categories = item.get("categories")
    listed = categories[0] if isinstance(categories, list) and categories else None
    return {
        "id": item.get("id"),
        "content": item["memory"],
        "category": metadata.get("category", listed),
        "createdAt": item.get("created_at"),
        "updatedAt": item.get("updated_at"),
        "source": item.get("run_id"),
    }


def _refuse(code: str, sentence: str, field: str = "") -> NoReturn:
    raise Rejected(code, sentence, field)
