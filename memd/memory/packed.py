"""Packed facts: how a reader keeps many facts in memory, so that the garbage collector need not look at them.

The collector walks each list and each dict that holds one, again and again, and all that they name. A packed fact has
the bytes of the JSON in place of every list and object: it is a dict of texts and numbers, which the collector leaves
alone. JSON itself has no bytes, so nothing else is taken for packed. The accessors in `facts` read both kinds.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

# Its bytes take no more than they need; those of orjson.dumps keep the 4 KB that they were written in.
_ENCODE = msgspec.json.Encoder().encode


def pack(fact: dict[str, Any]) -> dict[str, Any]:
    """The fact with its lists and objects as JSON, its fields in the same order."""
    return {name: _ENCODE(value) if isinstance(value, list | dict) else value for name, value in fact.items()}


def unpack(fact: dict[str, Any]) -> dict[str, Any]:
    """The fact as it was before `pack`."""
    return {name: unpacked(value) for name, value in fact.items()}


def unpacked(value: Any) -> Any:
    """One value of a fact, packed or not."""
    return orjson.loads(value) if type(value) is bytes else value
