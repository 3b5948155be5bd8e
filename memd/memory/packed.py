"""Packed facts: how a reader keeps many facts in memory, so that the garbage collector need not look at them.

The collector walks each list and each dict that holds one, again and again, and all that they name. A packed fact has
the bytes of the JSON in place of every list and object: it is a dict of texts and numbers, which the collector leaves
alone. JSON itself has no bytes, so nothing else is taken for packed. The accessors in `facts` read both kinds.

Even a reference to such a dict costs a look at it, which is seldom in the processor's cache. So `PackedFacts` holds
each in a struct that the collector does not know, all in one tuple, which it leaves alone after its first look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, overload

import msgspec
import orjson
from msgspec import Struct

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


class _Held(Struct, gc=False):
    """One packed fact, out of the collector's sight: it holds texts, numbers and bytes, so nothing that leads back."""

    fact: dict[str, Any]


class PackedFacts(Sequence[dict[str, Any]]):
    """Packed facts in order. It never changes."""

    __slots__ = ("_held",)

    def __init__(self, packed: Iterable[dict[str, Any]]) -> None:
        self._held = tuple(map(_Held, packed))

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(attrgetter("fact"), self._held)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> PackedFacts: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | PackedFacts:
        if isinstance(place, slice):
            return PackedFacts(held.fact for held in self._held[place])
        return self._held[place].fact
