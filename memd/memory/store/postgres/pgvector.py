"""The extension pgvector: a database that has it keeps vectors in its type and compares them itself, exactly.

Without it they are bytes, which the reader compares. `memd store init` decides, and may be run again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

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
SELECT n.nspname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE a.attrelid = 'memd.vectors'::regclass AND a.attname = 'vector' AND t.typname = 'vector'
"""
EMPTY = "TRUNCATE memd.vectors, memd.vector_sets"
CHANGE = sql.SQL("""
ALTER TABLE memd.vectors ALTER vector TYPE {schema}.vector USING NULL::{schema}.vector, ALTER vector SET STORAGE MAIN
""")

COSINES = sql.SQL("""
SELECT string_agg(v.fact, ''::bytea),
  string_agg(float4send((-(v.vector OPERATOR({schema}.<#>) %(target)s::{schema}.vector))::float4), ''::bytea)
FROM memd.vector_sets s JOIN memd.vectors v USING (bucket)
WHERE s.bucket = ANY(%(buckets)s) AND s.embedder = %(embedder)s AND s.dimensions = %(dimensions)s
""")
"""Names and cosines as two values: as rows, thousands of them take longer to fetch than to compare. Vectors have length
1, so the inner product is the cosine."""


def adopt(connection: Bounded) -> str:
    """Keep vectors in pgvector's type where the database has it, or may have it; returns its version, else nothing.

    Vectors that were bytes until now are removed: a scheduler makes them anew within the hour. Raises psycopg.Error.
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
    if not schema_of(connection):
        connection.execute(EMPTY)
        connection.execute(CHANGE.format(schema=sql.Identifier(schema)))
    return str(version)


def schema_of(connection: Bounded) -> str:
    """The schema of pgvector's type, in which vectors are kept; empty where they are bytes. Raises psycopg.Error."""
    row = connection.execute(OF_COLUMN).fetchone()
    return row[0] if row else ""


def text_of(numbers: bytes) -> str:
    """A vector of half-precision floats as pgvector reads it."""
    return orjson.dumps(struct.unpack(f"<{len(numbers) // 2}e", numbers)).decode()


def numbers_of(sent: bytes) -> bytes:
    """What pgvector's `vector_send` gives, as half-precision floats."""
    (count,) = struct.unpack_from(">H", sent)
    return struct.pack(f"<{count}e", *struct.unpack_from(f">{count}f", sent, 4))


def cosines_of(sent: bytes) -> Sequence[float]:
    """The cosines in an answer to COSINES."""
    return struct.unpack(f">{len(sent) // 4}f", sent)
