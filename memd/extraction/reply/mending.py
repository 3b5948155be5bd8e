"""Makes an update of the object in a reply: mends what has one meaning, and judges each item alone.

An item that stays wrong is refused and named by its place. No quote, id, confidence or standing (scope, durability,
authority) is ever filled in or moved into its bounds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import inspect as types

from memd.extraction.reply.lenient_json import UNUSABLE
from memd.extraction.reply.names import SECTION_NAMES, SYNONYMS, fields_of, holds_items, plain
from memd.extraction.update import (
    AFFECTED,
    REQUIRED,
    BadReply,
    ConfirmedFact,
    Evidence,
    ForgottenFact,
    Id,
    NewFact,
    Number,
    RetiredFact,
    Subject,
    Update,
)
from memd.memory.document import SECTIONS

DEFAULTS = {(NewFact, "category"): "", (RetiredFact, "reason"): "", (Subject, "relationship"): ""}
"""What stands for a missing text that no gate rests on. An empty category becomes the default one."""

ENTRIES: dict[str, Any] = {"evidence": Evidence, "replaces": Id}
"""The lists in a new fact that lose a bad entry and keep the others."""

SAID = (NewFact, ConfirmedFact, RetiredFact, ForgottenFact)
"""The items that come from messages: those beyond the bound of their list are asked for again, in halves."""

FILLERS = frozenset({"", "null", "none", "n/a", "undefined"})
"""Texts that models write where an optional field has no value."""

YES_OR_NO = {"true": True, "yes": True, "1": True, "是": True, "false": False, "no": False, "0": False, "否": False}
"""Values of a label as models write them beside JSON's own."""

_WHOLE = re.compile(r"[+-]?\d{1,9}")
_DECIMAL = re.compile(r"(\d{0,9}\.?\d{1,9})\s*(%?)")
_PLACE = re.compile(r" - at `\$((?:\.\w+|\[\d+\])*)`\Z")


