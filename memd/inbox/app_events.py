"""The stream that tells apps how pushes ended; the moves of the inbox write it (lua/events.lua, docs/events.md)."""

from __future__ import annotations

from memd.inbox.connection import Call
from memd.inbox.decoding import text
from memd.inbox.verbs import P

EVENTS = "memd:events"


def forget(owner: str, bucket: str, until_ms: int, start: str) -> Call[str]:
    """Remove a page of what was told of a user (hash) until then, of one bucket (hash) or of all (""); at the end, tell
    that the user is forgotten.

    `start`: "-", then what the call before returned; "" when it is done.
    """
    return Call(("FCALL", "memd_forget_events_1", 1, P, owner, bucket, until_ms, start), text)
