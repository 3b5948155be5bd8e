"""memd's own export, and one of its documents. DeerFlow's `memory.json` is a document of the same form."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson

from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import DocumentDamaged, DocumentTooNew
from memd.identifiers import check_identifier
from memd.memory import doubtful, scoped
from memd.memory.document import SECTIONS, Document, archive_of, facts_of, ledger_of, tombstones_of
from memd.memory.hand.formats.parcels import Format, ImportContents, Parcel, refuse
from memd.memory.parsing import parse

EXPORT_VERSION = 1


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


def recognises(value: Any) -> bool:
    """Whether it is an export of memd, or one of its documents."""
    return isinstance(value, dict) and (value.get("format") == "memd" or "userId" in value or "ledger" in value)


def read(value: Any, _user_id: str) -> ImportContents:
    """A parcel for each agent."""
    return ImportContents("memd", tuple(_parcels(value)))


def _parcels(value: object) -> list[Parcel]:
    if not isinstance(value, dict):
        refuse("E_IMPORT_SHAPE", "the top level must be an object")
    if "memories" not in value:
        return [document_parcel(value, "", "memd")]
    if value.get("version") != EXPORT_VERSION:
        refuse("E_IMPORT_VERSION", f"version must be {EXPORT_VERSION}; a newer memd may have written this", "version")
    documents = value["memories"]
    if not isinstance(documents, list):
        refuse("E_IMPORT_SHAPE", "memories must be a list", "memories")
    parcels = [document_parcel(document, f"memories[{number}]", "memd") for number, document in enumerate(documents)]
    if len({parcel.agent_name for parcel in parcels}) != len(parcels):
        refuse("E_IMPORT_SHAPE", "memories must name each agent once", "memories")
    return parcels


def document_parcel(value: object, place: str, source: Format, refused: Counter[str] | None = None) -> Parcel:
    """The parcel of one document. Raises Rejected with the place."""
    at = f"{place}: " if place else ""
    if not isinstance(value, dict):
        refuse("E_IMPORT_SHAPE", f"{at}a memory must be an object", place)
    user, agent = value.get("userId", ""), value.get("agentName", DEFAULT_AGENT)
    if not isinstance(user, str) or not isinstance(agent, str):
        refuse("E_IMPORT_SHAPE", f"{at}userId and agentName must be text", place)
    try:
        document = parse(orjson.dumps(value), Bucket(user, agent))
    except DocumentTooNew:
        refuse("E_IMPORT_VERSION", f"{at}this memory was written by a newer version; upgrade memd", "version")
    except DocumentDamaged as error:
        code, _, sentence = str(error).partition(": ")
        refuse(code.replace("E_DOCUMENT", "E_IMPORT"), f"{at}{sentence}", f"{place}.{error.place}".lstrip("."))
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
        refused or Counter(),
    )


def _summaries(document: Document) -> list[tuple[str, dict[str, Any]]]:
    entries = ((name, document[section].get(name)) for name, section in SECTIONS.items())
    return [
        (name, entry) for name, entry in entries if isinstance(entry, dict) and isinstance(entry.get("summary"), str)
    ]
