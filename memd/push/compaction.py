"""Compaction: summaries of a conversation that another tool put in the place of its older turns, as a turn of the user.

They are nobody's words: what they say of the user was said before, was read then, and may have changed since. Some open
as only a tool does. The others are told from a person's own recap by their voice: a tool speaks of "the user", a person
says "I".
"""

from __future__ import annotations

import re
from functools import cache

from memd.push.patterns import compiled, load

_OPENING, _LOOK_AT = 600, 2_000
"""Characters: a summary says at its beginning what it is; the voice shows a little later."""

_FIRST_LINES = 240
_QUOTED = re.compile(r"\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|「[^」\n]{0,200}」")


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {name: compiled(sources) for name, sources in load("compaction").items()}


def is_compaction(text: str) -> bool:
    """Whether a turn is the summary of a tool."""
    patterns, text = _patterns(), text.lstrip()
    opening = text[:_OPENING]
    if patterns["known"].match(opening):
        return True
    is_head = patterns["heads"].match(opening) is not None
    if not is_head and not patterns["about"].search(opening[:_FIRST_LINES]):
        return False
    said = _QUOTED.sub(" ", text[:_LOOK_AT])
    told = patterns["told"].search(said) is not None
    own = patterns["own"].search(said) is not None
    return (told or not own) if is_head else (told and not own)
