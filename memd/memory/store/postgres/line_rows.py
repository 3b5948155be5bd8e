"""Lines in rows, one row for each append: of the said layer, and of what left a session's window.

What names them says how many of their bytes count, as with files; but they are written in the same transaction, so
there is never a byte that is not named.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from memd.disk.appending import NamedLines
from memd.memory.document import Document, SaidFile, said_file_of, with_said_file
from memd.memory.said.changes import Append, SaidChange, anew, with_more
from memd.memory.store.postgres.connecting import Bounded


class LineRows:
    """The lines in one table. `owner`: the values of the columns that say whose they are."""

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        owner = " AND ".join(f"{column} = %s" for column in columns)
        self._read = (
            f"SELECT start, lines FROM memd.{table} WHERE {owner} AND file = %s "  # noqa: S608  (names of our own)
            "AND start + octet_length(lines) > %s ORDER BY start"
        )
        self._add = (
            f"INSERT INTO memd.{table} ({', '.join(columns)}, file, start, lines) "  # noqa: S608
            f"VALUES ({', '.join('%s' for _ in columns)}, %s, %s, %s) "
            f"ON CONFLICT ({', '.join(columns)}, file, start) DO UPDATE SET lines = excluded.lines"
        )
        self._remove = f"DELETE FROM memd.{table} WHERE {owner} AND file <> %s"  # noqa: S608

    def read(
        self, connection: Bounded, owner: Sequence[Any], named: NamedLines, last: int | None = None
    ) -> bytes | None:
        """The bytes that are named; None when they are gone. `last`: only lines that stand whole in so many bytes."""
        if not named.file:
            return b""
        since = 0 if last is None else max(0, named.bytes - last)
        rows = connection.execute(self._read, [*owner, named.file, since]).fetchall()
        if not rows and named.bytes > since:
            return None
        first = rows[0][0] if rows else since
        data = b"".join(lines for _, lines in rows)[: named.bytes - first]
        if not since:
            return data
        cut = max(0, since - first)
        return data[data.find(b"\n", cut) + 1 :] if b"\n" in data[cut:] else b""

    def append(self, connection: Bounded, owner: Sequence[Any], named: NamedLines, lines: bytes) -> None:
        """Add lines at the end of what is named. Who comes too late finds others there, and is rolled back."""
        connection.execute(self._add, [*owner, named.file, named.bytes, lines])

    def remove_others(self, connection: Bounded, owner: Sequence[Any], file: str) -> None:
        """Remove all lines but those of this file."""
        connection.execute(self._remove, [*owner, file])


SAID = LineRows("said", ("bucket",))
SESSION_LINES = LineRows("session_lines", ("bucket", "thread"))


def new_name(prefix: str) -> str:
    """A name for lines, as files have."""
    return f"{prefix}-{os.urandom(8).hex()}.jsonl"


def with_change(before: Document, after: Document, change: SaidChange | None) -> Document:
    """The document that names the layer after this change, which `write_change` writes."""
    if change is None:
        return after
    old = said_file_of(before)
    if isinstance(change, Append) and old.file:
        return with_said_file(after, with_more(old, change))
    return with_said_file(after, anew(new_name("said"), change) if change.lines else SaidFile())


def write_change(
    connection: Bounded, bucket: bytes, before: Document, after: Document, change: SaidChange | None
) -> None:
    """Write the lines of a change, and remove those that are named no more. `after`: the document of `with_change`."""
    old, new = said_file_of(before), said_file_of(after)
    place = NamedLines(new.file, old.bytes if new.file == old.file else 0)
    if change is not None and change.lines:
        SAID.append(connection, [bucket], place, change.lines)
    if new.file != old.file:
        SAID.remove_others(connection, [bucket], new.file)
