"""Field errors: a refused field, its place and what it may hold; never the given text, which may be held out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import inspect

_GIVEN = {
    "Invalid enum value ": "Invalid enum value",
    "Object contains unknown field ": "Object contains an unknown field",
}
"""How msgspec's sentences with a given text begin, and the sentences printed instead."""

_PLACE = re.compile(r"(.*?)(?: - at `\$\.?([^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


def sentence(error: str, kind: type) -> str:
    """msgspec's message for a value of this type, with the allowed values or fields instead of the given text."""
    found = _PLACE.fullmatch(error)
    said, place = (found[1], found[2] or "") if found else (error, "")
    where = f", at {place}" if place else ""
    for start, instead in _GIVEN.items():
        if said.startswith(start):
            return f"{instead}{where}; allowed: {', '.join(_allowed(_type_at(kind, place)))}"
    return said + where


def _type_at(kind: type, place: str) -> inspect.Type | None:
    """The type at a place such as `sessions[0].must[0].class`; None if the place has no single type."""
    found: inspect.Type | None = inspect.type_info(kind)
    for step in _STEP.findall(place):
        found = _inside(_whole(found), step)
    return _whole(found)


def _inside(found: inspect.Type | None, step: str) -> inspect.Type | None:
    match found:
        case inspect.StructType(fields=fields):
            return next((field.type for field in fields if field.encode_name == step), None)
        case inspect.VarTupleType(item_type=inner) | inspect.ListType(item_type=inner):
            return inner
        case _:
            return None


def _whole(found: inspect.Type | None) -> inspect.Type | None:
    """The type of a field that may be null."""
    if isinstance(found, inspect.UnionType):
        return next((inner for inner in found.types if not isinstance(inner, inspect.NoneType)), None)
    return found


def _allowed(found: inspect.Type | None) -> Sequence[str]:
    match found:
        case inspect.LiteralType(values=values):
            return [str(value) for value in values]
        case inspect.StructType(fields=fields):
            return [field.encode_name for field in fields]
        case _:
            return ["see evaluation/README.md"]
