"""Documents in rows: read with the hash over their bytes, and replaced by one statement that has all its fences.

A row has two places for a document. A commit writes the one that is not the latest, so the version before stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from psycopg import Cursor

from memd.context import Bucket, user_hash
from memd.disk import files
from memd.errors import ClaimLost, Conflict, DocumentDamaged, DocumentTooNew, MemdError, StoreUnavailable, StoreUnfit
from memd.memory.document import Document, empty_document, revision_of
from memd.memory.parsing import fact_count, parse
from memd.memory.store.document_file import hash_of, removes, serialised
from memd.memory.store.postgres.connecting import Bounded
from memd.memory.store.postgres.ledger_rows import key_of
from memd.memory.store.postgres.migrations import VERSION
from memd.memory.store.protocol import Loaded, Speaker

READ = """
SELECT encode(hash, 'hex'), CASE latest WHEN 1 THEN first ELSE second END FROM memd.documents WHERE bucket = %s
"""
READ_BOTH = """
SELECT encode(hash, 'hex'), CASE latest WHEN 1 THEN first ELSE second END, CASE latest WHEN 1 THEN second ELSE first END
FROM memd.documents WHERE bucket = %s
"""

FENCES = """
(SELECT min_writer FROM memd.store) <= %(version)s
AND coalesce((SELECT generation FROM memd.tombstones WHERE owner = %(fenced)s), 0) = %(generation)s
"""
"""Under the owner's lock, shared, no tombstone of the user grows; for a project's document it is the speaker's."""

UPDATE = f"""
UPDATE memd.documents SET
  revision = %(revision)s, hash = %(hash)s, commit_id = %(commit)s, latest = 3 - latest, before_is_file = false,
  first = CASE WHEN latest = 2 THEN %(data)s WHEN %(removes)s THEN NULL ELSE first END,
  second = CASE WHEN latest = 1 THEN %(data)s WHEN %(removes)s THEN NULL ELSE second END,
  changed_at = clock_timestamp()
WHERE bucket = %(bucket)s AND revision = %(was)s AND hash = %(was_hash)s AND {FENCES}
RETURNING true
"""  # noqa: S608  (a text of our own)

INSERT = f"""
INSERT INTO memd.documents
  (bucket, owner, user_id, agent_name, project_id, revision, hash, commit_id, latest, first)
SELECT %(bucket)s, %(owner)s, %(user)s, %(agent)s, %(project)s, %(revision)s, %(hash)s, %(commit)s, 1, %(data)s
WHERE {FENCES}
ON CONFLICT (bucket) DO NOTHING
RETURNING true
"""

WHY = f"SELECT (SELECT min_writer FROM memd.store) <= %(version)s, {FENCES}"  # noqa: S608

LANDED = "SELECT commit_id = %s FROM memd.documents WHERE bucket = %s"
SET_ASIDE = "INSERT INTO memd.damaged (bucket, data) VALUES (%s, %s)"
DROP_DAMAGED = "DELETE FROM memd.damaged WHERE bucket = %s"
RESTORE = """
UPDATE memd.documents SET revision = %s, hash = %s, commit_id = %s, latest = 3 - latest,
  first = CASE WHEN latest = 1 THEN NULL ELSE first END, second = CASE WHEN latest = 2 THEN NULL ELSE second END,
  changed_at = clock_timestamp()
WHERE bucket = %s
"""
REMOVE = "DELETE FROM memd.documents WHERE bucket = %s"


def loaded(row: Sequence[Any] | None, owner: Bucket) -> Loaded:
    """The document in a row of READ; an empty one without a row. Raises DocumentDamaged, DocumentTooNew."""
    if row is None:
        return Loaded(empty_document(owner), 0, None)
    content_hash, data = row[0], row[1]
    if data is None or hash_of(data) != content_hash:
        raise DocumentDamaged("E_DOCUMENT_HASH: a memory document is not what was written")
    document = parse(data, owner)
    return Loaded(document, document["revision"], content_hash)