@dataclass(slots=True)
class Mending:
    """One update in the making. `mended` counts repairs by kind, `malformed` names the refused items."""

    mended: Counter[str]
    malformed: list[str] = field(default_factory=list)
    over: int = 0
    """Items of what was said beyond the most that their list may have."""

    _good: int = 0

    def update(self, value: dict[str, Any]) -> Update:
        """The update without its refused items. Raises BadReply when a part is no list, or no item is left."""
        value = {name: inner for name, inner in value.items() if name != AFFECTED}
        if any(holds_items(inner) for name, inner in value.items() if plain(name) not in fields_of(Update)):
            raise BadReply("unknown_part")  # `facts` for `newFacts`: leaving it out would lose what was said
        parts = self._named(value, Update)
        lists: dict[str, Any] = {
            one.name: self._numbers(parts["hide"], one)
            if one.name == "hide"
            else self._items(parts[one.encode_name], one)
            for one in fields_of(Update).values()
            if one.encode_name in parts and one.name != "summaries"
        }
        summaries = self._summaries(parts.get("summaries"))
        missing = [name for name in REQUIRED if name not in parts]
        if missing:
            self.mended["missing_list"] += len(missing)
        if self.malformed and not self._good:
            raise BadReply("malformed", self.malformed[0])
        return Update(summaries, **lists)

    def _named(self, value: dict[str, Any], part: type) -> dict[str, Any]:
        """An object with the names of its Struct's fields; the others are left out."""
        result: dict[str, Any] = {}
        for name, inner in value.items():
            one = fields_of(part).get(SYNONYMS.get((part, plain(name)), plain(name)))
            if one is None:
                self.mended["extra_field"] += 1
                continue
            if name != one.encode_name:
                self.mended["field_name"] += 1
            differs = one.encode_name in result and result[one.encode_name] != inner  # `new_facts` beside `newFacts`
            result[one.encode_name] = UNUSABLE if differs else inner
        return result

    def _summaries(self, value: Any) -> dict[str, str]:
        """The summaries in their fixed order. Null means absent."""
        if value is None or value == []:
            return {}
        value = self._decoded(value, dict)
        if not isinstance(value, dict):
            raise BadReply("wrong_type", "summaries")
        texts: dict[str, str] = {}
        for given, held in value.items():
            name, text = SECTION_NAMES.get(plain(given)), held
            if text is None:
                continue
            if isinstance(held, dict) and isinstance(held.get("summary"), str):  # as the document holds it
                self.mended["wrapper"] += 1
                text = held["summary"]
            if name is None or not _is_text(text) or len(text) > 10_000 or texts.get(name, text) != text:
                self.malformed.append(f"summaries.{name or '*'}")
                continue
            if given != name:
                self.mended["field_name"] += 1
            texts[name] = text
        self._good += len(texts)
        return {name: texts[name] for name in SECTIONS if name in texts}

    def _items(self, value: Any, one: types.Field) -> tuple[Any, ...]:
        """The good items of one list of the update."""
        name, node = one.encode_name, one.type
        assert isinstance(node, types.VarTupleType)  # noqa: S101  (this part is a list of Structs)
        assert isinstance(node.item_type, types.StructType)  # noqa: S101
        if value is None:
            self.mended["null_list"] += 1
            return ()
        part, most = node.item_type.cls, node.max_length or 0
        items = self._structs(value, part)
        if not isinstance(items, list):
            raise BadReply("wrong_type", name)
        judged = (self._item(raw, part, f"{name}[{index}]") for index, raw in enumerate(items[:most]))
        good = tuple(item for item in judged if item is not None)
        if part in SAID:
            self.over += max(0, len(items) - most)
        else:
            self.malformed += [f"{name}[{index}]" for index in range(most, len(items))]
        if part is NewFact and items and not good:
            raise BadReply("malformed", self.malformed[0])
        self._good += len(good)
        return good

    def _numbers(self, value: Any, one: types.Field) -> tuple[int, ...]:
        """The good entries of a list of numbers."""
        name, node = one.encode_name, one.type
        assert isinstance(node, types.VarTupleType)  # noqa: S101  (as `Update` declares it)
        items = self._list([value] if type(value) is int else [] if value is None else value)
        if not isinstance(items, list):
            raise BadReply("wrong_type", name)
        good: list[int] = []
        for index, raw in enumerate(items):
            try:
                number: int = msgspec.convert(self._value(raw, node.item_type), Number)
            except msgspec.ValidationError:
                self.malformed.append(f"{name}[{index}]")
            else:
                good.append(number)
        most = node.max_length or 0
        self.malformed += [f"{name}[{index}]" for index in range(most, len(good))]
        self._good += len(good)
        return tuple(good[:most])

    def _structs(self, value: Any, part: type) -> Any:
        """The items of a list; of an object, either the one item that it is, or its values, where they are items."""
        if value == {} or (isinstance(value, str) and value.strip().casefold() in FILLERS):
            return self._list(value)
        value = self._decoded(self._decoded(value, list), dict)
        if not isinstance(value, dict):
            return value
        if any(plain(name) in fields_of(part) for name in value):
            self.mended["single_item"] += 1
            return [value]
        if all(isinstance(held, dict) for held in value.values()):  # {"0": {...}, "1": {...}}
            self.mended["numbered"] += 1
            return list(value.values())
        return value

    def _item(self, raw: Any, part: type, place: str) -> Any:
        """One item as its Struct; None when it is refused."""
        value = self._struct(raw, part)
        if part is NewFact and isinstance(value, dict) and not self._proofs(value, place):
            return None
        try:
            return msgspec.convert(value, part)
        except msgspec.ValidationError as error:
            self.malformed.append(place + _place_in(error))
            return None

    def _proofs(self, fact: dict[str, Any], place: str) -> bool:
        """Leave bad quotes and bad ids to replace out of a fact. False when quotes were given and none is good."""
        for name in ("evidence", "replaces"):
            node = fields_of(NewFact)[name].type
            entries = fact.get(name)
            if not isinstance(node, types.VarTupleType) or not isinstance(entries, list):
                continue
            good, bad = [], []
            for index, entry in enumerate(entries):
                try:
                    msgspec.convert(entry, ENTRIES[name])
                except msgspec.ValidationError as error:
                    bad.append(f"{place}.{name}[{index}]{_place_in(error)}")
                else:
                    good.append(entry)
            most = node.max_length or 0
            bad += [f"{place}.{name}[{index}]" for index in range(most, len(good))]
            if name == "evidence" and bad and not good:
                self.malformed.append(bad[0])
                return False
            fact[name] = good[:most]
            self.malformed += bad
        return True

    def _struct(self, raw: Any, part: type) -> Any:
        """The object of a Struct, with everything in it mended; what is no object stays, and is refused later."""
        raw = self._decoded(raw, dict)
        if isinstance(raw, list) and len(raw) == 1 and isinstance(raw[0], dict):
            self.mended["single_item"] += 1
            raw = raw[0]
        if not isinstance(raw, dict):
            return raw
        if part is NewFact:
            raw = self._with_evidence(raw)
        result = {}
        for name, inner in self._named(raw, part).items():
            one = fields_of(part)[plain(name)]
            if not one.required and self._is_absent(inner):
                continue
            value = self._value(inner, one.type)
            if not one.required and isinstance(value, dict) and not any(value.values()):
                self.mended["filler"] += 1  # {"person": "", "relationship": ""}
                continue
            result[name] = value
        for (owner, name), text in DEFAULTS.items():
            if owner is part and result.get(name) is None:
                self.mended["missing_field"] += 1
                result[name] = text
        return result

    def _with_evidence(self, fact: dict[str, Any]) -> dict[str, Any]:
        """A fact whose one proof stands beside its content. With evidence of its own, nobody knows which one counts."""
        beside = {name: plain(name) for name in fact if plain(name) in ("message", "quote")}
        if sorted(beside.values()) != ["message", "quote"] or "evidence" in map(plain, fact):
            return fact
        self.mended["wrapper"] += 1
        rest = {name: value for name, value in fact.items() if name not in beside}
        return {**rest, "evidence": [{beside[name]: fact[name] for name in beside}]}

    def _is_absent(self, value: Any) -> bool:
        """Whether the value says that the optional field is left out."""
        if isinstance(value, str) and value.strip().casefold() in FILLERS:
            self.mended["filler"] += 1
            return True
        return value is None

    def _value(self, value: Any, node: types.Type) -> Any:
        """A value in the type of its field, where it has one meaning in it; else the value as it is."""
        match node:
            case types.UnionType():
                return self._value(value, next(one for one in node.types if not isinstance(one, types.NoneType)))
            case types.StructType():
                return self._struct(value, node.cls)
            case types.VarTupleType():
                items = self._list(value)
                return [self._value(item, node.item_type) for item in items] if isinstance(items, list) else items
            case types.FloatType() | types.IntType() if isinstance(value, str):
                return self._number(value, node)
            case types.IntType() if isinstance(value, float) and value.is_integer():
                self.mended["number"] += 1
                return int(value)
            case types.BoolType() if isinstance(value, str | int):
                exact = str(value).strip().casefold()
                self.mended["letter_case"] += not isinstance(value, bool) and exact in YES_OR_NO
                return YES_OR_NO.get(exact, value)
            case types.LiteralType() if isinstance(value, str):
                exact = value.strip().casefold()
                self.mended["letter_case"] += exact != value
                return exact
            case types.StrType() if isinstance(value, list) and len(value) == 1:
                self.mended["single_item"] += 1
                return self._value(value[0], node)
            case types.StrType() if isinstance(value, str) and not _is_text(value):
                return UNUSABLE
        return value

    def _number(self, text: str, node: types.Type) -> Any:
        """A number written as text: "0.9", "90%", "30"."""
        exact = text.strip()
        value: Any = text
        if isinstance(node, types.IntType):
            value = int(exact) if _WHOLE.fullmatch(exact) else text
        elif found := _DECIMAL.fullmatch(exact):
            value = float(found[1]) / (100 if found[2] else 1)
        self.mended["number"] += value is not text
        return value

    def _list(self, value: Any) -> Any:
        """A list, or a single item as a list of one."""
        value = self._decoded(value, list)
        if value == {} or (isinstance(value, str) and value.strip().casefold() in FILLERS):
            self.mended["filler"] += 1
            return []
        if isinstance(value, dict | str):
            self.mended["single_item"] += 1
            return [value]
        return value

    def _decoded(self, value: Any, wanted: type) -> Any:
        """A value that was encoded as JSON once more."""
        if not isinstance(value, str) or value.lstrip()[:1] != ("{" if wanted is dict else "["):
            return value
        try:
            decoded = json.loads(value)
        except (ValueError, RecursionError):  # a text that only begins like one; validation judges it
            return value
        self.mended["encoded"] += 1
        return decoded


def _place_in(error: msgspec.ValidationError) -> str:
    """The place inside an item. It only has names of our fields: a message may quote the reply."""
    found = _PLACE.search(str(error))
    return found[1] if found else ""


def _is_text(value: Any) -> bool:
    """Whether a value is text that can be written: without halves of characters."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
