"""Memories to read: facts, documents and their files, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from memd.client import Memd
from memd.context import Bucket
from memd.memory.document import SECTIONS, Document, empty_document
from memd.memory.store.paths import FILE, folder
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
