"""The doors and the drain agree: what a door accepts the drain accepts, with the same identity."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.config import ClientSettings, Settings
from memd.context import Context, Message, identify
from memd.errors import Rejected
from memd.inbox import verbs
from memd.inbox.claim import Claim, read_claim
from memd.push.filtering import to_context
from memd.push.times import read_created_at
from memd.push.validation import check_push, parse_push

LIMITS = ClientSettings(max_message_chars=40)
SETTINGS = Settings(client=LIMITS)

MOMENTS = (
    st.none()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.booleans()
    | st.text("0123456789-:T. Z+e", max_size=70)
    | st.sampled_from([0, -1, 999, 1_700_000_000, 1e16, float("nan"), float("inf"), 253_402_300_800, -0.0])
)
IDS = st.none() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=6) | st.booleans()
BLOCKS = st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=41))
    | st.builds(lambda text: {"text": text}, st.text(max_size=41))
    | st.sampled_from(
        [{"toolUse": {}}, {"type": "tool_result"}, {"functionCall": None, "text": "x"}, {"type": "tool-x"}]
    )
    | st.text(max_size=41),
    max_size=4,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "HumanMessage", "tool", "planner"])},
    optional={"content": st.text(max_size=41) | BLOCKS, "parts": BLOCKS, "id": IDS, "created_at": MOMENTS},
)
WRAPPED = MESSAGES | MESSAGES.map(lambda message: {"type": message.get("role"), "data": message})
PUSHES = st.fixed_dictionaries(
    {"thread_id": st.text(max_size=4), "user_id": st.just("ana"), "messages": st.lists(WRAPPED, max_size=4)}
)


def claimed(context: Context) -> Claim:
    """The claim that the drain reads of a context, as the merge stores it."""
    fcall = verbs.push(context).command
    header, bodies = orjson.loads(fcall[4]), fcall[5:]
    thread, user, agent = header["ids"]
    names = {"thread": thread, "user": user, "agent": agent, "from": 1, "to": 1}
    hashes = {name: header[name] for name in ("key", "bucket", "owner")}
    flat = [part for name, value in (names | hashes).items() for part in (f".{name}".encode(), str(value).encode())]
    for order, ((identity, tokens, signals), body) in enumerate(zip(header["m"], bodies, strict=True)):
        flat += [f"m:{identity}".encode(), f"{order} 1 {tokens} {signals} ".encode() + body]
    return read_claim(SETTINGS, [b"claim", flat])


@given(PUSHES, st.booleans())
@example({"thread_id": "t", "user_id": "u", "messages": [{"role": "user", "content": ["x" * 20, "x" * 20]}]}, True)
@example({"thread_id": "t", "user_id": "u", "messages": [{"role": "user", "content": "x", "created_at": 0}]}, False)
def test_what_a_door_accepts_the_drain_accepts(push: dict[str, Any], raw: bool) -> None:
    """For any push: a door refuses it, or the drain works on every message that the filter kept."""
    try:
        if raw:
            parsed = parse_push(json.dumps(push).encode("utf-8", "surrogatepass"), LIMITS)
        else:
            parsed = check_push(push, LIMITS)
        context = to_context(parsed)
    except Rejected:
        return
    if not context.messages:
        return
    claim = claimed(context)
    assert (claim.bad, claim.refused) == (None, ())
    unique = {message.identity: message for message in context.messages}
    assert [(m.identity, m.content, m.id, m.created_at) for m in claim.messages] == [
        (m.identity, m.content, m.id, m.created_at) for m in unique.values()
    ]


@pytest.mark.parametrize(
    ("came", "kept"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-5, "1969-12-31T23:59:55Z"),
        (999.5, "1970-01-01T00:16:39.500000Z"),
        (1_700_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_000_000_000, "2023-11-14T22:13:20Z"),
        ("0", "1970-01-01T00:00:00Z"),
        ("2026-11-21T00:00:00+01:00", "2026-11-21T00:00:00+01:00"),
    ],
)
def test_a_number_is_a_time_in_one_form(came: object, kept: str) -> None:
    """Seconds, or smaller units where seconds would lie beyond the year 9999; text stays as it came."""
    assert read_created_at(came) == kept
    assert read_created_at(kept) == kept


@pytest.mark.parametrize("came", [float("nan"), float("inf"), 1e30, -1e30, True, "", "yesterday", [], "1e99"])
def test_what_is_no_time_is_refused(came: object) -> None:
    """NaN, numbers beyond every unit, and words."""
    with pytest.raises(Rejected, match="E_CREATED_AT"):
        read_created_at(came)


def test_a_number_does_not_change_an_identity() -> None:
    """Messages without an id that older versions stored with a number are still known."""
    said = {"role": "user", "content": "I have a cat", "created_at": 5}
    push = {"thread_id": "t", "user_id": "u", "messages": [said]}
    [message] = to_context(check_push(push, LIMITS)).messages
    [before] = identify("t", [Message("user", "I have a cat", created_at="5")])
    assert message.identity == before.identity
    assert message.created_at == "1970-01-01T00:00:05Z"


@pytest.mark.parametrize(
    ("blocks", "cut"), [(["x" * 20, "x" * 19], {}), (["x" * 20] * 2, {"truncated": 1}), (["x" * 40, ""], {})]
)
def test_joined_blocks_have_the_limit_of_a_message(blocks: list[str], cut: dict[str, int]) -> None:
    """The line ends between blocks count, as they do in the drain; what is stripped does not."""
    push = check_push({"thread_id": "t", "user_id": "u", "messages": [{"role": "user", "content": blocks}]}, LIMITS)
    context = to_context(push)
    assert (context.dropped, claimed(context).refused) == (cut, ())
