"""Vectors in rows: of pgvector's type where the database has it, which then compares them; else bytes.

Either way every fact of a memory is compared, and no index is asked, which would miss some (docs/recall.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import uuid4

from psycopg import sql

from memd.context import Bucket, user_hash
from memd.errors import Conflict, StoreUnavailable
from memd.memory.store.postgres import document_rows, pgvector
from memd.memory.store.postgres.committing import Transactions, bucket_lock, owner_lock
from memd.memory.store.postgres.connecting import Bounded, Postgres
from memd.memory.store.postgres.ledger_rows import key_of
from memd.memory.store.postgres.migrations import VERSION
from memd.memory.store.protocol import Loaded
from memd.memory.store.vector_sets import Compare, Cosines, VectorSet, embeddable

T = TypeVar("T")

MARKS = "SELECT bucket, stamp FROM memd.vector_sets WHERE bucket = ANY(%s)"
READ = """
SELECT embedder, dimensions,
  (SELECT string_agg(v.fact || v.vector, ''::bytea) FROM memd.vectors v WHERE v.bucket = s.bucket)
FROM memd.vector_sets s WHERE bucket = %s
"""
READ_SENT = sql.SQL("""
SELECT s.embedder, s.dimensions, v.fact, {send}(v.vector)
FROM memd.vector_sets s JOIN memd.vectors v USING (bucket) WHERE bucket = %s
""")
HELD = """
SELECT v.fact FROM memd.vector_sets s JOIN memd.vectors v USING (bucket) WHERE bucket = %s AND embedder = %s
"""
FENCE = f"SELECT {document_rows.FENCES}"
OTHERS = """
DELETE FROM memd.vectors WHERE bucket = %(bucket)s AND (NOT fact = ANY(%(present)s::bytea[]) OR EXISTS (
  SELECT FROM memd.vector_sets
  WHERE bucket = %(bucket)s AND (embedder <> %(embedder)s OR dimensions <> %(dimensions)s)))
