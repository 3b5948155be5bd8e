"""Asked not to keep: from push to document, what the user wants forgotten or off the record leaves no trace."""

from __future__ import annotations

import orjson
import pytest
from support import MakeSettings, daemon

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.memory.removed import turn_hashes
from memd.memory.said.excerpts import GATES_VERSION
from memd.memory.said.turns import Said
from memd.memory.store.json_store import open_store
from memd.testing import ModelServer

pytestmark = pytest.mark.timing


def layer(settings: Settings) -> Said:
    """What was said by the user."""
    store = open_store(settings)
    return store.read_said(Bucket("ana"), store.load(Bucket("ana")).document)


def test_what_is_off_the_record_reaches_no_model_and_no_document(asking: MakeSettings, model: ModelServer) -> None:
    """The turn, its reply and what it points back to are counted and left out; the rest is read as ever."""
    settings = asking()
    said = ["I live in Porto.", "Off the record: Karl was fired.", "I earn 90k.", "Forget what I just told you."]
    turns = [
        {"role": role, "content": text, "id": f"{role}{number}"}
        for number, words in enumerate(said)
        for role, text in (("user", words), ("assistant", f"I see: {words[-9:]}"))
    ]
    with daemon(settings), Memd(settings) as app:
        receipt = app.push(turns, thread_id="t", user_id="ana")
        assert "Porto" in app.inject("ana", include_pending=True)
        assert "Karl" not in app.inject("ana", include_pending=True)
        app.flush(wait=True)
        outcome = app.receipt(receipt.id or "")
        assert (outcome.state, outcome.not_kept) == ("stored", {"off_the_record": 2, "forget_wish": 4})
        [request] = model.requests
        asked = orjson.dumps(request.body).decode()
        assert "Porto" in asked
        assert not any(word in asked for word in ("Karl", "fired", "90k"))
        document = orjson.dumps(app.document("ana")).decode()
        assert not any(word in document for word in ("Karl", "90k"))
        assert app.status().not_kept == {"forget_wish": 4, "off_the_record": 2}
        assert [turn.text for turn in layer(settings).turns] == [said[0], "I see: in Porto."]
        assert [(turn.excerpts, turn.gates) for turn in layer(settings).turns] == [
            (((0, 16),), GATES_VERSION),
            ((), GATES_VERSION),
        ]
        app.push([{"role": "user", "content": "forget that", "id": "later"}], thread_id="t", user_id="ana", now=True)
        app.flush(wait=True)
        assert not layer(settings).turns
        before = len(model.requests)
        alone = app.push(turns[2:4], thread_id="alone", user_id="ana", now=True)
        app.flush(wait=True)
        outcome = app.receipt(alone.id or "")
        assert (outcome.state, outcome.reason) == ("skipped", "off_the_record")
        assert len(model.requests) == before


def test_what_a_wish_names_goes_from_every_thread_and_stays_away(asking: MakeSettings, model: ModelServer) -> None:
    """Its turns and the replies to them, also when they were stored long before; their hashes keep imports out."""
    settings = asking()
    store = open_store(settings)

    def tell(thread: str, text: str) -> None:
        turn = {"role": "user", "content": text}
        app.push([turn, {"role": "assistant", "content": f"I see: {text[-6:]}"}], thread_id=thread, user_id="ana")
        app.flush(wait=True)

    with daemon(settings), Memd(settings) as app:
        tell("t", "Our hamster Zyx died.")
        tell("t", "I work as a nurse.")
        exported = app.export("ana")
        tell("other", "Forget what I told you about the hamster.")
        assert [turn.text for turn in layer(settings).turns] == ["I work as a nurse.", "I see: nurse."]
        assert len(turn_hashes(store.load(Bucket("ana")).document)) >= 2
        assert not [path for path in settings.data_dir.rglob("said-*") if b"Zyx" in path.read_bytes()]
        [back] = app.import_memory("ana", exported).memories
        assert back.refused["removed_turn"] == 2
        tell("t", "incognito on")
        tell("t", "I am seeing Quixby.")
        tell("u", "I coach football.")
        tell("t", "incognito off")
        tell("t", "I keep bees.")
        assert [turn.text for turn in layer(settings).turns if turn.role == "user"][1:] == [
            "I coach football.", "I keep bees.",
        ]  # fmt: skip
        assert "Quixby" not in str([request.body for request in model.requests])
