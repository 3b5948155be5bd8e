"""Restoring a backup: what was forgotten since does not come back, and what the inbox brings again is applied once.

1. The target is sealed, and the inbox is given to it: whoever works with another store stops.
2. The tombstones of backup, target and inbox are united.
3. The store of the backup is copied as these tombstones leave it, and compared.
4. The inbox gets the tombstones, loses what they name, and forgets how messages ended that the older store lacks.
5. The contexts and letters of the backup come back to the inbox, beside what is there.
6. The seal is taken off.

Every step may be repeated: a restore that was killed leaves the seal on, and the same command goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import redis

from memd.config import Settings, StoreSettings
from memd.context import DEFAULT_AGENT, Bucket, user_hash
from memd.disk.path_parts import encode
from memd.errors import ConfigError, OtherStore
from memd.inbox import contents, forgetting, library
from memd.inbox.connection import send
from memd.inbox.contents import KeptRecord
from memd.memory.store.backed_up import BackedUpStore, ForgottenSince
from memd.memory.store.copying import Moved, StoreCopy, owners_of
from memd.memory.store.json_store import JsonStore, open_store
from memd.memory.store.moving import MovableStore
from memd.memory.store.protocol import Store, Tombstone
from memd.memory.store.tombstone import TombstoneFiles
from memd.memory.store.uniting import united
from memd.ops.backup_folder import BackupFolder, Manifest
from memd.ops.switching import Steps
from memd.push.times import iso
from memd.tasks.task_copies import copy_tasks


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did. `contexts`: those with messages that are pending again. `moved`, `compared`: of the store.

    `forgotten`: users of whom something was forgotten since the backup, which did not come back.
    """

    manifest: Manifest
    contexts: int
    messages: int
    letters: int
    forgotten: int
    task_files: int = 0
    moved: Moved | None = None
    compared: Moved | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing was unreadable, and the store has what it should have."""
        return self.compared is None or not (self.compared.differing or self.compared.unreadable)


def restore(
    settings: Settings, client: redis.Redis, folder: Path, steps: Steps, *, replaces: bool, takes_inbox: bool
) -> Restored:
    """Restore store and inbox. `replaces`: also a store that holds memories, which go where the backup has none.

    `takes_inbox`: also an inbox of another store. Raises ConfigError, OtherStore, InboxUnavailable, StoreUnavailable.
    """
    kept = BackupFolder(folder)
    manifest = kept.manifest()
    target = _target(settings, kept, replaces=replaces)
    _check_inbox(client, target, takes_inbox=takes_inbox)
    _set_up(client, settings)
    shared = StoreSettings(shared=settings.store.shared)
    StoreCopy(BackedUpStore(kept.store, shared, {}, ""), target).prepare(into_any=True)
    library.give_to_store(client, target.make_id())
    backup = _backup(kept, shared, target, client)  # under the seal: nobody is forgotten past these tombstones
    copying = StoreCopy(backup, target)
    moved = copying.run(steps("memories"))
    compared = copying.compare(steps("comparing"))
    later = backup.later
    if compared.differing:  # somebody else writes to it, past the seal; it stays on
        return Restored(manifest, 0, 0, 0, later.users, moved=moved, compared=compared)
    tasks = copy_tasks(kept.store, settings.data_dir, _Remaining(backup, later))
    contents.unsettle(client, manifest.begun_ms)
    came = _restore_inbox(client, kept, backup.united, manifest, steps)
    _movable(target).moving.set_seal(None)
    return replace(came, forgotten=later.users, task_files=tasks, moved=moved, compared=compared)


def restore_inbox(settings: Settings, client: redis.Redis, folder: Path, steps: Steps) -> Restored:
    """Bring the contexts and letters of a backup back to the inbox of a store that has lost nothing.

    The ledgers of the store know which messages were stored since. Raises as `restore`.
    """
    kept = BackupFolder(folder)
    manifest = kept.manifest()
    store = open_store(settings)
    _set_up(client, settings)
    library.bind_store(client, store)
    known = ((owner, store.tombstones.of(owner)) for owner in store.tombstones.owners())
    return _restore_inbox(client, kept, {owner: one for owner, one in known if one}, manifest, steps)


def _target(settings: Settings, kept: BackupFolder, *, replaces: bool) -> Store:
    target = open_store(settings)
    moving = _movable(target).moving
    own = moving.seal()
    begun = own is not None and own.other == JsonStore(kept.store, StoreSettings()).read_id()
    if not (begun or replaces) and next(iter(moving.buckets()), None) is not None:
        raise ConfigError(
            "E_STORE_NOT_EMPTY: the store holds memories; restore into an empty one, or with --replace, which removes "
            "what the backup does not have"
        )
    return target


def _set_up(client: redis.Redis, settings: Settings) -> None:
    """Give an empty server the functions; one at work has its scheduler's."""
    if not library.installed(client):
        library.install(client, settings)


