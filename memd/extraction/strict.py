"""Strict JSON of hostile origin: one value, no duplicate keys, no NaN, no endless numbers, no lone surrogates."""

from __future__ import annotations

import json
from typing import Any


def loads(text: str) -> Any:
    """Parse, or raise ValueError, whose message may quote the text: drop it. Infinite floats are left to the schema."""
    try:
        text.encode()
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate key")
    return result


def _refuse(_: str) -> Any:
    raise ValueError("not a number")
