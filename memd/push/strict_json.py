"""JSON read strictly: valid UTF-8, no name given twice, bounded depth, count of values and length of numbers.

For any bytes it returns a value or raises `Rejected`, whose text never quotes the bytes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import orjson

from memd.errors import Rejected

MAX_DEPTH = 64
MAX_ITEMS = 150_000
"""JSON values in one push: 3,000 messages as LangChain writes them have fewer, and they are checked in 50 ms."""

SHORT_BYTES = 2_048
"""JSON of so few bytes has few values, and no more levels than opening brackets: counting those is enough. To count the
brackets of a longer one takes longer than to walk through it."""

MAX_NUMBER_CHARS = 32

_NAME_ENDS = re.compile(rb'"[ \t\r\n]*:')
"""The end of a name in JSON. Text may contain it too, but every name ends with it."""

_NESTS = (dict, list, tuple)


def parse_json(raw: bytes) -> Any:
    """Any JSON value, read as strictly as a raw push. Raises Rejected, and no other error, for any bytes."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        refuse("E_UTF8", f"not UTF-8 at byte {error.start}")
    return _json(raw)


def check_values(value: object, max_bytes: int) -> None:
    """The same checks for Python values that never were bytes. Raises Rejected."""
    try:
        raw = orjson.dumps(value)
    except (TypeError, ValueError):  # not JSON, or a lone surrogate; orjson's message may quote the value
        _look_through(value)
        refuse("E_JSON", "a push must have only values of JSON, and no lone surrogate")
    if len(raw) > SHORT_BYTES or raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _look_through(value)
    if len(raw) > max_bytes:
        refuse("E_PUSH_SIZE", f"a push has at most {max_bytes} bytes", limit=max_bytes)


def refuse(code: str, sentence: str, field: str = "", limit: int | None = None) -> NoReturn:
    """Raise Rejected."""
    raise Rejected(code, sentence, field, limit)


def _json(raw: bytes) -> Any:
    """The value of the bytes. A slow parser reads them again when a name may be duplicate or a number too long.

    When the bytes have as many ends of names as the value has names, every name is unique. orjson reads a number that
    is too long as a float.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:  # its message may quote the text; only the kind is passed on
        _refuse_form(str(error))
    names, floats = _look_through(value)
    if floats or names != len(_NAME_ENDS.findall(raw)):
        try:
            json.loads(raw, object_pairs_hook=_object, parse_int=_number, parse_float=_number)
        except ValueError:  # only orjson accepts it: a number out of range, or the like
            refuse("E_JSON", "not valid JSON")
    return value


def _refuse_form(words: str) -> NoReturn:
    if "surrogate" in words:
        refuse("E_SURROGATE", "a string has a lone surrogate")
    if "recursion" in words:
        refuse("E_DEPTH", f"JSON is nested more than {MAX_DEPTH} deep", limit=MAX_DEPTH)
    refuse("E_JSON", "not valid JSON")


def _object(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        refuse("E_DUPLICATE_KEY", "a JSON object names a key twice")


def _number(text: str) -> None:
    if len(text) > MAX_NUMBER_CHARS:
        refuse("E_NUMBER", f"a number has at most {MAX_NUMBER_CHARS} characters", limit=MAX_NUMBER_CHARS)


def _look_through(value: object) -> tuple[int, bool]:
    """Count the names of the value's objects, and tell whether it has a float. Refuses too many levels or values.

    It walks level by level, without recursion.
    """
    items, names, floats, level = 0, 0, False, [value]
    for _ in range(MAX_DEPTH + 1):
        floats = floats or float in map(type, level)
        nests = [part for part in level if isinstance(part, _NESTS)]
        items += sum(map(len, nests))
        if items > MAX_ITEMS:
            refuse("E_ITEMS", f"JSON has at most {MAX_ITEMS} values", limit=MAX_ITEMS)
        if not nests:
            return names, floats
        level = []
        for part in nests:
            if isinstance(part, dict):
                names += len(part)
                level += part.values()
            else:
                level += part
    refuse("E_DEPTH", f"JSON is nested more than {MAX_DEPTH} deep", limit=MAX_DEPTH)
