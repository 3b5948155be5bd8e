"""Ids as path parts that are readable when ordinary and that never collide.

A part holds only `a-z 0-9 . _ - @ +` and `%xx` with lower-case digits, so that two ids never share a file, not even
where names are compared without case or in another Unicode form. One over 120 bytes becomes `~` and its id's SHA-256.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote_to_bytes

MAX_PART_BYTES = 120
"""Longer parts are hashed: file systems allow 255 bytes a name, and backups add suffixes."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789._-@+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)")
_PART = re.compile(r"(?:[a-z0-9._@+-]|%[0-9a-f]{2})+")
_SAME = re.compile(rf"(?!{_RESERVED.pattern})[a-z0-9_@+](?:[a-z0-9._@+-]{{0,{MAX_PART_BYTES - 2}}}[a-z0-9_@+-])?")
"""Ids that are their own path part, as most are: lists of ten thousand users spend most of their time here."""

_ENCODED = {byte: f"%{byte:02x}" for byte in range(256) if byte not in _PLAIN}


def encode(identifier: str) -> str:
    """The path part of an id. No two ids share one; `decode` reverses it up to 120 bytes."""
    if _SAME.fullmatch(identifier):
        return identifier
    data = identifier.encode()
    text = data.decode("latin-1").translate(_ENCODED)
    if not text:
        return "%"
    # The first character is encoded in names that would be hidden, look like options, or are devices on Windows; the
    # last one where it is a dot, which Windows drops.
    if text[0] in ".-" or _RESERVED.match(text):
        text = f"%{data[0]:02x}{text[1:]}"
    if text[-1] == ".":
        text = f"{text[:-1]}%2e"
    return text if len(text) <= MAX_PART_BYTES else "~" + hashlib.sha256(data).hexdigest()


def decode(part: str) -> str | None:
    """The id of a path part; None for a hashed part, whose document names it, or a foreign one."""
    if _SAME.fullmatch(part):
        return part
    if not _PART.fullmatch(part):
        return None
    try:
        identifier = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:  # a folder that somebody else made
        return None
    return identifier if encode(identifier) == part else None
