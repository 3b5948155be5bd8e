"""Compaction: summaries of a conversation that another tool put in the place of its older turns, as a turn of the user.

They are nobody's words: what they say of the user was said before, was read then, and may have changed since. Some open
as only a tool does. The others are told from a person's own recap by their voice: a tool speaks of "the user", a person
says "I".
"""

from __future__ import annotations

import re

from memd.push.patterns import Lists, prepared
from memd.push.prefilter import Prefilter

_OPENING, _LOOK_AT = 600, 2_000
"""Characters: a summary says at its beginning what it is; the voice shows a little later."""

_FIRST_LINES = 240
_QUOTED = re.compile(r"\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|「[^」\n]{0,200}」")

_OPENINGS = ("known", "heads", "about")
_LISTS = Lists("compaction", *_OPENINGS, "told", "own")


@prepared
def _prefilter() -> Prefilter[str]:
    """Which lists could match an opening: nearly every turn has none of their words."""
    return Prefilter([(source, name) for name in _OPENINGS for source in _LISTS.sources(name)], folded=True)


def is_compaction(text: str) -> bool:
    """Whether a turn is the summary of a tool."""
    text = text.lstrip()
    opening = text[:_OPENING]
    if not _prefilter().finds(opening):
        return False
    likely = _prefilter().select(opening)
    if "known" in likely and _LISTS["known"].match(opening):
        return True
    is_head = "heads" in likely and _LISTS["heads"].match(opening) is not None
    if not is_head and not ("about" in likely and _LISTS["about"].search(opening[:_FIRST_LINES])):
        return False
    said = _QUOTED.sub(" ", text[:_LOOK_AT])
    told = _LISTS["told"].search(said) is not None
    own = _LISTS["own"].search(said) is not None
    return (told or not own) if is_head else (told and not own)