"""
SET = """
INSERT INTO memd.vector_sets (bucket, embedder, dimensions, stamp)
VALUES (%(bucket)s, %(embedder)s, %(dimensions)s, %(stamp)s)
ON CONFLICT (bucket) DO UPDATE
SET embedder = excluded.embedder, dimensions = excluded.dimensions, stamp = excluded.stamp
"""
ADD = sql.SQL("""
INSERT INTO memd.vectors (bucket, fact, vector)
SELECT %(bucket)s, fact, vector::{type}
FROM unnest(%(facts)s::bytea[], string_to_array(%(vectors)s::text, ' ')) AS new (fact, vector)
ON CONFLICT (bucket, fact) DO UPDATE SET vector = excluded.vector
""")
"""As an array of texts each vector would be searched for quotes, which takes longer than to read it."""

ADD_BYTES = """
INSERT INTO memd.vectors (bucket, fact, vector)
SELECT %(bucket)s, fact, vector FROM unnest(%(facts)s::bytea[], %(vectors)s::bytea[]) AS new (fact, vector)
ON CONFLICT (bucket, fact) DO UPDATE SET vector = excluded.vector
"""
NO_SET = "DELETE FROM memd.vector_sets WHERE bucket = %(bucket)s"
REMOVE = "DELETE FROM memd.vectors WHERE bucket = %s AND fact = ANY(%s)"


class VectorRows:
    """The vectors of a database (see `vector_sets.VectorStore`)."""

    def __init__(self, postgres: Postgres, owner: Callable[[Bucket], Bucket]) -> None:
        """`owner`: of a bucket's document."""
        self._postgres = postgres
        self._transactions = Transactions(postgres)
        self._owner = owner
        self._known: tuple[pgvector.Kind | None, ...] = ()

    def marks(self, buckets: Sequence[Bucket]) -> list[Hashable]:
        """The last write of each bucket's vectors; None without any."""
        places = self._places(buckets)
        rows = self._postgres.run(lambda connection: connection.execute(MARKS, [places]).fetchall())
        found: dict[bytes, Hashable] = dict(rows)
        return [found.get(place) for place in places]

    def read(self, bucket: Bucket) -> VectorSet | None:
        """The vectors of a memory; None without any."""
        place = self._places([bucket])
        if kind := self._kind():
            query = kind.into(READ_SENT)
            sent = self._run(lambda connection: connection.execute(query, place, binary=True).fetchall())
            if not sent:
                return None
            records = ((bytes(name), pgvector.numbers_of(vector, kind)) for _, _, name, vector in sent)
            return VectorSet.of(bytes(sent[0][0]), sent[0][1], records)
        row = self._run(lambda connection: connection.execute(READ, place, binary=True).fetchone())
        if row is None or row[2] is None:
            return None
        found = VectorSet(bytes(row[0]), row[1], bytes(row[2]))
        return found if found.is_whole else None

    def held(self, bucket: Bucket, embedder: bytes) -> frozenset[bytes]:
        """The names of the vectors that this embedder has made."""
        values = [*self._places([bucket]), embedder]
        rows = self._postgres.run(lambda connection: connection.execute(HELD, values).fetchall())
        return frozenset(bytes(name) for (name,) in rows)

    def comparing(self) -> Compare | None:
        """How the database compares vectors; None without pgvector."""
        return self._cosines if self._kind() else None

    def write(self, bucket: Bucket, loaded: Loaded, vectors: VectorSet) -> int:
        """Add vectors of facts that are still there, and remove all of other facts and other embedders."""
        owner = self._owner(bucket)
        place: dict[str, Any] = {
            "bucket": key_of(owner),
            "embedder": vectors.embedder,
            "dimensions": vectors.dimensions,
            "stamp": uuid4(),
            "version": VERSION,
            "fenced": b"" if bucket.project_id else bytes.fromhex(user_hash(bucket.user_id)),
            "generation": 0 if bucket.project_id else loaded.generation,
        }
        kind = self._kind()
        add = kind.into(ADD) if kind else ADD_BYTES
        made = dict(vectors.items())
        texts = {name: pgvector.text_of(numbers) for name, numbers in made.items()} if kind else {}

        def work(connection: Bounded) -> int:
            row = connection.execute(FENCE, place).fetchone()
            if row is None or not row[0]:
                raise Conflict("the user had something forgotten since the document was loaded; nothing was written")
            found = connection.execute(document_rows.READ, [place["bucket"]]).fetchone()
            present = embeddable(document_rows.loaded(found, owner).document).keys()
            new = [name for name in made if name in present]
            connection.execute(OTHERS, {**place, "present": list(present)})
            connection.execute(SET if present else NO_SET, place)
            if new:
                sent = " ".join(texts[name] for name in new) if kind else [made[name] for name in new]
                connection.execute(add, {**place, "facts": new, "vectors": sent})
            return len(new)

        locks = (owner_lock(bucket.owner, shared=True), bucket_lock(owner.hash))
        with self._looking_again():
            return self._transactions.run(locks, work)

    def _cosines(self, buckets: Sequence[Bucket], embedder: bytes, vector: bytes) -> Cosines:
        kind = self._kind()
        if kind is None:
            return Cosines()
        values = {
            "buckets": self._places(buckets),
            "embedder": embedder,
            "dimensions": len(vector) // 2,
            "target": pgvector.text_of(vector),
        }
        query = kind.into(pgvector.COSINES)
        row = self._run(lambda connection: connection.execute(query, values, binary=True).fetchone())
        if row is None or row[0] is None:
            return Cosines()
        return Cosines(bytes(row[0]), pgvector.cosines_of(row[1]))

    def _places(self, buckets: Sequence[Bucket]) -> list[bytes]:
        return [key_of(self._owner(bucket)) for bucket in buckets]

    def _kind(self) -> pgvector.Kind | None:
        """The type of pgvector that the vectors have; None where they are bytes."""
        if not self._known:
            self._known = (self._postgres.run(pgvector.kind_of),)
        return self._known[0]

    def _run(self, work: Callable[[Bounded], T]) -> T:
        with self._looking_again():
            return self._postgres.run(work)

    @contextmanager
    def _looking_again(self) -> Iterator[None]:
        """After a failure look anew for pgvector: `memd store init` may have changed the type meanwhile."""
        try:
            yield
        except StoreUnavailable:
            self._known = ()
            raise


def remove_gone(connection: Bounded, bucket: bytes, names: Sequence[bytes]) -> None:
    """Remove the vectors of the facts that a commit removes or changes, in its transaction."""
    if names:
        connection.execute(REMOVE, [bucket, names])
