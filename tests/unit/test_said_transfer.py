"""What was said, where it is read: exports and imports, why, and the audit."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from support import make_settings
from support.recall_support import fact
from support.stores import options

from memd.client import Memd
from memd.context import Bucket
from memd.memory.hand.editing import Editing
from memd.memory.said.changes import append
from memd.memory.said.turns import Mark, Turn
from memd.memory.store.json_store import JsonStore
from memd.ops.audit.verb import inspect
from memd.push.times import iso
from memd.recall.why import why_text

NOW = iso(datetime.now(UTC))
ANA = Bucket("ana")


def identity(number: int) -> str:
    """An identity of a message without an id."""
    return f"n{number:036x}"


TURNS = [
    Turn(identity(1), "t", "assistant", "Where do you live?", NOW, NOW),
    Turn(identity(2), "t", "user", "I live in Porto.", NOW, NOW),
    Turn(identity(3), "t", "assistant", "A fine city.", NOW, NOW),
]
FACT = fact("fact_1", "User lives in Porto", evidence=[{"thread": "t", "message": identity(2), "quote": "in Porto"}])


@pytest.fixture
def app(data_dir: Path) -> Memd:
    """A client whose server is never called, and Ana's memory with three turns."""
    store = JsonStore(data_dir, options())
    loaded = store.load(ANA)
    document = {**loaded.document, "revision": 1, "facts": [FACT]}
    store.commit(ANA, loaded, document, lambda: True, said=append(TURNS, [Mark(identity(2), "over")]))
    return Memd(make_settings(data_dir, "unix:///nowhere/s"))


def said(app: Memd, user: str = "ana") -> list[str]:
    """The texts of what a user said."""
    editing = Editing(app.settings)
    return [turn.text for turn in editing.said(Bucket(user), editing.load(Bucket(user)).document).turns]


def exported(app: Memd) -> dict[str, Any]:
    """The export of Ana, as it comes from a file."""
    value: dict[str, Any] = orjson.loads(orjson.dumps(app.export("ana")))
    return value


def test_an_export_has_the_turns_and_they_come_back(app: Memd, data_dir: Path) -> None:
    """Only to the same user; with their marks, judged anew, and once."""
    export = exported(app)
    assert [turn["text"] for turn in export["memories"][0]["said"]["turns"]] == [turn.text for turn in TURNS]
    assert app.import_memory("bea", export).memories[0].turns == 0
    JsonStore(data_dir, options()).erase("ana", None)
    assert app.import_memory("ana", export).memories[0].turns == 3
    assert app.import_memory("ana", export).memories[0].turns == 0
    editing = Editing(app.settings)
    layer = editing.said(ANA, editing.load(ANA).document)
    assert [turn.text for turn in layer.turns] == [turn.text for turn in TURNS]
    assert list(layer.over) == [identity(2)]
    assert layer.turns[1].gates > 0


def test_what_must_stay_away_is_not_imported(app: Memd, data_dir: Path) -> None:
    """Removed, unwanted, too old, malformed; secrets are redacted by today's rules."""
    export = exported(app)
    app.remove_fact("ana", "fact_1")
    assert said(app) == ["Where do you live?", "A fine city."]
    secret = "sk-proj-" + "aB3dE5fG7hJ9kL1m" * 3
    export["memories"][0]["said"]["turns"] += [
        {"id": identity(4), "thread": "t", "role": "user", "text": "Off the record: I am ill.", "at": NOW},
        {"id": identity(5), "thread": "t", "role": "user", "text": f"My key is {secret}.", "at": NOW},
        {"id": identity(6), "thread": "t", "role": "user", "text": "I was in Oslo.", "at": "2001-01-01T00:00:00Z"},
        {"id": "x", "thread": "t", "role": "user", "text": "?"},
        "?",
    ]
    memory = app.import_memory("ana", export).memories[0]
    reasons = {"removed_turn": 1, "unwanted_turn": 1, "old_turn": 1, "malformed_turn": 2}
    assert {name: count for name, count in memory.refused.items() if name.endswith("_turn")} == reasons
    assert memory.turns == 1
    assert not [path for path in data_dir.rglob("said-*") if secret[-12:] in path.read_text()]


def test_why_shows_the_quote_in_its_turn(app: Memd) -> None:
    """With the turns around it."""
    (entry,) = app.why("ana", "fact_1")["evidence"]
    assert [turn["text"] for turn in entry["turns"]] == [turn.text for turn in TURNS]
    text = why_text(app.why("ana", "fact_1"))
    assert "user: I live in Porto." in text
    assert "assistant: Where do you live?" in text


def test_the_audit_looks_into_what_was_said(app: Memd, data_dir: Path) -> None:
    """A secret that an older version kept, and lines that cannot be read."""
    (file,) = data_dir.rglob("said-*")
    text = file.read_text().replace("A fine city.", "Key AKIAQ3EGUZ7XPLMNOPQR")
    file.write_text(text.replace('{"mark"', '{"murk"'))
    store = JsonStore(data_dir, options())
    loaded = store.load(ANA)
    field = {**loaded.document["said"], "bytes": file.stat().st_size}
    store.commit(ANA, loaded, {**loaded.document, "said": field}, lambda: True)
    found = {audited.finding.place: audited.finding.rule for audited in inspect(app.settings, ["ana"]).findings}
    assert found["said[2].text"] == "secret"
    assert found["said"] == "malformed"
