"""The database of a run: a server that is started, killed and started again; only with `STORE=postgres`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from support import STORE_SETTINGS


class Missing(Exception):
    """PostgreSQL cannot be started here. The message says what is missing, and how to get it."""


class Database:
    """One server with one database, whose address is in the settings of every process of the run."""

    def __init__(self) -> None:
        """Start it. Raises Missing."""
        from support.postgres_server import CLASS, PostgresServer

        self._folder = Path(tempfile.mkdtemp(prefix="memd-pg-"))
        try:
            self._server = PostgresServer(self._folder)
            self._server.start()
        except Missing:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self.url = self._server.make("memd")
        STORE_SETTINGS.update({"class": CLASS, "url": self.url})

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The server's first process."""
        return self._server.process

    def start(self) -> subprocess.Popen[bytes]:
        """Start it again."""
        self._server.start()
        assert self._server.process is not None
        return self._server.process

    def kill(self) -> None:
        """End all its processes at once."""
        self._server.kill()

    def stop(self) -> None:
        """End it, and remove its folder."""
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
