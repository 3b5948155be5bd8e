"""A message that is too long: what is kept becomes memory, and is known again whatever the limits are by then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from support import daemon, execute
from support.inbox_view import DUMP

from memd.client import Memd
from memd.config import Settings

pytestmark = pytest.mark.timing

KEY = "sk-proj-9fK2xQ7vLm4RtY8wZb3N"
PIECES = tuple(KEY[place : place + 4] for place in range(8, len(KEY) - 3))
PROSE = "We talked about the garden. " * 200


@pytest.mark.parametrize("cut", ["head", "tail"])
def test_a_long_paste_becomes_memory(
    cut: str, memd: Memd, client: redis.Redis, settings: Settings, configured: Callable[..., Settings]
) -> None:
    """Its beginning and its end are read; of a secret that a cut goes through neither inbox nor memory has a part; and
    with another limit the same text is already known."""
    first, last = "I live in Porto. ", ". I like green tea."
    before = first + PROSE[: 685 - len(first)] if cut == "head" else first + PROSE
    behind = PROSE + last if cut == "head" else PROSE[: 685 - len(last)] + last
    said = [{"role": "user", "content": f"{before} {KEY} {behind}"}]
    with Memd(configured(client__max_message_chars=1_400)) as app:
        pushed = app.push(said, thread_id="t", user_id="ana", now=True)
    assert (pushed.messages, pushed.dropped) == (1, {"truncated": 1})
    inbox = repr(execute(client, "EVAL", DUMP, 0))
    assert "green tea" in inbox
    assert not [piece for piece in PIECES if piece in inbox]
    with daemon(settings):
        memd.flush(wait=True)
        assert memd.receipt(pushed.id or "").state == "stored"
        again = memd.push(said, thread_id="t", user_id="ana", now=True)
        assert again.dropped == {}
        memd.flush(wait=True)
        assert memd.receipt(again.id or "").reason == "already_known"
    memory = repr(memd.document("ana"))
    assert "Porto" in memory
    assert "green tea" in memory
    assert not [piece for piece in PIECES if piece in memory]
