"""Writers to the store in PostgreSQL who note what was acknowledged, and the comparison with what is stored."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from memd.context import Bucket
from memd.errors import Conflict, StoreUnavailable
from memd.memory.said.changes import append
from memd.memory.said.turns import Turn
from memd.memory.store.postgres import PostgresStore
from support import STORE_SETTINGS, wait_for
from support.stores import ALICE, contents, options


def store_at(url: str, **more: Any) -> PostgresStore:
    """A store at this address."""
    return PostgresStore(Path(), options(**{**STORE_SETTINGS, "url": url}, options=more))


def added(store: PostgresStore, name: str, bucket: Bucket = ALICE) -> int:
    """Add a fact, an identity and a turn of this name; returns how often the claim was asked for."""
    asked = []

    def still_ours() -> bool:
        asked.append(1)
        return True

    loaded = store.load(bucket, {"t": [name]})
    assert not loaded.known
    document = {
        **loaded.document,
        "revision": loaded.revision + 1,
        "facts": [*loaded.document["facts"], {"id": f"fact_{name}", "content": name}],
        "ledger": {"t": [name]},
    }
    store.commit(bucket, loaded, document, still_ours, {"t": [name]}, append([Turn(name, "t", "user", name)]))
    return len(asked)


def check(store: PostgresStore, names: set[str], bucket: Bucket = ALICE) -> None:
    """The document, its ledger and its said layer have exactly these, each once."""
    loaded = store.load(bucket)
    facts = contents(store, bucket)
    assert Counter(facts) == Counter(names)
    assert loaded.revision == len(names)
    assert sorted(store.read_ledger(bucket, loaded.document).get("t", [])) == sorted(names)
    assert sorted(turn.text for turn in store.read_said(bucket, loaded.document).turns) == sorted(names)


def _hammer(store: PostgresStore, stop: threading.Event, number: int, done: dict[Bucket, set[str]]) -> Counter[str]:
    """Add to three buckets until it is told to stop; notes what was acknowledged."""
    errors: Counter[str] = Counter()
    count = 0
    while not stop.is_set():
        name, bucket = f"w{number}n{count}", Bucket(f"user{(number + count) % 3}")
        try:
            loaded = store.load(bucket, {"t": [name]})
            if not loaded.known:
                added(store, name, bucket)
            done[bucket].add(name)
            count += 1
        except Conflict:
            errors["conflict"] += 1
        except StoreUnavailable as error:
            errors[str(error).partition(":")[0]] += 1
    return errors


def _more_than(done: dict[Bucket, set[str]], count: int) -> bool:
    return sum(map(len, done.values())) > count


@contextmanager
def hammering(store: PostgresStore) -> Iterator[dict[Bucket, set[str]]]:
    """Four writers until the block ends; yields what was acknowledged so far, by bucket."""
    done: dict[Bucket, set[str]] = {Bucket(f"user{number}"): set() for number in range(3)}
    stop = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(_hammer, store, stop, number, done) for number in range(4)]
        try:
            yield done
        finally:
            stop.set()
        for one in running:
            one.result()


def more_commits(done: dict[Bucket, set[str]]) -> None:
    """Wait for twenty more commits."""
    wait_for(partial(_more_than, done, sum(map(len, done.values())) + 20), "writers commit")


def hammered(store: PostgresStore, fault: Callable[[], object], rounds: int) -> None:
    """Four writers while the server has faults; afterwards all that was acknowledged is there, once and whole."""
    with hammering(store) as done:
        for _ in range(rounds):
            more_commits(done)
            fault()
        more_commits(done)
    for bucket, names in done.items():
        check(store, names, bucket)


def lost(store: PostgresStore, done: dict[Bucket, set[str]]) -> int:
    """How much of what was acknowledged is not stored. What is stored is whole, and each once."""
    count = 0
    for bucket, names in done.items():
        stored = set(contents(store, bucket))
        check(store, stored, bucket)
        count += len(names - stored)
    return count
