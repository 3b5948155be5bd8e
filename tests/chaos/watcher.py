"""The watcher, as a process: reads all documents all the time and records states that no reader must see.

Torn: a file that is not a document, or a document that has disappeared. Backwards: a revision that does not grow, or
a fact that has disappeared (no update of a run retires a fact).
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos import load
from chaos.plan import DATA, Plan, read_plan
from memd.context import Bucket
from memd.errors import StoreUnavailable
from memd.memory.store import paths

FINDINGS = "findings.jsonl"
READS = "reads"
SHOWN_BYTES = 80
"""Bytes of a torn document that the report shows."""


@dataclass
class Seen:
    """The last read version of a document."""

    mark: Hashable = None
    revision: int = 0
    facts: set[str] = field(default_factory=set)


class Files:
    """Documents in files, read as anybody may read them."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def mark(self, bucket: Bucket) -> Hashable:
        """A value that changes with the document; None without one."""
        try:
            found = self._file(bucket).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self, bucket: Bucket) -> bytes:
        """Its bytes."""
        return self._file(bucket).read_bytes()

    def name(self, bucket: Bucket) -> str:
        """Where it is."""
        return str(self._file(bucket).relative_to(self._data_dir))

    def _file(self, bucket: Bucket) -> Path:
        return paths.folder(self._data_dir, bucket, shared=False) / paths.FILE


class Rows:
    """Documents in rows of a database. Bytes that do not fit their hash are torn."""

    def __init__(self, url: str) -> None:
        from memd.memory.store.postgres.connecting import Postgres

        self._postgres = Postgres.at(url, 1)

    def mark(self, bucket: Bucket) -> Hashable:
        """A value that changes with the document; None without one."""
        return self._row("SELECT commit_id FROM memd.documents WHERE bucket = %s", bucket)

    def read(self, bucket: Bucket) -> bytes:
        """Its bytes; a few words where they do not fit their hash."""
        from memd.memory.store.postgres.document_rows import READ

        row = self._row(READ, bucket)
        if row is None or row[1] is None or hashlib.sha256(row[1]).hexdigest() != row[0]:
            return b"no bytes that fit the hash"
        data: bytes = row[1]
        return data

    def name(self, bucket: Bucket) -> str:
        """Where it is."""
        return bucket.hash

    def _row(self, statement: str, bucket: Bucket) -> tuple[Any, ...] | None:
        place = [bytes.fromhex(bucket.hash)]
        return self._postgres.run(lambda connection: connection.execute(statement, place).fetchone())


class Watcher:
    """Reads every document of the plan that has changed since its last read."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._place = Rows(plan.database) if plan.database else Files(folder / DATA)
        self._seen = {bucket: Seen() for bucket in load.buckets(plan)}
        self.reads = 0

    def look(self) -> None:
        """Read the changed documents. While their place is out of reach, none."""
        for bucket, seen in self._seen.items():
            try:
                mark = self._place.mark(bucket)
                if mark is None and seen.revision:
                    self._note("torn", self._place.name(bucket), "it is gone")
                    seen.revision = 0
                if mark is not None and mark != seen.mark:
                    seen.mark = mark
                    self._read(self._place.read(bucket), self._place.name(bucket), seen)
            except StoreUnavailable:
                return

    def _read(self, data: bytes, file: str, seen: Seen) -> None:
        self.reads += 1
        try:
            document = json.loads(data)
            revision, facts = document["revision"], {fact["id"] for fact in document["facts"]}
        except (ValueError, KeyError, TypeError) as error:
            seen.mark = None
            self._note("torn", file, f"{type(error).__name__}, {len(data)} bytes: {data[:SHOWN_BYTES]!r}")
            return
        gone = len(seen.facts - facts)
        if gone or (facts != seen.facts and revision <= seen.revision):
            self._note("backwards", file, f"revision {seen.revision} to {revision}, {gone} facts gone")
        seen.revision, seen.facts = revision, facts

    def _note(self, kind: str, file: str, what: str) -> None:
        line = {"kind": kind, "file": file, "what": what}
        with (self._folder / FINDINGS).open("a", encoding="utf-8") as findings:
            findings.write(json.dumps(line) + "\n")


def main() -> None:
    """`python -m chaos.watcher FOLDER`: runs until SIGTERM, then writes the number of reads to a file."""
    folder = Path(sys.argv[1])
    plan = read_plan(folder)
    watcher = Watcher(folder, plan)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    while not stop.wait(plan.watch_pause_s):
        watcher.look()
    watcher.look()
    (folder / READS).write_text(str(watcher.reads), encoding="ascii")


if __name__ == "__main__":
    main()
