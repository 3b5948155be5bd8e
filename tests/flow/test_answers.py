"""Short answers and changed rules of filtering, from push to document: what the drain decides and what it knows."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from support import MakeSettings, daemon

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.memory.store.json_store import open_store
from memd.testing import ModelServer

pytestmark = pytest.mark.timing


def turns(*texts: str, first: str = "user", ids: bool = True) -> list[dict[str, str]]:
    """Turns of the user and the assistant by turns."""
    roles = ("user", "assistant") if first == "user" else ("assistant", "user")
    both = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return [{**turn, "id": f"m{n}"} for n, turn in enumerate(both)] if ids else both


def pushed(app: Memd, messages: list[dict[str, Any]], thread: str = "t") -> tuple[str, str | None]:
    """Push, wait for the end, and return how and why it ended."""
    receipt = app.push(messages, thread_id=thread, user_id="ana", now=True)
    app.flush(wait=True)
    outcome = app.receipt(receipt.id or "")
    return outcome.state, outcome.reason


def conversation(body: dict[str, Any]) -> str:
    """The text of the request's only message, without the instructions and the schema, which name the same tags."""
    [message] = body["messages"]
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(block["text"] for block in content)


def test_the_drain_decides_about_a_bare_yes(asking: MakeSettings, model: ModelServer) -> None:
    """With its question directly before it a bare yes reaches the model; alone it is skipped, without a call."""
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        assert pushed(app, turns("Yes!", ids=False), "alone") == ("skipped", "acknowledgement")
        assert pushed(app, turns("Yes!", ids=False), "alone") == ("skipped", "already_known")
        assert pushed(app, turns("Are you allergic to nuts?", first="assistant")) == ("skipped", "no_user_turn")
        assert not model.requests
        window = turns("Are you allergic to nuts?", "Yes!", first="assistant")
        assert pushed(app, window)[0] == "stored"
        [request] = model.requests
        asked = conversation(request.body)
        assert asked.index("allergic to nuts") < asked.index("Yes!")
        assert pushed(app, window) == ("skipped", "already_known")
        assert len(model.requests) == 1
        assert pushed(app, turns("And to sesame?", first="assistant"), "alone") == ("skipped", "no_user_turn")
        assert pushed(app, [{"role": "user", "content": "Yes!", "id": "m9"}], "alone")[0] == "stored"
        asked = conversation(model.requests[1].body)
        assert asked.index("assistant: And to sesame?\n</before>") < asked.index("<messages>") < asked.rindex("Yes!")
    store = open_store(settings)
    kept = store.read_said(Bucket("ana"), store.load(Bucket("ana")).document).turns
    texts = ["Yes!", "Are you allergic to nuts?", "Yes!", "And to sesame?", "Yes!"]
    assert [turn.text for turn in kept] == texts, "what the model is not asked about is kept too, once"


BEFORE = ["My laptop:  is that enough?", "Yes. Do you compile?", "I do, at night.", "Good.", "#include"]
"""The messages that versions with the former rules stored of AFTER."""

AFTER = [
    "My laptop: <memory>16GB</memory> is that enough?", "Yes. Do you compile?", "yes", "What, and when?",
    "I do, at night.", "Good.", "#include <memory>\n// I use C++20",
]  # fmt: skip


def stored_by_a_version_before(app: Memd, settings: Settings, *, window: list[str], upgraded: bool) -> None:
    """A window in a document as versions with the former rules of filtering have written it."""
    assert pushed(app, turns(*window, ids=False))[0] == "stored"
    file = settings.data_dir / "users" / "ana" / "memory.json"
    document = orjson.loads(file.read_bytes())
    if not upgraded:
        del document["ledgerFormerRules"]
        file.write_bytes(orjson.dumps(document))


def test_a_window_of_the_version_before_is_known(memd: Memd, settings: Settings) -> None:
    """Without ids: literal tags that were cut, an answer that was dropped; only what is new is taken in, once."""
    with daemon(settings):
        stored_by_a_version_before(memd, settings, window=BEFORE, upgraded=False)
        before = memd.document("ana")
        assert pushed(memd, turns(*AFTER, ids=False)) == ("skipped", "already_known")
        assert memd.document("ana") == before
        more = turns(*AFTER, "Nice.", "I live in Porto.", ids=False)
        assert pushed(memd, more)[0] == "stored"
        new = [fact["content"] for fact in memd.document("ana")["facts"][len(before["facts"]) :]]
        assert len(new) == 1
        assert "Porto" in new[0]
        assert pushed(memd, more) == ("skipped", "already_known")


def test_what_this_version_recorded_hides_nothing(memd: Memd, settings: Settings) -> None:
    """A message whose former text equals another one's is new when this version took the other one in."""
    with daemon(settings):
        stored_by_a_version_before(memd, settings, window=["My key ring is"], upgraded=True)
        window = turns("My key ring is <memory> brown, and I live in Porto.", ids=False)
        assert pushed(memd, window)[0] == "stored"
