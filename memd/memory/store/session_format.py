"""The JSON of a session, and what it says: its state, its checkpoints, the turns in it. The same in every store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import orjson

from memd.context import Key, identity_of_id
from memd.disk.appending import NamedLines
from memd.errors import DocumentDamaged, DocumentTooNew, Rejected, SessionChanged, SessionForgotten
from memd.memory.store.protocol import Tombstone
from memd.memory.store.sessions import MAX_LINES_BYTES, MAX_STATE_BYTES, State, StoredSession

VERSION = 1
"""Of the state's format. What other systems wrote has none."""

KEPT_LINES = 3 / 4
"""The share of lines that stays when they take too much."""

_CHECKPOINT = re.compile(r"[a-z0-9_]{1,64}")


def state_of(data: bytes, key: Key) -> State:
    """The state of a key's session in these bytes. Raises DocumentDamaged for anything else, DocumentTooNew."""
    state = parsed(data)
    version = state.get("version", VERSION)
    if type(version) is int and version > VERSION:
        raise DocumentTooNew("E_DOCUMENT_TOO_NEW: a session was written by a newer version; upgrade memd")
    owner = (state.get("sessionId"), state.get("userId", key.user_id), state.get("agentName", key.agent_name))
    if owner != (key.thread_id, key.user_id, key.agent_name) or not isinstance(state.get("components"), dict):
        raise DocumentDamaged("E_SESSION_FILE: a file is not the session of its folder")
    return state


def parsed(data: bytes) -> State:
    """The JSON object in these bytes. Raises DocumentDamaged."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise DocumentDamaged("E_SESSION_FILE: a session's file is no JSON object")
    return value


def serialised(state: State) -> bytes:
    """The bytes of a state. Raises Rejected."""
    try:
        data = orjson.dumps(state, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        raise Rejected("E_SESSION_STATE", "the state of a session must be JSON values", "state") from None
    if len(data) > MAX_STATE_BYTES:
        raise Rejected("E_SESSION_SIZE", f"a session may take {MAX_STATE_BYTES} bytes", "state", MAX_STATE_BYTES)
    return data


def saved(state: State, loaded: StoredSession, lines: NamedLines) -> State:
    """The state as it is stored: its version, its next revision, and where its lines are."""
    return {**state, "version": VERSION, "revision": loaded.revision + 1, "lines": lines._asdict()}


def lines_of(state: State | None) -> NamedLines:
    """The lines that a state names."""
    field = state.get("lines") if state else None
    name, size = (field.get("file"), field.get("bytes")) if isinstance(field, dict) else ("", 0)
    if isinstance(name, str) and re.fullmatch(r"lines-[0-9a-f]{16}\.jsonl", name) and type(size) is int and size >= 0:
        return NamedLines(name, size)
    return NamedLines()


def newest_lines(data: bytes) -> bytes:
    """The lines that stay of lines that take too much."""
    start = max(0, len(data) - int(MAX_LINES_BYTES * KEPT_LINES))
    return data[data.find(b"\n", start) + 1 :]


def checked(checkpoint_id: str) -> str:
    """The id of a checkpoint. Raises Rejected."""
    if not _CHECKPOINT.fullmatch(checkpoint_id):
        raise Rejected("E_CHECKPOINT", "there is no checkpoint with this id", "checkpoint_id")
    return checkpoint_id


def unforgotten(key: Key, loaded: StoredSession, tombstone: Tombstone | None, *, is_same: bool) -> int:
    """The generation of a user's tombstone by now, under the locks. `is_same`: the stored state is what was loaded.

    Raises SessionForgotten, SessionChanged. A forgetting of another agent's memory leaves this session as it is.
    """
    generation = tombstone.generation if tombstone else 0
    if generation != loaded.generation:
        if not is_same or loaded.content_hash is None or (tombstone and _takes(tombstone, key)):
            raise SessionForgotten("E_FORGOTTEN: the user was forgotten since this session was loaded; it is empty")
    elif not is_same:
        raise SessionChanged("E_SESSION_CHANGED: another process has saved this session since; nothing was written")
    return generation


def identities(state: State, lines: Iterable[bytes]) -> set[str]:
    """The identities of all turns in a state and its lines."""
    thread = state.get("sessionId")
    if not isinstance(thread, str):
        return set()
    found = set(_turn_ids(state))
    for line in lines:
        with suppress(orjson.JSONDecodeError):  # cut by a power cut
            found |= set(_turn_ids(orjson.loads(line)))
    return {identity_of_id(thread, name) for name in found}


def _turn_ids(value: Any) -> Iterator[str]:
    """The ids of all objects with a role in a JSON value."""
    if isinstance(value, dict):
        if "role" in value and isinstance(value.get("id"), str):
            yield value["id"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _turn_ids(item)


def _takes(tombstone: Tombstone, key: Key) -> bool:
    """Whether a wish about this session waits for its erasure."""
    waiting = set(tombstone.open) - tombstone.erased
    return any(wish.agent_name in (None, key.agent_name) for wish in waiting)
