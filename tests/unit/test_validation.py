"""The validator: total, strict, and silent about values."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.config import ClientSettings
from memd.context import Message, tenths_of_tokens
from memd.errors import Rejected
from memd.identifiers import _NOT_IN_TEXT, check_identifier, clean_text
from memd.push.strict_json import parse_json
from memd.push.validation import RawPush, check_push, parse_push, parse_wire_message, wire_message

LIMITS = ClientSettings()
GOOD: dict[str, Any] = {"thread_id": "t", "user_id": "u", "messages": [{"role": "user", "content": "hello"}]}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(sorted(GOOD)), inner),
    max_leaves=20,
)

SELECTED = "a b\n\t\r\x00\x7f\x85é，。我한\u2014\u2e7f\ud7b0\ufff0\U0001f600\U00020000\u202e\ud800"
MIXED = st.characters() | st.sampled_from(SELECTED)


def outcome(raw: bytes) -> RawPush | str:
    try:
        return parse_push(raw, LIMITS)
    except Rejected as error:
        return error.code


def good(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode("utf-8", "surrogatepass")


@given(st.binary())
def test_any_bytes_are_a_push_or_a_code(raw: bytes) -> None:
    """For any bytes the validator answers; it never raises anything else."""
    assert outcome(raw)


NAMES = st.text(alphabet='ab": \\\n\u00e9', max_size=3)
SPACE = st.text(alphabet=" \t\r\n", max_size=2)
NUMBERS = st.sampled_from(["0", "-1", "12", "1.5", "1e3", "9" * 31, "9" * 40, "0." + "1" * 40, "1" * 20, "-0"])


@st.composite
def written(draw: st.DrawFn, depth: int = 3) -> str:
    """JSON as somebody may write it: any white space, names given twice, texts that look like names, long numbers."""
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind == 0:
        return draw(NUMBERS | st.sampled_from(["true", "null", '"a\\": 1, \\"a\\": 2"', '": "', '"\\":"']))
    if kind == 1:
        return json.dumps(draw(NAMES))
    parts = draw(st.lists(written(depth - 1), max_size=4))
    if kind == 2:
        return "[" + ",".join(parts) + "]"
    pairs = [json.dumps(draw(NAMES)) + draw(SPACE) + ":" + draw(SPACE) + part for part in parts]
    return "{" + draw(SPACE) + ",".join(pairs) + draw(SPACE) + "}"


def read_strictly(text: str) -> str | None:
    """The code for what a reader refuses that looks at each pair and each number."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in found}) < len(found):
            raise LookupError("E_DUPLICATE_KEY")
        return dict(found)

    def number(found: str) -> float:
        if len(found) > 32:
            raise LookupError("E_NUMBER")
        return 0

    try:
        json.loads(text, object_pairs_hook=pairs, parse_int=number, parse_float=number)
    except LookupError as error:
        return str(error.args[0])
    return None


@given(written())
@example('{"a":{"b":1,"b":2}}')
@example('{"a" :1,"a"\n:2}')
@example('["\\":", {"a":1,"a":2}]')
def test_what_is_read_once_is_read_as_strictly(text: str) -> None:
    """Most bytes are read by the fast reader alone; nothing gets through that a second reading refuses."""
    with suppress(ValueError):  # half a string is no JSON for either
        json.loads(text)
        found = None
        try:
            parse_json(text.encode())
        except Rejected as error:
            found = error.code
        assert found == read_strictly(text)


@given(JSON)
def test_any_json_is_a_push_or_a_code(value: object) -> None:
    """The same for anything that looks like JSON, through both entrances."""
    assert outcome(json.dumps(value).encode())
    with suppress(Rejected):
        assert check_push(value, LIMITS)


