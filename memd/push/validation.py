"""Validation: the checks of every push, in the order size, UTF-8, nesting, JSON, surrogates, schema.

`parse_push` is total: for any bytes it returns a push or raises `Rejected` with code, field and limit, never the value.
Identifiers are compared byte by byte and never normalised; message text loses the characters that only attacks use.
"""

from __future__ import annotations

import re
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from memd.config import ClientSettings
from memd.context import SIGNALS, WIRE_VERSION, Key, Message
from memd.errors import Rejected
from memd.push.shapes import kind_of, name_in, unwrapped
from memd.push.strict_json import check_values, parse_json, refuse
from memd.push.times import read_created_at

MAX_ID_BYTES = 256
MAX_NAME_CHARS = 64
"""Characters of a speaker's name (the limit of OpenAI's format)."""

MAX_THREAD_BYTES = MAX_ID_BYTES - 65
"""The limit for an app with a namespace: the name of an app has up to 64 characters, and a slash follows it."""

_FIELDS = frozenset({"v", "thread_id", "user_id", "user_name", "agent_name", "messages", "signals", "now"})
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


class RawPush(Struct, frozen=True):
    """A push that passed the checks; its messages still have the format of the app."""

    key: Key
    messages: tuple[dict[str, Any], ...]
    signals: frozenset[str]
    now: bool
    limits: ClientSettings
    """The limits for what filtering leaves."""

    user_name: str | None = None
    """What the user is called."""

    reads_names: bool = True
    """Whether `name` of a message says who speaks; version 1 did not read it."""

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
    for name in value:
        if name not in _FIELDS:
            refuse("E_UNKNOWN_FIELD", "a push has an unknown field; docs/wire.md lists the known ones")
    version = value.get("v", WIRE_VERSION)
    if version is True or version not in (1, WIRE_VERSION):
        refuse("E_VERSION", f"v must be 1 or {WIRE_VERSION}", "v")
    reads_names = version != 1
    if not reads_names and value.get("user_name") is not None:
        refuse("E_VERSION", f"user_name needs version {WIRE_VERSION}: leave v out, or set it to that", "user_name")
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
    messages = _messages(value.get("messages"), reads_names=reads_names)
    user_name = check_name("user_name", value.get("user_name"))
    signals = _signals(value.get("signals"))
    return RawPush(key, messages, signals, now, limits, user_name=user_name, reads_names=reads_names)


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


def check_identifier(field: str, value: object) -> str:
    """The identifier, unchanged: 1 to 256 bytes, no control, bidi, tag or non-characters, no white space around it."""
    if isinstance(value, str) and _is_plain(value):
        return value
    code = f"E_{field.upper()}"
    if value is None:
        refuse(f"{code}_MISSING", f"{field} is required", field)
    if not isinstance(value, str):
        refuse(f"{code}_TYPE", f"{field} must be a string", field)
    if _SURROGATE.search(value):
        refuse(f"{code}_SURROGATE", f"{field} has a lone surrogate", field)
    size = len(value.encode())
    if not 1 <= size <= MAX_ID_BYTES:
        refuse(f"{code}_LENGTH", f"{field} must have 1 to {MAX_ID_BYTES} bytes, it has {size}", field, MAX_ID_BYTES)
    if bad := _NOT_IN_IDS.search(value):
        kind = "control character" if _CONTROL.fullmatch(bad[0]) else "forbidden character"
        refuse(f"{code}_CTRL", f"{field} has a {kind} at position {bad.start()}", field)
    if value.strip() != value:
        refuse(f"{code}_SPACE", f"{field} has white space around it", field)
    return value


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


def _is_plain(value: str) -> bool:
    """The fast path: whether an identifier is plainly valid, as nearly all are."""
    return value.isascii() and value.isprintable() and 1 <= len(value) <= MAX_ID_BYTES and value[0] != " " != value[-1]


def clean_text(text: str) -> str:
    """Message text without bidi overrides, tag characters, non-characters and C0 controls; emoji joiners stay."""
    if (
        text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()
    ):  # fast path: nothing that must be stripped is printable
        return text
    return _NOT_IN_TEXT.sub("", text)


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
    return Message(role, content, as_text(value.get("id")), created_at, former=tuple(former.split()), name=name)


def wire_message(message: Message) -> bytes:
    """A message as `FCALL memd_push` carries it."""
    fields = {"role": message.role, "content": message.content}
    if message.id is not None:
        fields["id"] = message.id
    if message.created_at is not None:
        fields["created_at"] = message.created_at
    if message.name is not None:
        fields["name"] = message.name
    if message.former:
        fields["former"] = " ".join(message.former)
    return orjson.dumps(fields)


def _messages(value: object, *, reads_names: bool) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, (list, tuple)):
        refuse("E_MESSAGES_TYPE", "messages must be a list", "messages")
    if not value:
        refuse("E_MESSAGES_EMPTY", "a push carries at least one message", "messages")
    for message in value:
        _check_message(message, reads_names=reads_names)
    return tuple(value)


def _check_message(message: object, *, reads_names: bool) -> None:
    if not isinstance(message, dict):
        refuse("E_MESSAGE_TYPE", "a message must be an object", "messages")
    message = unwrapped(message)
    content, parts = message.get("content"), message.get("parts")
    if content is not None and not isinstance(content, (str, list)):
        refuse("E_CONTENT_TYPE", "content must be text or a list of blocks", "content")
    if parts is not None and not isinstance(parts, list):
        refuse("E_CONTENT_TYPE", "parts must be a list", "parts")
    kind = kind_of(message)
    if kind == "user" and "content" not in message and "parts" not in message:
        refuse("E_CONTENT_MISSING", "a user's message needs content or parts", "content")
    if (name := message.get("id")) is not None:
        check_message_id(name)
    if (time := message.get("created_at")) is not None:
        read_created_at(time)
    if reads_names and "name" in message:
        check_name("name", name_in(message, kind))


def _signals(value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and name in SIGNALS for name in value):
        refuse("E_SIGNALS", f"signals must be a list of {', '.join(SIGNALS)}", "signals")
    return frozenset(value)
