"""A backup while memd runs: the inbox first, then users, projects and tasks, and tombstones around all of them.

The order makes it whole without stopping anything. A message that is stored while the backup runs is in the backup's
inbox, perhaps in its store as well, and the ledger there says so: it is lost never, applied twice never. A project is
copied after the users whose words went into it.

Who is forgotten meanwhile is copied again until nobody's tombstone has grown: whatever the tombstones of a backup say
is true of its documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import redis

from memd import __version__
from memd.config import Settings, StoreSettings
from memd.errors import ConfigError, StoreUnavailable
from memd.inbox import contents, library, verbs
from memd.inbox.connection import send
from memd.inbox.contents import KeptRecord
from memd.inbox.raw_door import RawDoor
from memd.memory.store.copying import Moved, StoreCopy
from memd.memory.store.json_store import JsonStore, open_store
from memd.ops.backup_folder import VERSION, BackupFolder, Manifest
from memd.ops.switching import Steps
from memd.push.times import iso
from memd.tasks.task_copies import copy_tasks

TAKE_IN_S = 60.0
"""Seconds for taking raw pushes in, which no backup has."""

ROUNDS = 20
"""Passes over users who are forgotten while the pass before runs."""

RESTLESS = "E_BACKUP_RESTLESS: more users were forgotten than could be copied again; run the same command once more"


def back_up(settings: Settings, client: redis.Redis, folder: Path, steps: Steps) -> tuple[Manifest, Moved]:
    """Make a backup in a folder, or bring an earlier one of the same store up to date.

    Returns its manifest, and what was copied. Raises OtherStore, ConfigError, AlreadyRunning, InboxUnavailable,
    StoreUnavailable; then the folder has no whole backup, and the same call goes on.
    """
    store = open_store(settings)
    library.require_store(client, store)
    kept = BackupFolder(folder)
    with kept.open():
        copying = StoreCopy(store, JsonStore(kept.store, StoreSettings(shared=settings.store.shared)))
        if (seal := copying.target.moving.seal()) is not None and seal.other != copying.ids[0]:
            raise ConfigError("E_BACKUP_OTHER: this folder has a backup of another store; name a new one")
        copying.prepare()
        kept.begin()
        begun_ms = send(client, verbs.now_ms())
        progress = steps("inbox")
        inbox = kept.write_inbox(_contents(settings, client), progress)
        done = copying.run(steps("memories"))
        grown, rounds = done.grown, 0
        tasks = copy_tasks(settings.data_dir, kept.store, _every)
        while grown:
            if rounds == ROUNDS:
                raise StoreUnavailable(RESTLESS)
            grown, rounds = copying.run(_quietly, grown).grown, rounds + 1
            tasks = copy_tasks(settings.data_dir, kept.store, _every)
        manifest = Manifest(
            VERSION,
            __version__,
            begun_ms,
            iso(datetime.now(UTC)),
            *inbox,
            memories=done.seen["memory"],
            projects=done.seen["project"],
            sessions=done.seen["session"],
            tombstones=len(copying.target.tombstones.owners()),
            task_files=tasks,
            unreadable=len(done.unreadable),
        )
        kept.end(manifest)
    return manifest, done


def _contents(settings: Settings, client: redis.Redis) -> Iterator[KeptRecord]:
    """What the inbox holds: raw pushes are taken in first. Nothing where memd never ran on this server."""
    if not library.installed(client):
        return iter(())
    RawDoor(settings, client).take_in_present(TAKE_IN_S)
    return contents.read(client)


def _every(_part: str, _user: str | None, _agent: str | None) -> bool:
    return True


def _quietly(_done: int, _total: int) -> None:
    """No progress: these are few."""
