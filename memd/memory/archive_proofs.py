"""The turns that prove archived facts: all that a reader keeps of the archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from memd.memory.document import Document, Fact, archive_of
from memd.memory.facts import evidence_of, proven_by

_FIELD = "archiveProofs"
"""Only in a document to read: its archive as JSON, without all but the names of messages."""


def for_readers(document: Document) -> dict[str, Any]:
    """The field that a document to read has in place of its archive; none where the archive proves nothing.

    As JSON, which is read once a query asks for excerpts: a document is read far more often.
    """
    proofs = [proof for entry in archive_of(document) if (proof := _names(entry))]
    return {_FIELD: orjson.dumps(proofs).decode()} if proofs else {}


def archive_proofs(document: Document) -> Iterator[str]:
    """The identities of the turns that proved or confirmed its archived facts, of a document to read as well."""
    kept = document.get(_FIELD)
    for entry in orjson.loads(kept) if isinstance(kept, str) and "archive" not in document else archive_of(document):
        yield from proven_by(entry)
        yield from (str(proof.get("message")) for proof in evidence_of(entry))


def _names(entry: Fact) -> Fact:
    names = [{name: proof.get(name) for name in ("thread", "message")} for proof in evidence_of(entry)]
    others = {"provenBy": entry["provenBy"]} if entry.get("provenBy") else {}
    return {"evidence": names, **others} if names else others
