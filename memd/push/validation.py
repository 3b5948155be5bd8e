"""Validation: the checks of every push, in the order size, UTF-8, nesting, JSON, surrogates, schema.

`parse_push` is total: for any bytes it returns a push or raises `Rejected` with code, field and limit, never the value.
Identifiers are compared byte by byte and never normalised; message text loses the characters that only attacks use.
"""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from memd.config import ClientSettings
from memd.context import SIGNALS, SOURCE_KINDS, WIRE_VERSION, Key, Message
from memd.errors import Rejected
from memd.identifiers import MAX_ID_BYTES, check_identifier
from memd.push.shapes import RawTurn, to_turn
from memd.push.strict_json import check_values, parse_json, refuse
from memd.push.times import read_created_at
from memd.push.trace_parent import check_trace

MAX_NAME_CHARS = 64
"""Characters of a speaker's name (the limit of OpenAI's format)."""

MAX_THREAD_BYTES = MAX_ID_BYTES - 65
"""The limit for an app with a namespace: the name of an app has up to 64 characters, and a slash follows it."""

_FIELDS = frozenset(
    {
        "v",
        "thread_id",
        "user_id",
        "user_name",
        "agent_name",
        "messages",
        "signals",
        "now",
        "project_id",
        "source",
        "traceparent",
    }
)

_SINCE = {"user_name": 2, "project_id": 3, "source": 3, "traceparent": 4}
"""The version of the wire format that brought each field."""


class RawPush(Struct, frozen=True):
    """A push that passed the checks: the messages in the format of the app, and what each of them says."""

    key: Key
    messages: tuple[dict[str, Any], ...]
    turns: tuple[RawTurn, ...]
    signals: frozenset[str]
    now: bool
    limits: ClientSettings
    """The limits for what filtering leaves."""

    user_name: str | None = None
    """What the user is called."""

    project_id: str = ""
    """The project that the messages are about, too."""

    source: tuple[str, str] = ("", "")
    """What the words come from: its kind, and its id."""

    trace: str = ""
    """The trace that it belongs to, a `traceparent`."""

    former_thread: str = ""
    """The thread's name before raw lists had namespaces; empty where nothing has changed."""


def parse_push(raw: bytes, limits: ClientSettings) -> RawPush:
    """A push from the bytes of a raw list. Raises Rejected, and no other error, for any bytes."""
    if len(raw) > limits.read_bytes:
        refuse("E_PUSH_SIZE", f"a push has at most {limits.read_bytes} bytes", limit=limits.read_bytes)
    return check_push(parse_json(raw), limits, scanned=True)


def check_push(value: object, limits: ClientSettings, *, scanned: bool = False) -> RawPush:
    """A push from Python values. `scanned`: its bytes were checked for size, depth and item count. Raises Rejected."""
    if not scanned:
        check_values(value, limits.read_bytes)
    if not isinstance(value, dict):
        refuse("E_PUSH_TYPE", "a push is a JSON object")
    if not _FIELDS.issuperset(value):
        refuse("E_UNKNOWN_FIELD", "a push has an unknown field; docs/wire.md lists the known ones")
    version = value.get("v", WIRE_VERSION)
    if isinstance(version, bool) or version not in range(1, WIRE_VERSION + 1):
        refuse("E_VERSION", f"v must be a whole number from 1 to {WIRE_VERSION}", "v")
    if version < WIRE_VERSION:
        _check_since(value, version)
    user = value.get("user_id")
    if user is None and limits.default_user is None:
        refuse("E_USER_ID_MISSING", "user_id is required, unless the setting client.default_user names one", "user_id")
    key = Key(
        check_identifier("thread_id", value.get("thread_id")),
        check_identifier("user_id", limits.default_user if user is None else user),
        check_identifier("agent_name", value["agent_name"]) if value.get("agent_name") not in (None, "") else "",
    )
    now = value.get("now", False)
    if not isinstance(now, bool):
        refuse("E_NOW_TYPE", "now must be true or false", "now")
    messages = _messages(value.get("messages"))
    turns = tuple([_turn(message, reads_names=version != 1) for message in messages])
    user_name = check_name("user_name", value.get("user_name"))
    signals = _signals(value.get("signals"))
    return RawPush(
        key,
        messages,
        turns,
        signals,
        now,
        limits,
        user_name=user_name,
        project_id=check_project(value.get("project_id")),
        source=check_source(value.get("source")),
        trace=check_trace(value.get("traceparent")),
    )


def in_namespace(push: RawPush, app: str) -> RawPush:
    """The push with its thread in the namespace of the app, so that no app can change what another has pending.

    Raises Rejected.
    """
    if not app:
        return push
    size = len(push.key.thread_id.encode())
    if size > MAX_THREAD_BYTES:
        sentence = f"with a token or an app's list, thread_id must have 1 to {MAX_THREAD_BYTES} bytes; it has {size}"
        raise Rejected("E_THREAD_ID_LENGTH", sentence, "thread_id", MAX_THREAD_BYTES)
    return replace(push, key=push.key._replace(thread_id=thread_of(push.key.thread_id, app)))


