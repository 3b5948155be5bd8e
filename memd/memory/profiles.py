"""Profiles: who somebody is to an assistant, in a few fields that every prompt begins with. Pure.

`profile: {field: {value, updatedAt, source, factIds}}` in a document: of a user by USER_FIELDS, of a project by
PROJECT_FIELDS. A person sets any field; a model fills only some of a user's, from facts of the same document, and a
field whose facts are all gone is no longer there. What a person has set is never overwritten. `content`, the user's own
instructions, is by hand only: it is the one text that may command the assistant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal, NamedTuple

from memd.errors import Rejected
from memd.memory.document import Document, facts_of, project_of
from memd.memory.facts import MANUAL, created_at, id_of
from memd.memory.text import one_line

Value = str | list[str]

__all__ = ["MANUAL", "MODEL", "MOST_ITEMS", "OFFERED", "PROJECT_FIELDS", "USER_FIELDS", "ProfileEntry", "ProfileField"]

MODEL = "model"
"""The source of fields that a model filled."""

EVERY = 5
"""New facts after which a model is asked for the profile again, as far as nobody asked yet."""


@dataclass(frozen=True, slots=True)
class ProfileField:
    """One field: its label in a prompt, its kind, and its bounds. `by_hand`: no model fills it."""

    label: str
    kind: Literal["text", "choice", "tag", "list"] = "text"
    most_chars: int = 200
    choices: tuple[str, ...] = ()
    by_hand: bool = False


MOST_ITEMS = 20
"""Items of a list at most; each has at most the characters of its field."""

USER_FIELDS: Mapping[str, ProfileField] = {
    "username": ProfileField("Name", most_chars=100),
    "profession": ProfileField("Profession", most_chars=100),
    "background": ProfileField("Background", most_chars=300),
    "languagePreference": ProfileField("Language", "tag", 35),
    "communicationStyle": ProfileField("Style", "choice", choices=("concise", "detailed", "technical")),
    "responseFormat": ProfileField("Format", "choice", choices=("markdown", "plain", "code")),
    "characteristics": ProfileField("Characteristics", most_chars=300),
    "expertiseAreas": ProfileField("Expertise", "list", 60),
    "programmingLanguages": ProfileField("Programming languages", "list", 40),
    "frequentlyUsedTools": ProfileField("Tools", "list", 60),
    "content": ProfileField("Instructions", most_chars=2_000, by_hand=True),
}
"""The fields of a user's profile (SYSTEMS.md, Zeus), in the order in which they are shown."""

PROJECT_FIELDS: Mapping[str, ProfileField] = {
    "projectGoal": ProfileField("Goal", most_chars=500),
    "currentPhase": ProfileField("Phase", most_chars=200),
    "techStack": ProfileField("Stack", "list", 60),
    "constraints": ProfileField("Constraints", "list", 200),
    "teamConventions": ProfileField("Conventions", "list", 200),
}
"""The fields of a project's profile that people set. Its key decisions are its facts of category decision."""

OFFERED = tuple(name for name, field in USER_FIELDS.items() if not field.by_hand)
"""The fields that a model may fill."""

_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_UNDERSCORE = re.compile(r"_([a-z])")


class ProfileEntry(NamedTuple):
    """A field as it stands: its value, when and by whom it was set, and the facts that it rests on."""

    value: Value
    updated_at: str
    source: str
    fact_ids: tuple[str, ...] = ()


def fields_for(document: Document) -> Mapping[str, ProfileField]:
    """The table of a document's fields."""
    return PROJECT_FIELDS if project_of(document) else USER_FIELDS


def field_name(name: str, table: Mapping[str, ProfileField]) -> str:
    """The name of a field as documents have it; `programming_languages` is another way to write it. Raises Rejected."""
    found = _UNDERSCORE.sub(lambda match: match[1].upper(), name) if isinstance(name, str) else ""
    if found not in table:
        raise Rejected("E_PROFILE_FIELD", f"the fields of this profile are {', '.join(table)}", "field")
    return found


def checked(name: str, value: object, table: Mapping[str, ProfileField]) -> Value:
    """A value for a field of the table, on one line each. Raises Rejected."""
    field = table[name]
    if field.kind == "list":
        items = value if isinstance(value, list) else None
        if items is None or not all(isinstance(item, str) for item in items):
            raise Rejected("E_PROFILE_TYPE", f"{name} is a list of texts", name)
        clean = list(dict.fromkeys(filter(None, map(one_line, items))))
        if len(clean) > MOST_ITEMS:
            raise Rejected("E_PROFILE_COUNT", f"{name} has at most {MOST_ITEMS} items", name, MOST_ITEMS)
        for item in clean:
            _check_length(name, item, field)
        return _there(name, clean)
    if not isinstance(value, str):
        raise Rejected("E_PROFILE_TYPE", f"{name} is a text", name)
    text = one_line(value)
    if field.kind == "choice" and text not in field.choices:
        raise Rejected("E_PROFILE_VALUE", f"{name} is one of {', '.join(field.choices)}", name)
    if field.kind == "tag" and not _TAG.fullmatch(text):
        raise Rejected("E_PROFILE_VALUE", f"{name} is a language tag, such as en or zh-CN", name)
    _check_length(name, text, field)
    return _there(name, text)


