"""Marks: what stands in a text where a secret was cut out."""

from __future__ import annotations

import re

MARK = re.compile(r"\[redacted:([a-z_]+)\]")


def mark(kind: str) -> str:
    """The mark of a secret of this kind."""
    return f"[redacted:{kind}]"