def count_of_facts(row: Sequence[Any] | None) -> int | None:
    """How many facts the document in a row of READ has; None for a damaged one, or one of a later version."""
    if row is None:
        return 0
    return None if row[1] is None or hash_of(row[1]) != row[0] else fact_count(row[1])


def last_good(row: Sequence[Any] | None, owner: Bucket) -> Loaded | None:
    """The version before, in a row of READ_BOTH; None when there is none, or none that is good."""
    if row is None or row[2] is None:
        return None
    try:
        document = parse(row[2], owner)
    except DocumentTooNew:
        raise
    except DocumentDamaged:
        return None
    return Loaded(document, document["revision"], hash_of(row[2]))


class Version(NamedTuple):
    """The next version of a document, ready to be written: its fields, and its name among all commits."""

    document: Document
    content_hash: str
    values: dict[str, Any]
    commit_id: UUID
    is_first: bool
    has_removed: bool


def version(owner: Bucket, fence: Speaker | None, before: Loaded, after: Document) -> Version:
    """The version that replaces `before`. Its ledger is left out. `fence`: whose tombstone must not have grown.

    Raises DocumentDamaged for a document that JSON cannot express, StoreUnavailable for one that is too large.
    """
    document = {**after, "ledger": {}}
    data = serialised(document)
    if len(data) > files.MAX_BYTES:
        raise StoreUnavailable(f"E_DOCUMENT_SIZE: a memory document would be larger than {files.MAX_BYTES} bytes")
    commit_id, content_hash, removal = uuid4(), hash_of(data), removes(before.document, after)
    values = {
        "bucket": key_of(owner),
        "owner": bytes.fromhex(owner.owner),
        "user": owner.user_id,
        "agent": owner.agent_name,
        "project": owner.project_id,
        "revision": revision_of(document),
        "hash": bytes.fromhex(content_hash),
        "commit": commit_id,
        "data": data,
        "removes": removal,
        "was": before.revision,
        "was_hash": bytes.fromhex(before.content_hash or ""),
        "version": VERSION,
        "fenced": bytes.fromhex(user_hash(fence.user_id)) if fence else b"",
        "generation": fence.generation if fence else 0,
    }
    return Version(document, content_hash, values, commit_id, before.content_hash is None, removal)


def write(connection: Bounded, new: Version) -> Cursor[tuple[Any, ...]]:
    """Write a version under its fences; the answer is empty when one of them holds it back (`why`)."""
    if new.has_removed:
        connection.execute(DROP_DAMAGED, [new.values["bucket"]])
    return connection.execute(INSERT if new.is_first else UPDATE, new.values)


def why(connection: Bounded, new: Version, *, is_project: bool) -> MemdError:
    """Why a version was not written."""
    row = connection.execute(WHY, new.values).fetchone()
    if row is not None and not row[0]:
        return StoreUnfit("E_STORE_TOO_NEW: the database is for newer versions of memd; upgrade memd")
    if row is not None and not row[1]:
        if is_project:
            return ClaimLost("the speaker had something forgotten meanwhile; nothing was written")
        return Conflict("the user had something forgotten since the document was loaded; nothing was written")
    return Conflict("the document changed since it was loaded; nothing was written")


def landed(connection: Bounded, new: Version) -> bool:
    """Whether this very version is the stored one."""
    row = connection.execute(LANDED, [new.commit_id, new.values["bucket"]]).fetchone()
    return row is not None and bool(row[0])


def mend(connection: Bounded, owner: Bucket) -> bool | None:
    """Set a damaged document aside, and restore the version before it; whether there was one. None: it is not damaged.

    Raises DocumentTooNew.
    """
    own = key_of(owner)
    row = connection.execute(READ_BOTH, [own]).fetchone()
    try:
        loaded(row, owner)
    except DocumentTooNew:
        raise
    except DocumentDamaged:
        connection.execute(SET_ASIDE, [own, row[1] if row else None])
        good = last_good(row, owner)
        if good is None:
            connection.execute(REMOVE, [own])
        else:
            connection.execute(RESTORE, [good.revision, bytes.fromhex(good.content_hash or ""), uuid4(), own])
        return good is not None
    return None