@given(st.dictionaries(st.sampled_from([*GOOD, "signals", "now", "v", "agent_name"]), JSON))
def test_almost_good_pushes_are_a_push_or_a_code(changes: dict[str, Any]) -> None:
    """A good push with any field replaced by anything."""
    assert outcome(good(**changes))


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "E_JSON"),
        (b"{", "E_JSON"),
        (b"\xff", "E_UTF8"),
        (b"\xed\xa0\x80", "E_UTF8"),
        (b"[]", "E_PUSH_TYPE"),
        (b"1", "E_PUSH_TYPE"),
        (b"[" * 65 + b"]" * 65, "E_DEPTH"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "E_DEPTH"),
        (b"[" + b"1," * 150_000 + b"1]", "E_ITEMS"),
        (b'{"a":1,"a":2}', "E_DUPLICATE_KEY"),
        (b'{"a":{"b":1,"b":2}}', "E_DUPLICATE_KEY"),
        (b'{"a":NaN}', "E_JSON"),
        (b'{"a":Infinity}', "E_JSON"),
        (b'{"a":1e999}', "E_JSON"),
        (b'{"a":0.' + b"1" * 40 + b"}", "E_NUMBER"),
        (b'{"a":"\\ud800"}', "E_SURROGATE"),
        (good(user_id="\ud800"), "E_SURROGATE"),
        (good(who=1), "E_UNKNOWN_FIELD"),
        (good(v=5), "E_VERSION"),
        (good(v=1, user_name="Ana"), "E_VERSION"),
        (good(v=2, project_id="p"), "E_VERSION"),
        (good(v=1, source={"kind": "ai"}), "E_VERSION"),
        (good(project_id=7), "E_PROJECT_ID_TYPE"),
        (good(project_id="x" * 257), "E_PROJECT_ID_LENGTH"),
        (good(project_id="a\n"), "E_PROJECT_ID_CTRL"),
        (good(project_id=" a"), "E_PROJECT_ID_SPACE"),
        (good(source="ai"), "E_SOURCE"),
        (good(source={"kind": "web"}), "E_SOURCE"),
        (good(source={"kind": ["ai"]}), "E_SOURCE"),
        (good(source={"id": "x"}), "E_SOURCE"),
        (good(source={"kind": "ai", "url": "x"}), "E_SOURCE"),
        (good(source={"kind": "ai", "id": 7}), "E_SOURCE_ID_TYPE"),
        (good(source={"kind": "ai", "id": "x" * 257}), "E_SOURCE_ID_LENGTH"),
        (good(user_name=7), "E_USER_NAME_TYPE"),
        (good(user_name="x" * 65), "E_USER_NAME_LENGTH"),
        (good(user_name="A\n"), "E_USER_NAME_CTRL"),
        (good(messages=[{"role": "user", "content": "hello", "name": ["Ana"]}]), "E_NAME_TYPE"),
        (good(messages=[{"role": "user", "content": "hello", "name": "娜" * 65}]), "E_NAME_LENGTH"),
        (good(messages=[{"role": "assistant", "content": "hello", "name": "a\u202eb"}]), "E_NAME_CTRL"),
        (good(messages=[{"type": "human", "data": {"content": "hello", "name": " Ana"}}]), "E_NAME_SPACE"),
        (good(v=True), "E_VERSION"),
        (good(thread_id=None), "E_THREAD_ID_MISSING"),
        (good(thread_id=""), "E_THREAD_ID_LENGTH"),
        (good(thread_id=7), "E_THREAD_ID_TYPE"),
        (good(user_id=None), "E_USER_ID_MISSING"),
        (good(user_id="x" * 257), "E_USER_ID_LENGTH"),
        (good(user_id="é" * 129), "E_USER_ID_LENGTH"),
        (good(user_id="abcd\x07"), "E_USER_ID_CTRL"),
        (good(user_id="a\u202eb"), "E_USER_ID_CTRL"),
        (good(user_id="a\U000e0041"), "E_USER_ID_CTRL"),
        (good(user_id="a\ufffe"), "E_USER_ID_CTRL"),
        (good(user_id=" a"), "E_USER_ID_SPACE"),
        (good(user_id="a\u3000"), "E_USER_ID_SPACE"),
        (good(agent_name="a\n"), "E_AGENT_NAME_CTRL"),
        (good(messages=None), "E_MESSAGES_TYPE"),
        (good(messages=[]), "E_MESSAGES_EMPTY"),
        (good(messages=[1]), "E_MESSAGE_TYPE"),
        (good(messages=[{"content": "x"}]), "E_ROLE"),
        (good(messages=[{"role": "planner", "content": "x"}]), "E_ROLE"),
        (good(messages=[{"type": "item_reference", "id": "msg-1"}]), "E_ROLE"),
        (good(messages=[{"role": "user", "text": "x"}]), "E_CONTENT_MISSING"),
        (good(messages=[{"role": "user", "parts": "x"}]), "E_CONTENT_TYPE"),
        (good(messages=[{"role": "user", "content": 1}]), "E_CONTENT_TYPE"),
        (good(messages=[{"role": "user", "content": "x", "id": []}]), "E_MESSAGE_ID_TYPE"),
        (good(messages=[{"role": "user", "content": "x", "created_at": "now"}]), "E_CREATED_AT"),
        (good(signals=["praise"]), "E_SIGNALS"),
        (good(now=1), "E_NOW_TYPE"),
        (b" " * 8_388_609, "E_PUSH_SIZE"),
    ],
)
def test_each_fault_has_its_code(raw: bytes, code: str) -> None:
    """Size, UTF-8, nesting, JSON, surrogates, schema: each answered by a code of its own."""
    assert outcome(raw) == code


