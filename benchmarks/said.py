"""What it costs to keep what was said: CPU and fsyncs of a commit, with an empty and with a full layer.

`python -m benchmarks.said` prints the table. A context here has two new messages; the memory has 100 facts.
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

from msgspec import convert

from benchmarks.recall import facts, timed
from memd.config import SaidSettings, StoreSettings
from memd.context import Bucket, Message, identify
from memd.memory.document import said_file_of
from memd.memory.said.changes import append
from memd.memory.said.excerpts import judged, prepare
from memd.memory.said.taking import took_in, turns_of
from memd.memory.store.json_store import JsonStore
from memd.push.times import iso

BUCKET = Bucket("ana")
TIMES = 400
FULL = 4_000
LIMITS = SaidSettings(max_turns=FULL + 3 * TIMES, max_bytes=16_000_000)
NOW = datetime.now(UTC)
USER = "We moved to Porto in March, and I now work four days a week for the city's water company."
REPLY = "That sounds like a good change. Do you still cycle to work, or do you take the tram these days?"


def messages(number: int) -> tuple[Message, ...]:
    """A user's message and its reply."""
    both = [Message("user", f"{USER} ({number})", created_at=iso(NOW)), Message("assistant", f"{REPLY} ({number})")]
    return identify("t", both)


def commit(store: JsonStore, number: int, *, keep: bool) -> None:
    """One context's commit, with or without its turns."""
    loaded = store.load(BUCKET)
    said = None
    if keep:
        turns = [judged(turn, ()) for turn in turns_of(messages(number), "t")]
        said = took_in(
            said_file_of(loaded.document), lambda: store.read_said(BUCKET, loaded.document), turns, LIMITS, NOW
        )
    store.commit(BUCKET, loaded, {**loaded.document, "revision": loaded.revision + 1}, lambda: True, said=said)


def measure(folder: Path, turns: int, *, keep: bool) -> tuple[float, float]:
    """CPU milliseconds and fsyncs of a commit, with a layer of this many turns."""
    store = JsonStore(folder, convert({}, StoreSettings))
    loaded = store.load(BUCKET)
    held = turns_of([one for number in range(turns // 2) for one in messages(-number)], "t")
    document = {**loaded.document, "revision": 1, "facts": facts(100)}
    store.commit(BUCKET, loaded, document, lambda: True, said=append(held))
    with mock.patch("os.fsync", wraps=os.fsync) as fsync:
        cpu = timed(lambda number: commit(store, number, keep=keep), TIMES)["cpu_ms"]
        return cpu, fsync.call_count / TIMES


def main() -> None:
    """Print the table."""
    prepare()
    judged(turns_of(messages(0), "t")[0], ())
    for turns in (0, FULL):
        for keep in (False, True):
            found = []
            for _ in range(3):
                with tempfile.TemporaryDirectory() as folder:
                    found.append(measure(Path(folder), turns, keep=keep))
            cpu, fsyncs = min(found)
            print(
                f"{turns:>5} turns, {'kept' if keep else 'not kept':<8}  {cpu:.3f} ms CPU, {fsyncs:.1f} fsyncs a commit"
            )


if __name__ == "__main__":
    main()