def thread_of(thread_id: str, app: str) -> str:
    """The thread's name in the inbox, where the threads of all apps meet. An app's name has no slash."""
    return f"{app}/{thread_id}" if app else thread_id


def check_name(field: str, value: object) -> str | None:
    """The name of a speaker, or None: it is absent or empty. 1 to 64 characters, the same ones as of an identifier.

    Raises Rejected.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str) and len(value) > MAX_NAME_CHARS:
        sentence = f"{field} must have 1 to {MAX_NAME_CHARS} characters, it has {len(value)}"
        refuse(f"E_{field.upper()}_LENGTH", sentence, field, MAX_NAME_CHARS)
    return check_identifier(field, value)


def check_project(value: object) -> str:
    """The project that a push names; "" when it is absent or empty. Raises Rejected."""
    return "" if value is None or value == "" else check_identifier("project_id", value)


def check_source(value: object) -> tuple[str, str]:
    """The kind and the id of a source; both "" for None. Raises Rejected."""
    if value is None:
        return "", ""
    if not isinstance(value, dict) or not value.keys() <= {"kind", "id"}:
        refuse("E_SOURCE", "source must be an object with kind, and maybe id", "source")
    kind, name = value.get("kind"), value.get("id")
    if kind not in SOURCE_KINDS:
        refuse("E_SOURCE", f"source.kind must be one of {', '.join(SOURCE_KINDS)}", "source")
    return kind, "" if name in (None, "") else check_identifier("source_id", name)


def check_message_id(value: object) -> None:
    """Check the id of a message: an identifier or a whole number; an empty id counts as absent. Raises Rejected."""
    if value is None or value == "" or (isinstance(value, int) and not isinstance(value, bool)):
        return
    check_identifier("message_id", value)


def as_text(value: object) -> str | None:
    """A checked id or time as text; None when it is absent."""
    return None if value is None or value == "" else str(value)


def parse_wire_message(raw: bytes, limits: ClientSettings) -> Message:
    """A message that `FCALL memd_push` brought, checked as strictly as one of a raw list. Raises Rejected."""
    value = parse_json(raw)
    if not isinstance(value, dict):
        refuse("E_MESSAGE_TYPE", "a message is a JSON object")
    role, content = value.get("role"), value.get("content")
    if role not in ("user", "assistant"):
        refuse("E_ROLE", "role must be user or assistant", "role")
    if not isinstance(content, str) or not content:
        refuse("E_CONTENT", f"content must be text of 1 to {limits.max_message_chars} characters", "content")
    if len(content) > (most := limits.max_message_chars):
        refuse("E_CONTENT_LENGTH", f"a message has at most {most} characters", "content", most)
    check_message_id(value.get("id"))
    former = value.get("former", "")
    if not isinstance(former, str):
        refuse("E_IDENTITY", "former must be text: identities with spaces between them", "former")
    created_at = read_created_at(value.get("created_at"))
    name = check_name("name", value.get("name"))
    try:
        kind, source_id = check_source(value.get("source"))
    except Rejected:  # clients of versions 1 and 2 may send any `source`, which memd did not read then
        kind, source_id = "", ""
    return Message(
        role,
        content,
        as_text(value.get("id")),
        created_at,
        former=tuple(former.split()),
        name=name,
        source_kind=kind,
        source_id=source_id,
    )


def wire_message(message: Message) -> bytes:
    """A message as `FCALL memd_push` carries it."""
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.id is not None:
        fields["id"] = message.id
    if message.created_at is not None:
        fields["created_at"] = message.created_at
    if message.name is not None:
        fields["name"] = message.name
    if message.source_kind:
        source = {"kind": message.source_kind}
        fields["source"] = {**source, "id": message.source_id} if message.source_id else source
    if message.former:
        fields["former"] = " ".join(message.former)
    return orjson.dumps(fields)


def _check_since(value: dict[str, Any], version: int) -> None:
    for field, needed in _SINCE.items():
        if version < needed and value.get(field) is not None:
            refuse("E_VERSION", f"{field} needs version {needed}: leave v out, or set it to that", field)


def _messages(value: object) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        refuse("E_MESSAGES_TYPE", "messages must be a list", "messages")
    if not value:
        refuse("E_MESSAGES_EMPTY", "a push carries at least one message", "messages")
    return tuple(value)


def _turn(message: object, *, reads_names: bool) -> RawTurn:
    """What a message says. `reads_names`: whether `name` says who speaks; version 1 did not read it."""
    if not isinstance(message, dict):
        refuse("E_MESSAGE_TYPE", "a message must be an object", "messages")
    turn = to_turn(message)
    if turn.id is not None:
        check_message_id(turn.id)
    if turn.created_at is not None:
        read_created_at(turn.created_at)
    if turn.name is None:
        return turn
    if not reads_names:
        return turn._replace(name=None)
    check_name("name", turn.name)
    return turn


def _signals(value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and name in SIGNALS for name in value):
        refuse("E_SIGNALS", f"signals must be a list of {', '.join(SIGNALS)}", "signals")
    return frozenset(value)
