"""Backups of a database restored to files, and of files restored to a database: a backup says nothing of its store."""

from __future__ import annotations

from pathlib import Path

import redis
from support import MakeSettings, make_settings
from support.moved_content import fill, quietly, restorable
from support.postgres_server import CLASS, PostgresServer, empty

from memd.inbox import library
from memd.inbox.connection import inbox_url
from memd.memory.store.json_store import open_store
from memd.memory.store.postgres.roles import statements
from memd.ops import backing_up, restoring


def test_from_a_database_to_files_and_back(
    configured: MakeSettings, client: redis.Redis, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Everything is the same in all three; the role of the workers may do all of it."""
    postgres.sql("\n".join(statements({})), "memd")
    rows = configured(store__class=CLASS, store__url=postgres.url("memd").replace("postgres@", "memd_writer@"))
    json_store = {"store__class": "memd.memory.store.JsonStore", "store__url": None}
    (tmp_path / "files").mkdir()
    files = make_settings(tmp_path / "files", inbox_url(rows), **json_store)
    fill(open_store(rows))
    before = restorable(open_store(rows))
    library.bind_store(client, open_store(rows))
    backing_up.back_up(rows, client, tmp_path / "one", lambda _: quietly)
    restoring.restore(files, client, tmp_path / "one", lambda _: quietly, replaces=False, takes_inbox=True)
    assert restorable(open_store(files)) == before
    backing_up.back_up(files, client, tmp_path / "two", lambda _: quietly)
    empty(postgres.url("memd"))
    restoring.restore(rows, client, tmp_path / "two", lambda _: quietly, replaces=False, takes_inbox=True)
    assert restorable(open_store(rows)) == before