def test_an_error_names_field_limit_and_place_but_not_the_value() -> None:
    """The sentence helps the producer and quotes nothing."""
    with pytest.raises(Rejected) as caught:
        parse_push(good(user_id="secre\x07t"), LIMITS)
    assert str(caught.value) == "E_USER_ID_CTRL: user_id has a control character at position 5"
    assert caught.value.field == "user_id"


@pytest.mark.parametrize(
    "identifier",
    ["..", "/etc/passwd", "CON", "a/b", "Bob", "é", "e\u0301", "*", "{x}", "小林", "a b", "👩‍🚀", "a" * 256],
)
def test_odd_ids_are_ordinary_ids(identifier: str) -> None:
    """Opaque ids are taken as they are, byte for byte."""
    assert check_identifier("user_id", identifier) == identifier


def test_a_default_user_stands_in_for_a_missing_one() -> None:
    """With client.default_user a push without user is that user's."""
    limits = ClientSettings(default_user="home")
    assert parse_push(b'{"thread_id":"t","messages":[{"role":"user","content":"x"}]}', limits).key.user_id == "home"


def test_text_loses_what_only_attacks_use() -> None:
    """Bidi overrides, tag characters and C0 controls go; line ends, tabs, emoji joiners and CJK stay."""
    assert clean_text("a\u202eb\U000e0041c\x00d\x1be") == "abcde"
    kept = "line one\n\ttwo 👩‍🚀 中文，全角 é"
    assert clean_text(kept) == kept


@given(st.text(MIXED))
def test_the_fast_passes_over_a_text_see_each_character(text: str) -> None:
    """Tokens and cleaning, which look only at what is not plain ASCII, agree with a look at each character."""
    cjk = sum(
        "\u2e80" <= char <= "\u9fff"
        or "\uac00" <= char <= "\ud7af"
        or "\uf900" <= char <= "\ufaff"
        or "\uff00" <= char <= "\uffef"
        or "\U00020000" <= char <= "\U0003ffff"
        for char in text
    )
    assert tenths_of_tokens(text) == 3 * len(text) + 12 * cjk
    assert clean_text(text) == "".join(map(clean_text, text)) == _NOT_IN_TEXT.sub("", text)


@given(st.text(min_size=1).filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)))
def test_a_wire_message_comes_back_as_it_was(text: str) -> None:
    """What the trusted door carries is read back the same by the drain."""
    message = Message("user", text, "id-1", "2026-11-21T00:00:00Z", source_kind="ai", source_id="run-1")
    assert parse_wire_message(wire_message(message), LIMITS) == message


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b'{"role":"system","content":"x"}',
        b'{"role":"user","content":""}',
        b'{"role":"user","content":[]}',
    ],
)
def test_a_forged_wire_message_is_refused(raw: bytes) -> None:
    """The drain trusts no client: roles, content and ids are checked again."""
    with pytest.raises(Rejected):
        parse_wire_message(raw, LIMITS)


def test_python_values_are_checked_like_bytes() -> None:
    """What never was JSON is refused by the API: sets, NaN stays out by size and shape, cycles by depth."""
    for bad in ({**GOOD, "messages": [{"role": "user", "content": {1, 2}}]}, {**GOOD, "signals": {"correction"}}):
        with pytest.raises(Rejected):
            check_push(bad, LIMITS)
    cycle: dict[str, Any] = dict(GOOD)
    cycle["messages"] = [{"role": "user", "content": "x", "extra": cycle}]
    with pytest.raises(Rejected, match="E_DEPTH"):
        check_push(cycle, LIMITS)
    with pytest.raises(Rejected, match="E_DEPTH"):
        check_push({**GOOD, "messages": [json.loads("[" * 63 + "]" * 63)]}, LIMITS)
    with pytest.raises(Rejected, match="E_ITEMS"):
        check_push({**GOOD, "messages": [{"role": "user", "content": "x", "extra": [0] * 150_000}]}, LIMITS)
    assert check_push(GOOD, LIMITS) == parse_push(orjson.dumps(GOOD), LIMITS)
