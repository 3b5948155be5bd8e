"""The extension pgvector: a database that has it keeps vectors in its type and compares them itself, exactly.

Without it they are bytes, which the reader compares. `memd store init` decides, and may be run again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import orjson
from psycopg import errors, sql

from memd.memory.store.postgres.connecting import Bounded

AVAILABLE = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')"
CREATE = "CREATE EXTENSION IF NOT EXISTS vector"
INSTALLED = """
SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
"""
OF_COLUMN = """
SELECT n.nspname, t.typname
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE a.attrelid = 'memd.vectors'::regclass AND a.attname = 'vector' AND t.typname IN ('vector', 'halfvec')
"""
HAS_HALF = "SELECT EXISTS (SELECT FROM pg_type t WHERE typname = 'halfvec' AND typnamespace = %s::regnamespace)"
EMPTY = "TRUNCATE memd.vectors, memd.vector_sets"
CHANGE = sql.SQL("""
ALTER TABLE memd.vectors ALTER vector TYPE {type} USING NULL::{type}, ALTER vector SET STORAGE MAIN
""")

COSINES = sql.SQL("""
SELECT string_agg(v.fact, ''::bytea),
  string_agg(float4send((-(v.vector OPERATOR({schema}.<#>) %(target)s::{type}))::float4), ''::bytea)
FROM memd.vector_sets s JOIN memd.vectors v USING (bucket)
WHERE s.bucket = ANY(%(buckets)s) AND s.embedder = %(embedder)s AND s.dimensions = %(dimensions)s
""")
"""Names and cosines as two values: as rows, thousands of them take longer to fetch than to compare. Vectors have length
1, so the inner product is the cosine."""


class Kind(NamedTuple):
    """A type of pgvector: `halfvec`, since 0.7, or `vector`, whose numbers take twice the room."""

    schema: str
    name: str

    def into(self, statement: sql.SQL) -> sql.Composed:
        """A statement about vectors of this type."""
        schema, send = sql.Identifier(self.schema), sql.Identifier(self.schema, f"{self.name}_send")
        return statement.format(schema=schema, type=sql.Identifier(self.schema, self.name), send=send)


def adopt(connection: Bounded) -> str:
    """Keep vectors in pgvector's type where the database has it, or may have it; returns its version, else nothing.

    Vectors of another type are removed: a scheduler makes them anew within the hour. Raises psycopg.Error.
    """
    row = connection.execute(AVAILABLE).fetchone()
    if row is None or not row[0]:
        return ""
    try:
        with connection.transaction():
            connection.execute(CREATE)
    except errors.InsufficientPrivilege:
        return ""
    schema, version = connection.execute(INSTALLED).fetchone() or ("", "")
    has_half = connection.execute(HAS_HALF, [sql.Identifier(schema).as_string(connection)]).fetchone()
    wanted = Kind(schema, "halfvec" if has_half is not None and has_half[0] else "vector")
    if kind_of(connection) != wanted:
        connection.execute(EMPTY)
        connection.execute(wanted.into(CHANGE))
    return str(version)


def kind_of(connection: Bounded) -> Kind | None:
    """The type of pgvector in which vectors are kept; None where they are bytes. Raises psycopg.Error."""
    row = connection.execute(OF_COLUMN).fetchone()
    return Kind(*row) if row else None


def text_of(numbers: bytes) -> str:
    """A vector of half-precision floats as pgvector reads it."""
    return orjson.dumps(struct.unpack(f"<{len(numbers) // 2}e", numbers)).decode()


def numbers_of(sent: bytes, kind: Kind) -> bytes:
    """What the type's own `send` gives, as half-precision floats."""
    (count,) = struct.unpack_from(">H", sent)
    form = "e" if kind.name == "halfvec" else "f"
    return struct.pack(f"<{count}e", *struct.unpack_from(f">{count}{form}", sent, 4))


def cosines_of(sent: bytes) -> Sequence[float]:
    """The cosines in an answer to COSINES."""
    return struct.unpack(f">{len(sent) // 4}f", sent)
