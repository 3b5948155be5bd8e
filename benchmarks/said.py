"""What it costs to keep what was said: CPU and fsyncs of a commit, with an empty and with a full layer.

With wishes and echoes looked for, excerpts chosen and the file written, as a drain does it.

`python -m benchmarks.said` prints the table. A context here has two new messages; the memory has 100 facts.
"""

from __future__ import annotations

import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from unittest import mock

from msgspec import convert

from benchmarks.recall import facts
from memd.config import SaidSettings, StoreSettings
from memd.context import Bucket, Message, identify
from memd.memory.document import facts_of, said_file_of
from memd.memory.facts import content_of
from memd.memory.said.changes import append
from memd.memory.said.echo import without_echo
from memd.memory.said.excerpts import judged
from memd.memory.said.may_keep import may_keep
from memd.memory.said.taking import took_in, turns_of
from memd.memory.store.json_store import JsonStore
from memd.push import patterns
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
    loaded, context = store.load(BUCKET), messages(number)
    said = None
    if keep:
        contents = [content_of(fact) for fact in facts_of(loaded.document)]
        turns = [judged(turn) for turn in turns_of(may_keep(context).kept, "t")]
        heard = [without_echo(turn, contents) if turn.role == "user" else turn for turn in turns]
        turns = [turn for turn in heard if turn is not None]
        said = took_in(
            said_file_of(loaded.document), lambda: store.read_said(BUCKET, loaded.document), turns, LIMITS, NOW
        )
    store.commit(BUCKET, loaded, {**loaded.document, "revision": loaded.revision + 1}, lambda: True, said=said)


def store_of(folder: Path, turns: int) -> JsonStore:
    """A memory with a layer of this many turns."""
    store = JsonStore(folder, convert({}, StoreSettings))
    held = turns_of([one for number in range(turns // 2) for one in messages(-number)], "t")
    document = {**store.load(BUCKET).document, "revision": 1, "facts": facts(100)}
    store.commit(BUCKET, store.load(BUCKET), document, lambda: True, said=append(held))
    return store


def measure(turns: int) -> dict[bool, tuple[float, float]]:
    """CPU milliseconds (the median) and fsyncs of a commit, with its turns kept (True) and not.

    Both take turns, commit by commit, so that other load on the machine changes both alike.
    """
    taken: dict[bool, list[float]] = {True: [], False: []}
    fsyncs = {True: 0, False: 0}
    with tempfile.TemporaryDirectory() as name, mock.patch("os.fsync", wraps=os.fsync) as fsync:
        stores = {keep: store_of(Path(name) / str(keep), turns) for keep in taken}
        for number in range(TIMES):
            for keep, store in stores.items():
                calls, before = fsync.call_count, time.thread_time()
                commit(store, number, keep=keep)
                taken[keep].append(1000 * (time.thread_time() - before))
                fsyncs[keep] += fsync.call_count - calls
    return {keep: (median(values), fsyncs[keep] / TIMES) for keep, values in taken.items()}


def main() -> None:
    """Print the table."""
    patterns.prepare()
    may_keep(messages(0))
    for turns in (0, FULL):
        found = measure(turns)
        for keep, (cpu, fsyncs) in found.items():
            print(
                f"{turns:>5} turns, {'kept' if keep else 'not kept':<8}  {cpu:.3f} ms CPU, {fsyncs:.1f} fsyncs a commit"
            )
        print(f"{turns:>5} turns, the layer    +{found[True][0] - found[False][0]:.3f} ms CPU a context")


if __name__ == "__main__":
    main()
