"""Vectors in files: one beside each document, replaced whole, and ignored where it does not fit its document.

Its head names the embedder, the length of the vectors, and the revision of the document that it was written for: a
document that was restored from an older copy does not fit it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from memd.context import Bucket
from memd.disk import files
from memd.disk.lock import locked
from memd.errors import Conflict, DocumentDamaged
from memd.memory.document import Document, revision_of
from memd.memory.store import paths, seal_file
from memd.memory.store.protocol import Loaded
from memd.memory.store.tombstone import TombstoneFiles
from memd.memory.store.vector_sets import Compare, VectorSet, embeddable, gone

FORM = b"memd vectors 1\n\n"
_HEAD = struct.Struct("<16s16sIQ")
"""The name of the form, the embedder, the dimensions, the revision."""


class VectorFiles:
    """The vectors of a data folder (see `vector_sets.VectorStore`)."""

    def __init__(
        self, data_dir: Path, tombstones: TombstoneFiles, owner: Callable[[Bucket], Bucket],
        file: Callable[[Bucket], Path], read: Callable[[Bucket], Loaded],
    ) -> None:  # fmt: skip
        """`owner`: of a bucket's document, whose `file` it is and whom `read` reads, links refused."""
        self._data_dir = data_dir
        self._tombstones = tombstones
        self._owner = owner
        self._document_file = file
        self._read_document = read

    def marks(self, buckets: Sequence[Bucket]) -> list[Hashable]:
        """Inode, time and size of each bucket's file; None when there is none."""
        return [files.mark(self._file(bucket)) for bucket in buckets]

    def read(self, bucket: Bucket) -> VectorSet | None:
        """The vectors of a memory; None where the file is missing, damaged or of a later document."""
        found = _read(self._file(bucket))
        if found is None:
            return None
        try:
            revision = self._read_document(self._owner(bucket)).revision
        except DocumentDamaged:
            return None
        return found[0] if found[1] <= revision else None

    def held(self, bucket: Bucket, embedder: bytes) -> frozenset[bytes]:
        """The names of the vectors that this embedder has made."""
        found = self.read(bucket)
        return found.names() if found is not None and found.embedder == embedder else frozenset()

    def comparing(self) -> Compare | None:
        """None: a file compares nothing."""
        return None

    def write(self, bucket: Bucket, loaded: Loaded, vectors: VectorSet) -> int:
        """Add vectors of facts that are still there, and remove all of other facts and other embedders."""
        owner = self._owner(bucket)
        with (
            locked(paths.owner_lock(self._data_dir, bucket.owner), shared=True),
            locked(paths.bucket_lock(self._data_dir, owner)),
        ):
            seal_file.refuse_sealed(self._data_dir)
            if not bucket.project_id and self._tombstones.generation(bucket.user_id) != loaded.generation:
                raise Conflict("the user had something forgotten since the document was loaded; nothing was written")
            document = self._read_document(owner).document
            present = embeddable(document).keys()
            new = vectors.only(present)
            old = self.read(bucket)
            if old is not None and old.is_like(new):
                kept = old.only(present - new.names())
                _write(self._file(bucket), new._replace(records=kept.records + new.records), document)
            else:
                _write(self._file(bucket), new, document)
            return new.size

    def _file(self, bucket: Bucket) -> Path:
        return self._document_file(self._owner(bucket)).with_name(paths.VECTORS)


def remove_gone(document_file: Path, before: Document, after: Document) -> None:
    """Remove the vectors of the facts that a commit removes or changes, before it replaces the document.

    Killed in between, vectors of facts that are still there are missing, and are made again. Raises StoreUnavailable.
    """
    file = document_file.with_name(paths.VECTORS)
    if files.mark(file) is None:
        return
    names = frozenset(gone(before, after))
    if not names:
        return
    found = _read(file)
    if found is None:
        _remove(file)
    elif kept := found[0].names() - names:
        _replace(file, found[0].only(kept), found[1])
    else:
        _remove(file)


def _read(file: Path) -> tuple[VectorSet, int] | None:
    """The vectors in a file, and the revision that it names; None for no file of ours. Raises StoreUnavailable."""
    try:
        data = files.read(file) or b""
    except DocumentDamaged:  # a link, or too large: the next write replaces it
        return None
    if len(data) < _HEAD.size:
        return None
    form, embedder, dimensions, revision = _HEAD.unpack_from(data)
    found = VectorSet(embedder, dimensions, data[_HEAD.size :])
    return (found, revision) if form == FORM and found.is_whole else None


def _write(file: Path, vectors: VectorSet, document: Document) -> None:
    if vectors.size:
        _replace(file, vectors, revision_of(document))
    elif files.mark(file) is not None:
        _remove(file)


def _replace(file: Path, vectors: VectorSet, revision: int) -> None:
    head = _HEAD.pack(FORM, vectors.embedder, vectors.dimensions, revision)
    files.replace(file, head + vectors.records, file.with_name(paths.VECTORS_TEMP))


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
        files.sync_folder(file.parent)
    except OSError as error:
        raise files.unavailable(error) from None
