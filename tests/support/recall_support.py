"""Memories to read: facts, documents and their files, without a server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from memd.client import Memd
from memd.context import Bucket
from memd.memory.document import SECTIONS, Document, empty_document
from memd.memory.said.changes import append
from memd.memory.said.excerpts import judged
from memd.memory.said.turns import Mark, Turn
from memd.memory.store.json_store import open_store
from memd.memory.store.paths import FILE, folder
from memd.push.times import iso
from support import make_settings


def fact(fact_id: str, content: str, confidence: float = 0.9, **fields: Any) -> dict[str, Any]:
    """A stored fact."""
    return {"id": fact_id, "content": content, "category": "context", "confidence": confidence, **fields}


ANA = Bucket("ana")


def document(*facts: dict[str, Any], bucket: Bucket = ANA, **summaries: str) -> Document:
    """A document with facts and summaries."""
    made = {**empty_document(bucket), "facts": list(facts)}
    for name, text in summaries.items():
        made[SECTIONS[name]][name] = {"summary": text, "updatedAt": "2026-01-01T00:00:00Z"}
    return made


def write(data_dir: Path, made: Document) -> None:
    """A document as the file of its bucket."""
    bucket = Bucket(made["userId"], made["agentName"])
    file = folder(data_dir, bucket, shared=False) / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_suffix(".new").write_bytes(orjson.dumps(made))
    file.with_suffix(".new").replace(file)


def turn(identity: str, text: str, said_at: str = "2026-06-03T10:00:00Z", thread: str = "t1", **fields: Any) -> Turn:
    """A turn that the gates have judged."""
    role = fields.pop("role", "user")
    return judged(Turn(identity, thread, role, text, said_at, iso(datetime.now(UTC)), **fields), ())


def store(data_dir: Path, made: Document, *turns: Turn, marks: tuple[Mark, ...] = (), witnessed: bool = True) -> None:
    """A document with what was said, as a worker stores it.

    `witnessed`: each thread begins with a turn that proves the first fact, so that those after it may give excerpts.
    """
    if witnessed and made["facts"]:
        begun = {one.thread: turn(f"begun-{one.thread}", "Hm.", one.said_at, one.thread) for one in turns}
        first = {"provenBy": [one.id for one in begun.values()], **made["facts"][0]}
        made, turns = {**made, "facts": [first, *made["facts"][1:]]}, (*begun.values(), *turns)
    settings = make_settings(data_dir, None)
    bucket = Bucket(made["userId"], made["agentName"])
    files = open_store(settings)
    loaded = files.load(bucket)
    files.commit(bucket, loaded, {**loaded.document, **made, "revision": 1}, lambda: True, said=append(turns, marks))


def reader(data_dir: Path, **changes: Any) -> Memd:
    """A client without a server."""
    return Memd(make_settings(data_dir, None, **changes))


def one_hot(text: str) -> list[float]:
    """An embedder that knows three subjects and no words."""
    subjects = (("vegetarian", "meat", "steak"), ("Porto", "home", "city"), ("cello", "instrument"))
    return [float(any(word.lower() in text.lower() for word in words)) for words in subjects]


def broken(text: str) -> list[float]:
    """An embedder that fails with an error that contains its input."""
    raise RuntimeError(text)


def crooked(text: str) -> list[float]:
    """An embedder whose vectors differ in length."""
    return [1.0] * (1 + len(text) % 2)
