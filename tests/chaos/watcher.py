"""The watcher, as a process: reads all documents all the time and records states that no reader must see.

Torn: a file that is not a document, or a document that has disappeared. Backwards: a revision that does not grow, or
a fact that has disappeared (no update of a run retires a fact).
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from chaos import load
from chaos.plan import DATA, Plan, read_plan
from memd.context import Bucket
from memd.memory.store import paths

FINDINGS = "findings.jsonl"
READS = "reads"
SHOWN_BYTES = 80
"""Bytes of a torn document that the report shows."""


@dataclass
class Seen:
    """The last read version of a document."""

    mark: tuple[int, int, int] | None = None
    revision: int = 0
    facts: set[str] = field(default_factory=set)


class Watcher:
    """Reads every document of the plan that has changed since its last read."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._seen = {self._file(bucket): Seen() for bucket in load.buckets(plan)}
        self.reads = 0

    def look(self) -> None:
        """Read the changed documents."""
        for file, seen in self._seen.items():
            try:
                found = file.stat()
                mark = (found.st_ino, found.st_mtime_ns, found.st_size)
                if mark != seen.mark:
                    seen.mark = mark
                    self._read(file, seen)
            except FileNotFoundError:
                if seen.revision:
                    self._note("torn", file, "it is gone")
                    seen.revision = 0

    def _read(self, file: Path, seen: Seen) -> None:
        data = file.read_bytes()
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

    def _note(self, kind: str, file: Path, what: str) -> None:
        line = {"kind": kind, "file": str(file.relative_to(self._folder)), "what": what}
        with (self._folder / FINDINGS).open("a", encoding="utf-8") as findings:
            findings.write(json.dumps(line) + "\n")

    def _file(self, bucket: Bucket) -> Path:
        return paths.folder(self._folder / DATA, bucket, shared=False) / paths.FILE


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
