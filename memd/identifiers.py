"""Identifiers of users, agents and threads: compared byte by byte, never normalised. And what no text may hold."""

from __future__ import annotations

import re
from typing import NoReturn

from memd.errors import Rejected

MAX_ID_BYTES = 256

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_NONCHARACTERS = "\ufdd0-\ufdef\ufffe\uffff" + "".join(
    f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 17)
)
_TAGS = "\U000e0000-\U000e007f"
_SURROGATES = "\ud800-\udfff"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_NOT_IN_IDS = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029{_BIDI}{_TAGS}{_NONCHARACTERS}]")
_NOT_IN_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}{_TAGS}{_NONCHARACTERS}]")
_SURROGATE = re.compile(f"[{_SURROGATES}]")
_USUAL = bytes({*range(0x20, 0x7F), *b"\n\t"})


def check_identifier(field: str, value: object) -> str:
    """The identifier, unchanged: 1 to 256 bytes, no control, bidi, tag or non-characters, no white space around it."""
    if (  # fast path: an identifier that is plainly valid, as nearly all are
        isinstance(value, str)
        and value.isascii()
        and value.isprintable()
        and 1 <= len(value) <= MAX_ID_BYTES
        and value[0] != " " != value[-1]
    ):
        return value
    code = f"E_{field.upper()}"
    if value is None:
        _refuse(f"{code}_MISSING", f"{field} is required", field)
    if not isinstance(value, str):
        _refuse(f"{code}_TYPE", f"{field} must be a string", field)
    if has_surrogate(value):
        _refuse(f"{code}_SURROGATE", f"{field} has a lone surrogate", field)
    size = len(value.encode())
    if not 1 <= size <= MAX_ID_BYTES:
        _refuse(f"{code}_LENGTH", f"{field} must have 1 to {MAX_ID_BYTES} bytes, it has {size}", field, MAX_ID_BYTES)
    if bad := _NOT_IN_IDS.search(value):
        kind = "control character" if _CONTROL.fullmatch(bad[0]) else "forbidden character"
        _refuse(f"{code}_CTRL", f"{field} has a {kind} at position {bad.start()}", field)
    if value.strip() != value:
        _refuse(f"{code}_SPACE", f"{field} has white space around it", field)
    return value


def clean_text(text: str) -> str:
    """Message text without bidi overrides, tag characters, non-characters and C0 controls; emoji joiners stay."""
    if unusual(text).isprintable():  # fast path: nothing that must be stripped is printable
        return text
    return _NOT_IN_TEXT.sub("", text)


def unusual(text: str) -> str:
    """The characters of a text that are neither printable ASCII nor line ends and tabs.

    Bytes are deleted at 0.5 ns each; a regex, or `isprintable`, looks at each character of the text for 5 to 60 ns.
    """
    rare = text.encode("utf-8", "surrogatepass").translate(None, _USUAL)
    return rare.decode("utf-8", "surrogatepass") if rare else ""


def has_surrogate(value: str) -> bool:
    """Whether a text has a lone surrogate, which UTF-8 cannot express."""
    return _SURROGATE.search(value) is not None


def _refuse(code: str, sentence: str, field: str, limit: int | None = None) -> NoReturn:
    raise Rejected(code, sentence, field, limit)
