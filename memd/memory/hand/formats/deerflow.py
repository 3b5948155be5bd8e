"""DeerFlow: `memory.json` (1.0, and 2.0 as its gateway exports it), and the folder of 2.0, one Markdown file a fact.

The folder is `users/<user>`: `memory.json` has the summaries, `agents/<agent>/facts/<shard>/<id>.md` the facts.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from memd.context import DEFAULT_AGENT
from memd.identifiers import check_identifier
from memd.memory.document import SECTIONS, Fact
from memd.memory.hand.formats.fact_pages import page_of
from memd.memory.hand.formats.own_exports import document_parcel
from memd.memory.hand.formats.parcels import FILES, ImportContents, Parcel, files_of, refuse

SUMMARIES_ONLY = "2.0"
"""The version whose `memory.json` has no facts."""

DEFAULT_BUCKET = "__default__"
"""Its name for the memory without an agent."""

_FACT_FILE = re.compile(r"(?:.*/)?agents/([^/]+)/facts/(?:[^/]+/)*[^/]+\.md")
_AGENT_MEMORY = re.compile(r"(?:.*/)?agents/([^/]+)/memory\.json")
_USER = re.compile(r"(?:.*/)?users/([^/]+)/.*")


def recognises(value: Any) -> bool:
    """Whether it is such a document, or a folder with fact files or a `memory.json`."""
    if files := files_of(value):
        return any(path.endswith(".md") or _base(path) == "memory.json" for path in files)
    return isinstance(value, dict) and bool({"facts", "user", "history"} & value.keys())


def read(value: Any, _user_id: str) -> ImportContents:
    """A parcel for each agent."""
    files = files_of(value)
    parcels = _of_files(files) if files else [_of_document(value, "")]
    return ImportContents("deerflow", tuple(parcels))


def _of_document(value: Any, place: str) -> Parcel:
    refused: Counter[str] = Counter()
    if isinstance(value, dict):
        refused["summary_unknown"] += _unknown_summaries(value)
        value = {**value, "version": "1.0"} if value.get("version") == SUMMARIES_ONLY else dict(value)
        if isinstance(facts := value.get("facts"), list):
            value["facts"] = list(map(_plain, facts))
    return document_parcel(value, place, "deerflow", refused)


def _of_files(files: dict[str, Any]) -> list[Parcel]:
    _check_owner({match[1] for path in files if (match := _USER.fullmatch(path))})
    facts: dict[str, list[Fact]] = {}
    owners: set[str] = set()
    for number, (path, text) in enumerate(_pages(files)):
        page = page_of(text, f"{FILES}[{number}]")
        match = _FACT_FILE.fullmatch(path)
        agent = _agent(match[1] if match else page.agent_name or DEFAULT_BUCKET)
        facts.setdefault(agent, []).append(_plain(page.fact))
        owners |= {page.user_id} if page.user_id else set()
    _check_owner(owners)
    parcels = [_of_document(files[path], path_name) for path, path_name in _own_memory(files)]
    summaries = parcels[0] if parcels else Parcel("deerflow", None, DEFAULT_AGENT, ())
    for path, found in files.items():
        if match := _AGENT_MEMORY.fullmatch(path):  # version 1 kept an agent's facts there
            facts.setdefault(_agent(match[1]), []).extend(_of_document(found, "memory.json").facts)
    own = (*summaries.facts, *facts.pop(DEFAULT_AGENT, ()))
    named = [Parcel("deerflow", None, agent, tuple(found)) for agent, found in sorted(facts.items())]
    first = Parcel("deerflow", None, DEFAULT_AGENT, own, summaries.summaries, refused=summaries.refused)
    return [first, *named] if own or first.summaries or not named else named


def _pages(files: dict[str, Any]) -> list[tuple[str, str]]:
    """The fact files by path: those in a folder of facts, or all Markdown where there is no such folder."""
    pages = [(path, text) for path, text in sorted(files.items()) if path.endswith(".md") and isinstance(text, str)]
    return [page for page in pages if _FACT_FILE.fullmatch(page[0])] or [page for page in pages if len(files) == 1]


def _own_memory(files: dict[str, Any]) -> list[tuple[str, str]]:
    """The `memory.json` of the user, with the place that an error names."""
    own = [path for path in files if _base(path) == "memory.json" and not _AGENT_MEMORY.fullmatch(path)]
    return [(path, "memory.json") for path in own]


def _check_owner(owners: set[str]) -> None:
    """Nobody must get another user's memories."""
    if len(owners) > 1:
        refuse("E_IMPORT_OWNER", "the folder holds several users: import one user's folder, users/<user>", FILES)


def _agent(name: str) -> str:
    return DEFAULT_AGENT if name == DEFAULT_BUCKET else check_identifier("agent_name", name)


def _plain(fact: Any) -> Any:
    """A fact of version 2 with the fields of version 1: `source` is the thread, `category` its own name."""
    if not isinstance(fact, dict):
        return fact
    plain = dict(fact)
    if isinstance(source := plain.get("source"), dict):
        thread = source.get("threadId")
        plain["source"] = thread if isinstance(thread, str) and thread not in ("", "null") else source.get("type")
    if plain.get("category") == "other" and isinstance(own := plain.get("categoryExtension"), str):
        plain["category"] = own
    return plain


def _unknown_summaries(value: dict[str, Any]) -> int:
    """How many summaries with text memd has no place for (`cognitiveStyle`)."""
    sections = [value.get(section) for section in ("user", "history")]
    entries = [item for part in sections if isinstance(part, dict) for item in part.items()]
    unknown = [entry for name, entry in entries if name not in SECTIONS and isinstance(entry, dict)]
    return sum(bool(entry.get("summary")) for entry in unknown)


def _base(path: str) -> str:
    return path.rpartition("/")[2]
