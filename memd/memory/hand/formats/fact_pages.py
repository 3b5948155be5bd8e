"""DeerFlow's fact files: Markdown with YAML front matter, one fact a file.

The front matter has id, category, confidence, times, source, `user_id` and `agent_name`; a heading repeats the fact's
first line, and the text below it is the fact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

from memd.memory.document import Fact
from memd.memory.hand.formats.parcels import refuse

MAX_FRONT_CHARS = 16_384
"""Characters of a front matter; DeerFlow writes some 600."""

MAX_NESTS = 200
"""Lists, mappings and their entries in it. The loader recurses: more than that is no fact, and might be costly."""


class FactPage(NamedTuple):
    """One file: the fact, and whose it is; None for a user or an agent that the file does not name."""

    fact: Fact
    user_id: str | None
    agent_name: str | None


def page_of(text: str, place: str) -> FactPage:
    """The fact of one file. Raises Rejected with the place."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    front, end, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not end or len(front) > MAX_FRONT_CHARS:
        refuse("E_IMPORT_SHAPE", f"{place} must begin with front matter between two lines of three dashes", place)
    fields = _fields(front, place)
    title, _, rest = body.lstrip("\n").partition("\n")
    content = (rest if title.startswith("# ") else f"{title}\n{rest}").strip()
    if not content:
        refuse("E_IMPORT_SHAPE", f"{place} has no fact below its heading", place)
    return FactPage({**fields, "content": content}, _name(fields, "user_id"), _name(fields, "agent_name"))


def _fields(front: str, place: str) -> dict[str, Any]:
    """The fields of a front matter; every scalar is text, except the confidence."""
    if sum(map(front.count, ("[", "{", "- ", "? "))) > MAX_NESTS:
        refuse("E_IMPORT_YAML", f"the front matter of {place} nests too much", place, MAX_NESTS)
    try:
        found = yaml.load(front, getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # noqa: S506  (scalars stay text)
    except (yaml.YAMLError, RecursionError, ValueError):  # its words quote the text
        refuse("E_IMPORT_YAML", f"the front matter of {place} is not YAML", place)
    if not isinstance(found, dict):
        refuse("E_IMPORT_SHAPE", f"the front matter of {place} must be a mapping", place)
    try:
        confidence = float(found["confidence"])
    except (KeyError, TypeError, ValueError):  # as a fact without one
        return {name: value for name, value in found.items() if name != "confidence"}
    return {**found, "confidence": confidence}


def _name(fields: dict[str, Any], field: str) -> str | None:
    value = fields.get(field)
    return value if isinstance(value, str) and value not in ("", "null", "~") else None