def _check_inbox(client: redis.Redis, target: Store, *, takes_inbox: bool) -> None:
    known = library.store_of(client)
    if known not in (None, target.read_id()) and not takes_inbox:
        raise OtherStore(
            "E_OTHER_STORE: the inbox belongs to another store; if that one is lost, or given up, --take-inbox gives "
            "the inbox to the restored one"
        )


def _backup(kept: BackupFolder, shared: StoreSettings, target: Store, client: redis.Redis) -> BackedUpStore:
    """The store of the backup, under the tombstones of all three."""
    before = TombstoneFiles(kept.store)
    merged: dict[str, Tombstone] = {}
    own = JsonStore(kept.store, StoreSettings())
    for owner in owners_of(own):
        if (tombstone := before.of(owner)) is not None:
            merged[owner] = replace(tombstone, emptied=frozenset())  # what its inbox brings back was not
    further = ((owner, target.tombstones.of(owner)) for owner in owners_of(target))
    for owner, other in (*further, *((one.owner, one) for one in forgetting.mirrors(client))):
        if other is not None:
            present = merged.get(owner) or Tombstone(owner, 0, "", frozenset())
            wishes = tuple(dict.fromkeys((*present.open, *other.open)))
            merged[owner] = united(replace(present, open=wishes), other)
    return BackedUpStore(kept.store, shared, merged, iso(datetime.now(UTC)))


def _restore_inbox(
    client: redis.Redis, kept: BackupFolder, known: Mapping[str, Tombstone], manifest: Manifest, steps: Steps
) -> Restored:
    for tombstone in known.values():
        if tombstone.generation:
            send(client, forgetting.tombstone(tombstone))
    for owner in known:
        forgetting.strike(client, owner)
    progress, total = steps("inbox"), manifest.contexts + manifest.letters
    contexts = messages = letters = 0
    for number, one in enumerate(kept.contents()):
        progress(number, total)
        if _is_forgotten(one, known, manifest.begun_ms):
            continue
        came = contents.restore(client, one)
        if one.letter:
            letters += came
        else:
            contexts, messages = contexts + bool(came), messages + came
    return Restored(manifest, contexts, messages, letters, 0)


def _is_forgotten(one: KeptRecord, known: Mapping[str, Tombstone], begun_ms: int) -> bool:
    """Whether a wish since the backup began is about a context or letter, and later than it.

    The server leaves out single messages that a tombstone names; it does not name those that nobody had any more.
    """
    owner, bucket = one.text(".owner"), one.text(".bucket")
    last_ms = one.text(".last") or one.text(".died")
    if b".raw" in one.fields:
        owner, bucket = _raw_place(one)
    tombstone = known.get(owner)
    wishes = tombstone.wished if tombstone else ()
    return any(
        wish.scope in ("", bucket) and wish.at_ms >= begun_ms and int(float(last_ms or 0)) <= wish.at_ms
        for wish in wishes
    )


def _raw_place(one: KeptRecord) -> tuple[str, str]:
    """The owner and the bucket of a raw push that was never taken in; none of one that names nobody."""
    try:
        push = orjson.loads(one.fields[b".raw"])
        user_id, agent_name = push["user_id"], push.get("agent_name") or DEFAULT_AGENT
        return user_hash(user_id), Bucket(user_id, agent_name).hash
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return "", ""


class _Remaining:
    """Which tasks come back: those of nobody who was forgotten since. A long id is known by the memories."""

    def __init__(self, backup: BackedUpStore, later: ForgottenSince) -> None:
        own = JsonStore.users(backup)
        self._ids = {encode(user_id): user_id for user_id in own}
        self._later = later

    def __call__(self, part: str, user_id: str | None, agent_name: str | None) -> bool:
        user = user_id or self._ids.get(part)
        return user is None or not self._later.takes(Bucket(user, agent_name or DEFAULT_AGENT))


def _movable(store: Store) -> MovableStore:
    if not isinstance(store, MovableStore):
        raise ConfigError("E_STORE_FIXED: the class of this store cannot be restored")
    return store
