"""Moving memd from one store to another one while it runs: which stores, and the moment of the change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis
from msgspec import structs

from memd.config import Settings
from memd.config.settings import Secret, StoreSettings
from memd.errors import ConfigError, OtherStore
from memd.inbox import library
from memd.memory.store.copying import Moved, Progress, StoreCopy
from memd.memory.store.json_store import open_store
from memd.memory.store.moving import MovableStore, Seal
from memd.memory.store.protocol import Store

POSTGRES = "memd.memory.store.postgres.PostgresStore"
SCHEMES = ("postgresql://", "postgres://")

Steps = Callable[[str], Progress]
"""Called with the name of a step when it begins; returns what shows its progress."""


def store_at(name: str | None, settings: Settings) -> Store:
    """The store that a person names: an address of PostgreSQL, or a data folder; None: the one in the settings.

    Raises ConfigError.
    """
    if name is None:
        return open_store(settings)
    shared = settings.store.shared
    if name.startswith(SCHEMES):
        options = settings.store.options if settings.store.class_ == POSTGRES else {}
        store = structs.replace(StoreSettings(class_=POSTGRES, options=options, shared=shared), url=Secret(name))
        return open_store(structs.replace(settings, store=store))
    if "://" in name:
        raise ConfigError("a store is a data folder or an address postgresql://user@host/name")
    return open_store(structs.replace(settings, data_dir=Path(name), store=StoreSettings(shared=shared)))


@dataclass
class Switched:
    """How a copy has ended: its passes, the comparison if there was one, and whether memd works with the target now."""

    passes: list[Moved]
    compared: Moved | None = None
    switched: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing was unreadable, and nothing was found to differ."""
        last = self.compared or self.passes[-1] if self.passes else self.compared
        return last is None or not (last.differing or last.unreadable)


def copy(copying: StoreCopy, steps: Steps, *, verify: bool) -> Switched:
    """One pass, and with `verify` a comparison. Raises ConfigError, StoreUnavailable."""
    copying.prepare()
    done = Switched([copying.run(steps("copying"))])
    if verify:
        done.compared = copying.compare(steps("comparing"))
    return done


def switch(copying: StoreCopy, client: redis.Redis, steps: Steps) -> Switched:
    """Copy while memd runs, then seal the source, copy the rest, compare, and give the inbox to the target.

    Where the two differ, or anything fails, the source takes writes again and nothing has changed. A kill leaves it
    sealed: the same command goes on, and `unseal` undoes it. Raises OtherStore, InboxUnavailable, StoreUnavailable,
    ConfigError.
    """
    (source_id, target_id), source, target = copying.ids, copying.source.moving, copying.target.moving
    known = library.store_of(client)
    if known == target_id:  # done; at most the last step is missing
        if target.seal() == Seal("target", source_id):
            target.set_seal(None)
        return Switched([], switched=True)
    library.require_store(client, copying.source)
    copying.prepare()
    done = Switched([copying.run(steps("copying"))])
    source.set_seal(Seal("source", target_id))
    try:
        done.passes.append(copying.run(steps("copying the rest")))
        done.compared = copying.compare(steps("comparing"))
    except BaseException:
        source.set_seal(None)
        raise
    if not done.is_whole:
        source.set_seal(None)
        return done
    # Where its answer is lost, nobody knows whose the inbox is: the source stays sealed, and the next call finds out.
    library.give_to_store(client, target_id)
    target.set_seal(None)
    done.switched = True
    return done


def unseal(store: Store, client: redis.Redis) -> bool:
    """Let a store take writes again whose copy was given up; whether it was sealed.

    Raises ConfigError for the target of a copy, OtherStore when the inbox is another store's by now.
    """
    if not isinstance(store, MovableStore) or (seal := store.moving.seal()) is None:
        return False
    if seal.role == "target":
        raise ConfigError(
            "E_STORE_UNFINISHED: this store is the target of an unfinished copy or restore; finish a copy with "
            "--switch, a restore with the same command, or empty the store"
        )
    if library.store_of(client) not in (None, store.read_id()):
        raise OtherStore(
            "E_OTHER_STORE: the inbox has been given to the other store, which may hold more by now; to go back, copy "
            "from that store to this one with --switch"
        )
    store.moving.set_seal(None)
    return True
