"""Checks of what a model or an app sends: Rejected with code, field and limit, never with the value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from memd.errors import Rejected
from memd.identifiers import clean_text, has_surrogate

T = TypeVar("T", bound=str)


def check_line(field: str, value: object, most: int, *, least: int = 1) -> str:
    """A text as one line: each run of white space becomes a space. `least` and `most` are characters. Raises Rejected.

    It is shown among the lines of a list, so no text can pretend to be another item.
    """
    return _of_length(field, " ".join(_text(field, value).split()), least, most)


def check_text(field: str, value: object, most: int) -> str:
    """A text of any lines, without the white space around it; `most` is characters. Raises Rejected."""
    return _of_length(field, _text(field, value).strip(), 0, most)


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


def check_id(field: str, value: object) -> int:
    """The id of a task. Raises Rejected."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Rejected(f"{_code(field)}_TYPE", f"{field} takes ids of tasks, which are whole numbers", field)
    return value


def _text(field: str, value: object) -> str:
    """Text without the characters that only attacks use, as in messages."""
    if not isinstance(value, str):
        raise Rejected(f"{_code(field)}_TYPE", f"{field} must be a string", field)
    if has_surrogate(value):
        raise Rejected(f"{_code(field)}_SURROGATE", f"{field} has a lone surrogate", field)
    return clean_text(value)


def _of_length(field: str, text: str, least: int, most: int) -> str:
    if not least <= len(text) <= most:
        sentence = f"{field} must have {least} to {most} characters, it has {len(text)}"
        raise Rejected(f"{_code(field)}_LENGTH", sentence, field, most)
    return text


def _code(field: str) -> str:
    """The code of a field: that of `items[3].text` is E_ITEMS_TEXT."""
    return "E_" + re.sub(r"\[\d+\]", "", field).replace(".", "_").upper()
