"""Pages of lists that are made whole anyway: a cursor is the place at which the next page begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import Field

T = TypeVar("T")

_DIGITS = 9

PlaceCursor = Annotated[
    str, Field(description="`next` of the page before; empty for the first.", pattern=f"^[0-9]{{0,{_DIGITS}}}$")
]


def page(rows: Sequence[T], after: str, limit: int) -> tuple[Sequence[T], str]:
    """A page of rows, and the cursor of the next one, empty on the last. A text that is no cursor is the beginning."""
    start = int(after) if after.isdecimal() and len(after) <= _DIGITS else 0
    end = start + limit
    return rows[start:end], str(end) if end < len(rows) else ""
