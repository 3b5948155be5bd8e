"""Secrets on the blind corpora: how many are cut out, and how many ordinary turns are touched, in both halves."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.push.redaction import find, redact

DATA = Path(__file__).parents[1] / "data"
CORPORA = ("secrets_blind", "secrets_blind_second")
HALVES = ("open", "heldout")


def rows(corpus: str, name: str) -> Iterator[dict[str, Any]]:
    with (DATA / corpus / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def is_clean(row: dict[str, Any]) -> bool:
    """Whether none of the secrets of a message is left after redaction."""
    left = redact(decoded(row["text_b64"]))[0]
    return not any(decoded(secret) in left for secret in row["secret_b64"])


@pytest.mark.parametrize(
    ("corpus", "half", "least"),
    [
        ("secrets_blind", "open", 0.97),
        ("secrets_blind", "heldout", 0.95),
        ("secrets_blind_second", "open", 0.97),
        ("secrets_blind_second", "heldout", 0.95),
    ],
)
def test_secrets_are_cut_out(corpus: str, half: str, least: float) -> None:
    """Six languages, some fifty vendors, and evasions. Only counts are told: the held-out half stays unread."""
    clean = [is_clean(row) for row in rows(corpus, f"secrets.{half}.jsonl")]
    assert len(clean) >= 370
    assert sum(clean) / len(clean) >= least, f"{sum(clean)} of {len(clean)}"


def test_ordinary_turns_are_left_alone() -> None:
    """At most 10 of 9,264 turns, with code, hashes, order numbers and talk about passwords among them."""
    touched = [
        bool(find(row["text"]))
        for corpus in CORPORA
        for half in HALVES
        for row in rows(corpus, f"ordinary.{half}.jsonl")
    ]
    assert len(touched) >= 9_000
    assert sum(touched) <= 10, f"{sum(touched)} of {len(touched)}"
