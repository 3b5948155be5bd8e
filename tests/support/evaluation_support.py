"""A small labelled user, and replies to its sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from memd.config import Settings
from memd.evaluation.evaluate import Evaluation, Run, Users, read_users
from memd.evaluation.saved_replies import Recorder, Replayed, SavedReply
from memd.evaluation.tally import Rate
from memd.push.signals import load_patterns

Row = dict[str, Any]

PATTERNS = load_patterns()


def user(*sessions: Row, name: str = "ines", questions: Sequence[Row] = ()) -> Row:
    """A line of a set; sessions are a month apart."""
    timed = [
        {"id": f"s{number}", "at": f"2026-{number:02}-01T12:00:00Z", **session}
        for number, session in enumerate(sessions, 1)
    ]
    return {"user": name, "language": "en", "about": "a test", "sessions": timed, "questions": list(questions)}


def says(text: str, **labels: Any) -> Row:
    """A session of one message of the user."""
    return {"messages": [{"role": "user", "content": text}], **labels}


def fact(content: str, quote: str, **fields: Any) -> Row:
    """A proposed fact as a model returns it."""
    return {
        "content": content,
        "category": "context",
        "confidence": 0.9,
        "scope": "user",
        "durability": "durable",
        "authority": "descriptive",
        "evidence": [{"message": 0, "quote": quote}],
        **fields,
    }


def update(*facts: Row, **parts: Any) -> Row:
    """A reply."""
    return {"summaries": {}, "newFacts": list(facts), "confirmedFacts": [], "retiredFacts": [], **parts}


def replies(*updates: Row, name: str = "ines") -> dict[str, SavedReply]:
    """Replies to the first request of each session."""
    rows = [SavedReply(f"{name}.s{number}.1", reply=reply) for number, reply in enumerate(updates, 1)]
    return {row.name: row for row in rows}


def write(file: Path, *rows: Row) -> Path:
    """A JSONL file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def read(file: Path, *rows: Row) -> Users:
    """The users of these lines."""
    return read_users([write(file, *rows)])


def run(users: Users, saved: dict[str, SavedReply], settings: Settings | None = None) -> tuple[Run, Replayed, Recorder]:
    """A replay."""
    recorder = Recorder()
    settings = settings or Settings()
    replayed, measured = Replayed(saved, "replayed", recorder), Run()
    asyncio.run(Evaluation(settings, PATTERNS, replayed).run(users, measured))
    return measured, replayed, recorder


def counts(measured: Run, names: Iterable[str]) -> dict[str, Rate]:
    """The rates of these figures."""
    rates = measured.tally.rates()
    return {name: rates[name] for name in names}
