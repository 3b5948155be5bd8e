"""Checks of what a model or an app sends: Rejected with code, field and limit, never with the value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

from memd.errors import Rejected

MAX_ID_BYTES = 256
"""Bytes of a user id, an agent name, the name of a list; as everywhere in memd."""

T = TypeVar("T", bound=str)

_SURROGATE = re.compile("[\ud800-\udfff]")
_IN_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IN_NO_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check_line(field: str, value: object, most: int, *, least: int = 1) -> str:
    """A text of one line, without the white space around it; `least` and `most` are characters. Raises Rejected."""
    text = check_text(field, value, most, least=least)
    if _IN_NO_LINE.search(text):
        raise Rejected(f"{_code(field)}_CTRL", f"{field} must be one line without control characters", field)
    return text


def check_text(field: str, value: object, most: int, *, least: int = 0) -> str:
    """A text without the white space around it; `least` and `most` are characters. Raises Rejected."""
    if not isinstance(value, str):
        raise Rejected(f"{_code(field)}_TYPE", f"{field} must be a string", field)
    text = value.strip()
    if not least <= len(text) <= most:
        sentence = f"{field} must have {least} to {most} characters, it has {len(text)}"
        raise Rejected(f"{_code(field)}_LENGTH", sentence, field, most)
    if _SURROGATE.search(text):
        raise Rejected(f"{_code(field)}_SURROGATE", f"{field} has a lone surrogate", field)
    if _IN_NO_TEXT.search(text):
        raise Rejected(f"{_code(field)}_CTRL", f"{field} has a control character", field)
    return text


def check_name(field: str, value: object, *, least: int = 1) -> str:
    """An id or a name that becomes a part of a path, unchanged: at most 256 bytes. Raises Rejected."""
    name = check_line(field, value, MAX_ID_BYTES, least=least)
    if name != value:
        raise Rejected(f"{_code(field)}_SPACE", f"{field} has white space around it", field)
    if len(name.encode()) > MAX_ID_BYTES:
        sentence = f"{field} must have at most {MAX_ID_BYTES} bytes"
        raise Rejected(f"{_code(field)}_LENGTH", sentence, field, MAX_ID_BYTES)
    return name


def check_choice(field: str, value: object, choices: Iterable[T]) -> T:
    """One of the choices. Raises Rejected."""
    choices = tuple(choices)
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    raise Rejected(_code(field), f"{field} must be one of: {', '.join(choices)}", field)


def check_ids(field: str, value: object) -> frozenset[int]:
    """Ids of tasks. Raises Rejected."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise Rejected(f"{_code(field)}_TYPE", f"{field} must be a list of ids of tasks", field)
    return frozenset(check_id(field, one) for one in value)


def check_id(field: str, value: Any) -> int:
    """The id of a task. Raises Rejected."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Rejected(f"{_code(field)}_TYPE", f"{field} takes ids of tasks, which are whole numbers", field)
    return value


def _code(field: str) -> str:
    """The code of a field: `items[3].text` is E_ITEMS_TEXT."""
    return "E_" + re.sub(r"\[\d+\]", "", field).replace(".", "_").upper()