def profile_of(document: Document) -> dict[str, ProfileEntry]:
    """The profile in the order of its table, without fields whose facts are gone; broken ones are left out."""
    held = document.get("profile")
    if not isinstance(held, dict):
        return {}
    alive = {id_of(fact) for fact in facts_of(document)}
    table = fields_for(document)
    entries = ((name, _entry(name, held.get(name), table)) for name in table)
    return {name: entry for name, entry in entries if entry is not None and _stands(entry, alive)}


def with_field(
    document: Document, name: str, value: Value, now: str, *, source: str = MANUAL, fact_ids: Iterable[str] = ()
) -> Document:
    """A copy in which a field has this value."""
    entry: dict[str, Any] = {"value": value, "updatedAt": now, "source": source}
    if ids := list(fact_ids):
        entry["factIds"] = ids
    return {**document, "profile": {**_held(document), name: entry}}


def without_field(document: Document, name: str) -> Document:
    """A copy without a field; the very same when it has none."""
    held = _held(document)
    if name not in held:
        return document
    return _with_held(document, {field: entry for field, entry in held.items() if field != name})


def settled(document: Document) -> Document:
    """The document without the fields whose facts are gone; the very same when there are none."""
    held = _held(document)
    if not held:
        return document
    alive = {id_of(fact) for fact in facts_of(document)}
    table = fields_for(document)
    kept = {
        name: entry
        for name, entry in held.items()
        if (read := _entry(name, entry, table)) is None or _stands(read, alive)
    }
    return document if len(kept) == len(held) else _with_held(document, kept)


def without_facts(document: Document, ids: Collection[str]) -> Document:
    """The document without the fields that a model made of any of these facts; the very same when there are none."""
    held = _held(document)
    table = fields_for(document)
    kept = {
        name: entry
        for name, entry in held.items()
        if (read := _entry(name, entry, table)) is None or read.source == MANUAL or not _rests_on(read, ids)
    }
    return document if len(kept) == len(held) else _with_held(document, kept)


def without_texts(document: Document, says: Callable[[str], bool]) -> Document:
    """The document without the fields whose value says this (a test of texts); the very same when there are none."""
    held = _held(document)
    table = fields_for(document)
    kept = {
        name: entry
        for name, entry in held.items()
        if (read := _entry(name, entry, table)) is None or not any(map(says, texts_of(read.value)))
    }
    return document if len(kept) == len(held) else _with_held(document, kept)


def texts_of(value: Value) -> list[str]:
    """The texts of a value."""
    return [value] if isinstance(value, str) else value


def lines_of(document: Document) -> Iterator[tuple[str, str]]:
    """The label and the text of each field, in the order in which a prompt shows them."""
    table = fields_for(document)
    for name, entry in profile_of(document).items():
        yield table[name].label, ", ".join(texts_of(entry.value))


def is_due(document: Document, now: datetime) -> bool:
    """Whether a model is to be asked for the profile: EVERY facts have come since it was asked last.

    `now` is only for documents that say so in the future, by a clock that went wrong: these are not due for ever.
    """
    asked = document.get("profiledAt")
    since = asked if isinstance(asked, str) and asked <= now.strftime("%Y-%m-%dT%H:%M:%SZ") else ""
    new = (fact for fact in reversed(facts_of(document)) if created_at(fact) > since)
    return len(list(islice(new, EVERY))) == EVERY


def _held(document: Document) -> dict[str, Any]:
    held = document.get("profile")
    return held if isinstance(held, dict) else {}


def _with_held(document: Document, held: dict[str, Any]) -> Document:
    rest = {name: value for name, value in document.items() if name != "profile"}
    return {**rest, "profile": held} if held else rest


def _rests_on(entry: ProfileEntry, ids: Collection[str]) -> bool:
    """Whether an entry rests on any of these facts."""
    return any(one in ids for one in entry.fact_ids)


def _stands(entry: ProfileEntry, alive: set[str]) -> bool:
    return entry.source == MANUAL or not alive.isdisjoint(entry.fact_ids)


def _entry(name: str, value: object, table: Mapping[str, ProfileField]) -> ProfileEntry | None:
    match value:
        case {"value": held, "source": str(source), **rest} if name in table:
            try:
                clean = checked(name, held, table)
            except Rejected:  # broken by hand: read as absent
                return None
            ids = rest.get("factIds")
            names = tuple(one for one in ids if isinstance(one, str)) if isinstance(ids, list) else ()
            return ProfileEntry(clean, str(rest.get("updatedAt") or ""), source, names)
    return None


def _check_length(name: str, text: str, field: ProfileField) -> None:
    if len(text) > field.most_chars:
        sentence = f"{name} has at most {field.most_chars} characters" + (" an item" if field.kind == "list" else "")
        raise Rejected("E_PROFILE_LENGTH", sentence, name, field.most_chars)


def _there(name: str, value: Value) -> Value:
    if not value:
        raise Rejected("E_PROFILE_EMPTY", f"{name} must not be empty; unset it instead", name)
    return value
