"""A store with something of everything that it can hold, and its content as one value, to compare stores by."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from memd.context import Bucket, Key, of_project, user_hash
from memd.memory.said.changes import append
from memd.memory.said.turns import Turn
from memd.memory.store.copying import KINDS, Moved, StoreCopy, owners_of, tombstone_of
from memd.memory.store.moving import MovableStore
from memd.memory.store.protocol import Cut, Store, Tombstone, Wish
from support.stores import ALICE, ours, save

LONG = Bucket("a user with a long id " * 10, "agent of a long name " * 9)
PROJECT = of_project("apollo")
THREAD = "a thread\nwith a break" + "x" * 150
KEY = Key(THREAD, ALICE.user_id)
FORGOTTEN = "mallory"


def learned(store: Store, bucket: Bucket, name: str, thread: str = "t") -> None:
    """Add a fact, an identity and a turn of this name, as a conversation does."""
    loaded = store.load(bucket, {thread: [name]})
    known = loaded.document["ledger"]
    document = {
        **loaded.document,
        "revision": loaded.revision + 1,
        "facts": [*loaded.document["facts"], {"id": f"fact_{name}", "content": f"{name} 火 \u2028"}],
        "ledger": {**known, thread: [*known.get(thread, ()), name]},
    }
    turns = append([Turn(name, thread, "user", f"I say {name}")])
    store.commit(bucket, loaded, document, ours, {thread: [name]}, turns)


def fill(store: Store) -> None:
    """Memories of users and agents, a project, a session with all its parts, notes, and a forgetting under way."""
    save(store, "by hand", ALICE)  # the version before has no ledger, the latest has one
    learned(store, ALICE, "n1")
    for number in range(3):
        learned(store, LONG, f"n{number}", thread=f"t{number % 2}")
    learned(store, Bucket("bob", "helper"), "n1")
    save(store, "decided", PROJECT)
    store.reading_notes.note(ALICE, ["fact_n1", "fact_00000000"], time.time())
    loaded = store.sessions.load(KEY)
    state: dict[str, Any] = {"sessionId": THREAD, "components": {"memory": {"messages": []}}}
    loaded = store.sessions.save(KEY, loaded, state, [b'{"role": "USER", "id": "1"}'])
    loaded = store.sessions.save(KEY, loaded, {**state, "more": 2.5}, [b'{"role": "USER", "id": "2"}'])
    for number in range(3):
        store.sessions.put_checkpoint(KEY, loaded, f"c{number}", {"number": number})
    store.sessions.archive(KEY, ["c0"])
    learned(store, Bucket(FORGOTTEN), "secret")
    wish = Wish(FORGOTTEN, None, Cut(5, 6))
    store.tombstones.begin(wish, ["nsecret"])
    store.tombstones.note(wish, "emptied")


def content(store: Store) -> dict[Any, Any]:
    """All that a store holds, in the bytes of files."""
    assert isinstance(store, MovableStore)
    moving, found = store.moving, dict[Any, Any]()
    for bucket in moving.buckets():
        found[bucket] = (memory := moving.memory(bucket)) and memory[:-1]
        notes = store.reading_notes.read(bucket, 0).by_fact.items()
        found[bucket, "notes"] = {name: (access.count, int(access.last)) for name, access in notes}
        for thread in moving.threads(bucket):
            key = Key(thread, bucket.user_id, bucket.agent_name)
            found[key] = moving.session(key)
    return {**found, **{owner: tombstone_of(store, owner) for owner in owners_of(store)}}


def restorable(store: Store) -> dict[Any, Any]:
    """The same as a restore brings it back: the inbox is looked at once more for a wish; notes have whole seconds."""
    found: dict[Any, Any] = {}
    for key, one in content(store).items():
        if isinstance(one, Tombstone):
            found[key] = replace(one, emptied=frozenset())
        elif isinstance(key, tuple) and key[-1] == "notes":
            found[key] = {name: count for name, (count, _) in one.items()}
        else:
            found[key] = one
    return found


def files_of(data_dir: Path) -> dict[str, bytes]:
    """The files of users and projects by their path, with the times of those that leave by their age."""
    found = {}
    for top in ("users", "projects"):
        for file in (data_dir / top).rglob("*"):
            if file.is_file():
                found[str(file.relative_to(data_dir))] = file.read_bytes()
    return found


def copied(source: Store, target: Store) -> Moved:
    """One pass, and a comparison that finds no difference; returns what the pass did."""
    copying = StoreCopy(source, target)
    copying.prepare()
    done = copying.run(quietly)
    compared = copying.compare(quietly)
    assert (compared.differing, compared.unreadable) == ([], [])
    return done


def quietly(_done: int, _total: int) -> None:
    """No progress."""


EVERYTHING = {"memory": 4, "project": 1, "session": 1, "tombstone": 1}
"""What `fill` makes, by kind. One user's memory is there, as the forgetting is not done."""

OWNER = user_hash(FORGOTTEN)
assert set(EVERYTHING) == set(KINDS)
