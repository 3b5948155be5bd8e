"""The names of an update's parts and fields, as models write them: in any case, with underscores or spaces."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from msgspec import inspect as types

from memd.extraction.update import Evidence, NewFact, Update
from memd.memory.document import SECTIONS

_NOT_PLAIN = re.compile(r"[\W_]+")


@lru_cache(maxsize=1024)  # each name is asked for several times, in every reply
def plain(name: str) -> str:
    """A name without case, underscores and spaces, so that `new_facts` is `newFacts`."""
    return _NOT_PLAIN.sub("", name).casefold()


@cache
def fields_of(part: type) -> dict[str, types.Field]:
    """The fields of a Struct by their plain names."""
    info = types.type_info(part)
    assert isinstance(info, types.StructType)  # noqa: S101  (every part of an update is one)
    return {plain(one.encode_name): one for one in info.fields}


SYNONYMS: dict[tuple[type, str], str] = {
    (Evidence, "index"): "message",
    (Evidence, "text"): "quote",
    (NewFact, "issensitive"): "sensitive",
    (Update, "forgotten"): "forgottenfacts",
    (Update, "forgetfacts"): "forgottenfacts",
}
"""Other names of fields that can mean nothing else there. No name is guessed that is not here."""

_FACT_NAMES = frozenset(name for name, one in fields_of(NewFact).items() if one.required and name != "category")
_OF_ITEMS = frozenset({"content", "evidence", "quote", "fact"})
SECTION_NAMES = {plain(name): name for name in SECTIONS}
"""The names of the summaries, by their plain names."""


def is_update(value: dict[str, Any]) -> bool:
    """Whether an object names a part of an update. One that names none says nothing, not even that nothing changed."""
    return any(plain(name) in fields_of(Update) for name in value)


def is_new_fact(value: Any) -> bool:
    """Whether a value has every field that a new fact must have."""
    return isinstance(value, dict) and {plain(name) for name in value} >= _FACT_NAMES


def holds_items(value: Any) -> bool:
    """Whether a value that no part of an update names has what looks like facts in it."""
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, dict) and _OF_ITEMS & {plain(name) for name in item} for item in items)
