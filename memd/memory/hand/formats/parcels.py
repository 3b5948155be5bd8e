"""Parcels: what each importable format is read into, and what the readers share.

A reader is pure: a JSON value in, parcels out, or Rejected with code and place and never a value. It selects fields and
leaves all judgement to the gates (`memory.hand.imports`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NoReturn

from memd.errors import Rejected
from memd.memory.document import Fact

Format = Literal["memd", "deerflow", "mem0", "langgraph", "redis", "memobase", "chatgpt", "claude"]

MAX_FACTS = 20_000
"""Facts that one import may offer a memory: four times the most that any memory keeps."""

FILES = "files"
"""The field of a value that stands for a folder or an archive: text or JSON by path; see `bundles`."""


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

    @property
    def keeps_ids(self) -> bool:
        """Whether its facts have ids of our form."""
        return self.source in ("memd", "deerflow")


@dataclass(frozen=True, slots=True)
class ChatThread:
    """A conversation of an export: it is pushed, and the model extracts from it what is worth remembering."""

    thread_id: str
    messages: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ImportContents:
    """What an import holds. `notes`: sentences for who imports it, such as that a page is missing."""

    format: Format
    parcels: tuple[Parcel, ...]
    threads: tuple[ChatThread, ...] = ()
    notes: tuple[str, ...] = ()


class ImportFormat(NamedTuple):
    """A row of the table: the name of a format, what it is, whether a value has it, and its reader.

    `read` takes the value and the user whose memory it becomes.
    """

    name: Format
    what: str
    recognises: Callable[[Any], bool]
    read: Callable[[Any, str], ImportContents]


def refuse(code: str, sentence: str, field: str = "", limit: int | None = None) -> NoReturn:
    """Raise Rejected."""
    raise Rejected(code, sentence, field, limit)


def entries(value: object, *names: str) -> list[dict[str, Any]]:
    """The objects of a list, or of the list in the first of these fields that the value has. Raises Rejected."""
    name = next((name for name in names if isinstance(value, dict) and name in value), "")
    found = value[name] if isinstance(value, dict) and name else value
    name = name or names[0]
    if not isinstance(found, list):
        refuse("E_IMPORT_SHAPE", f"{name} must be a list", name)
    for number, item in enumerate(found):
        if not isinstance(item, dict):
            refuse("E_IMPORT_SHAPE", f"{name}[{number}] must be an object", f"{name}[{number}]")
    return found


def first_entry(value: object, *names: str) -> dict[str, Any]:
    """The first object of such a list, to recognise a format by; empty when there is none."""
    lists = [value, *(value.get(name) for name in names)] if isinstance(value, dict) else [value]
    return next((item for one in lists if isinstance(one, list) for item in one[:1] if isinstance(item, dict)), {})


def text_at(item: dict[str, Any], *names: str) -> str:
    """The first of these fields that holds text; "" when none does."""
    return next((text for name in names if isinstance(text := item.get(name), str) and text.strip()), "")


def files_of(value: object) -> dict[str, Any]:
    """The files of a value that stands for a folder; empty for any other value."""
    files = value.get(FILES) if isinstance(value, dict) else None
    return files if isinstance(files, dict) else {}


OF_ANOTHER = "all of these name one user, and not the one that you name: they become the memories of the one you name"


def named_otherwise(items: Iterable[dict[str, Any]], user_id: str, field: str = "user_id") -> tuple[str, ...]:
    """A sentence where the other system calls the one user of these items otherwise: the name may be mistyped."""
    owners = {item[field] for item in items if isinstance(item.get(field), str)}
    return (OF_ANOTHER,) if len(owners) == 1 and user_id not in owners else ()


def of_user(
    items: Iterable[dict[str, Any]], user_id: str, refused: Counter[str], field: str = "user_id"
) -> list[dict[str, Any]]:
    """The items of this user. Items of one user only are theirs, whatever the other system called them.

    An export without a filter holds many users: nobody must get another user's memories.
    """
    listed = list(items)
    owners = {item[field] for item in listed if isinstance(item.get(field), str)}
    own = listed if len(owners) <= 1 else [item for item in listed if item.get(field) == user_id]
    refused["other_user"] += len(listed) - len(own)
    return own
