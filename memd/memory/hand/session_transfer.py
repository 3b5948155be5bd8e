"""Sessions in exports and imports. An import adds sessions that are not there, and nothing in them is extracted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from memd.context import Bucket, Key, identity_of_id
from memd.errors import MemdError, Rejected
from memd.identifiers import check_identifier
from memd.memory.store.sessions import Sessions, State


def exported(sessions: Sessions, bucket: Bucket) -> list[dict[str, Any]]:
    """The sessions of a bucket with their lines and checkpoints. Raises StoreUnavailable."""
    return [
        exported_session(sessions, Key(entry.thread_id, bucket.user_id, bucket.agent_name))
        for entry in sessions.entries(bucket)
    ]


def imported(
    value: object, sessions: Sessions, bucket: Bucket, is_forgotten: Callable[[str], bool], *, dry_run: bool
) -> int:
    """Add the sessions of an export of this bucket that it does not have; returns how many.

    What was forgotten stays away, and what waited to be pushed does not: an export is not pushed.
    Raises Rejected with the place, StoreUnavailable.
    """
    added = 0
    for number, entry in enumerate(value if isinstance(value, list) else []):
        place = f"sessions[{number}]"
        key = _key(entry, bucket, place)
        loaded = sessions.load(key)
        if loaded.state is not None:
            continue
        added += 1
        lines, checkpoints = (_list(entry, name, place) for name in ("lines", "checkpoints"))
        if dry_run:
            continue
        without = _without(key.thread_id, is_forgotten)
        kept = [orjson.dumps(without(line)) for line in lines]
        saved = sessions.save(key, loaded, {**without(entry["state"]), "waiting": []}, kept)
        for checkpoint in checkpoints:
            sessions.put_checkpoint(key, saved, str(checkpoint.get("id")), without(checkpoint.get("state")))
    return added


def exported_session(sessions: Sessions, key: Key) -> dict[str, Any]:
    """One session with its lines and checkpoints; its state is empty when there is none. Raises StoreUnavailable."""
    loaded = sessions.load(key)
    checkpoints = [{"id": entry.id, "state": sessions.checkpoint(key, entry.id)} for entry in sessions.checkpoints(key)]
    lines = [orjson.loads(line) for line in sessions.lines(key, loaded)]
    state = {name: value for name, value in (loaded.state or {}).items() if name not in ("lines", "revision")}
    return {"threadId": key.thread_id, "state": state, "lines": lines, "checkpoints": checkpoints}


def _key(entry: object, bucket: Bucket, place: str) -> Key:
    """The key of an exported session, in this bucket. Raises Rejected."""
    try:
        if not isinstance(entry, dict) or not isinstance(entry["state"]["components"], dict):
            raise TypeError
        return Key(check_identifier("threadId", entry["threadId"]), bucket.user_id, bucket.agent_name)
    except (KeyError, TypeError, MemdError):
        raise Rejected("E_IMPORT_SESSIONS", f"{place} must be as `memd export` writes it", place) from None


def _list(entry: dict[str, Any], name: str, place: str) -> list[dict[str, Any]]:
    value = entry.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Rejected("E_IMPORT_SESSIONS", f"{place}.{name} must be a list of objects", f"{place}.{name}")
    return value


def _without(thread_id: str, is_forgotten: Callable[[str], bool]) -> Callable[[Any], State]:
    """A function that leaves out each message whose id was forgotten, wherever it stands in a JSON value."""

    def is_gone(value: Any) -> bool:
        name = value.get("id") if isinstance(value, dict) and "role" in value else None
        return isinstance(name, str) and is_forgotten(identity_of_id(thread_id, name))

    def kept(value: Any) -> Any:
        if isinstance(value, list):
            return [kept(item) for item in value if not is_gone(item)]
        return {name: kept(item) for name, item in value.items()} if isinstance(value, dict) else value

    return lambda value: {} if is_gone(value) else kept(value)
