"""Secrets on the blind corpus: how many are cut out, and how many ordinary turns are touched, in both halves."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.push.redaction import find, redact

CORPUS = Path(__file__).parents[1] / "data" / "secrets_blind"
HALVES = ("open", "heldout")


def rows(name: str) -> Iterator[dict[str, Any]]:
    with (CORPUS / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def is_clean(row: dict[str, Any]) -> bool:
    """Whether none of the secrets of a message is left after redaction."""
    left = redact(decoded(row["text_b64"]))[0]
    return not any(decoded(secret) in left for secret in row["secret_b64"])


@pytest.mark.parametrize(("half", "least"), [("open", 0.97), ("heldout", 0.95)])
def test_secrets_are_cut_out(half: str, least: float) -> None:
    """Six languages, some fifty vendors, and evasions. Only counts are told: the held-out half stays unread."""
    clean = [is_clean(row) for row in rows(f"secrets.{half}.jsonl")]
    assert len(clean) >= 600
    assert sum(clean) / len(clean) >= least, f"{sum(clean)} of {len(clean)}"


def test_ordinary_turns_are_left_alone() -> None:
    """At most 10 of 5,820 turns, with code, hashes, order numbers and talk about passwords among them."""
    touched = [bool(find(row["text"])) for half in HALVES for row in rows(f"ordinary.{half}.jsonl")]
    assert len(touched) >= 5_000
    assert sum(touched) <= 10, f"{sum(touched)} of {len(touched)}"
