"""With `STORE=postgres`: one server for each test process, whose database is empty before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memd.memory.store.postgres.connecting import Postgres
from support import STORE_SETTINGS, postgres_server
from support.databases import Missing
from support.postgres_server import CLASS, PostgresServer


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of files."""
    files = [item for item in items if item.get_closest_marker("files")]
    config.hook.pytest_deselected(items=files)
    items[:] = [item for item in items if not item.get_closest_marker("files")]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server. Without one the run ends and says what is missing."""
    try:
        with postgres_server.running() as server:
            url = server.make("memd")
            STORE_SETTINGS.update({"class": CLASS, "url": url})
            yield server
    except Missing as error:
        pytest.exit(f"make test-store cannot run here: {error}", returncode=3)


@pytest.fixture(autouse=True)
def emptied(postgres: PostgresServer) -> Iterator[None]:
    """An empty database, and no connection of another test."""
    yield
    Postgres.close_all()
    postgres_server.empty(postgres.url("memd"))
