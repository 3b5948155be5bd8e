"""`memd store` on a real server, and the settings of the store."""

from __future__ import annotations

import pytest
from support import Cli, MakeSettings
from support.postgres_server import PostgresServer
from support.stores import ALICE

from memd import config
from memd.context import Bucket
from memd.errors import ConfigError
from memd.memory.store.json_store import open_store


def test_init_makes_the_tables_once(postgres: PostgresServer, cli: Cli) -> None:
    """A store that was not set up stops the start, and the message says how to."""
    postgres.sql("CREATE DATABASE young")
    url = postgres.url("young")
    before = cli("worker", MEMD_STORE__URL=url)
    assert (before.returncode, "memd store init" in before.stderr) == (78, True)
    made = cli("store", "init", MEMD_STORE__URL=url).stdout
    assert "made the tables" in made
    assert "pgvector" in made, "said plainly, with it and without"
    assert "nothing to do" in cli("store", "init", MEMD_STORE__URL=url).stdout
    shown = cli("show", ALICE.user_id, MEMD_STORE__URL=url)
    assert shown.returncode in (0, 66)
    assert postgres.sql("SELECT count(*) FROM memd.documents", "young") == [(0,)]


def test_roles_are_printed_without_passwords(postgres: PostgresServer, cli: Cli) -> None:
    """What is printed runs as it is; a password is told by its variable alone."""
    printed = cli("store", "roles", STORE_PASSWORD_MEMD_WRITER="a-password-of-some-length")  # noqa: S106
    assert (printed.returncode, "a-password" in printed.stdout + printed.stderr) == (0, False)
    assert "STORE_PASSWORD_MEMD_READER" in printed.stderr
    postgres.sql(printed.stdout, "memd")
    short = cli("store", "roles", STORE_PASSWORD_MEMD_WRITER="short")  # noqa: S106
    assert short.returncode == 78


def test_the_address_is_masked(cli: Cli, configured: MakeSettings) -> None:
    """Wherever settings are shown; children of memd still get it."""
    url = "postgresql://me:correct-horse@db.internal/memd"
    assert "correct-horse" not in cli("config", MEMD_STORE__URL=url).stdout
    settings = configured(store__url=url)
    assert "correct-horse" not in repr(settings)
    assert "correct-horse" in config.as_environment(settings)["MEMD_STORE__URL"]


@pytest.mark.parametrize("changes", [{"options": {"pool": 1}}, {"options": {"connections": 0}}, {"url": None}])
def test_settings_that_fit_no_store_stop_the_start(configured: MakeSettings, changes: dict[str, object]) -> None:
    """A sentence that names the setting."""
    with pytest.raises(ConfigError, match=r"setting store\."):
        open_store(configured(**{f"store__{name}": value for name, value in changes.items()}))


def test_a_server_that_is_away_is_told_without_its_address(cli: Cli) -> None:
    """By code; nothing is repeated of what the library says."""
    done = cli("show", Bucket("ana").user_id, MEMD_STORE__URL="postgresql://me:correct-horse@127.0.0.1:1/memd")
    assert done.returncode == 74
    assert "E_STORE_CONNECTION" in done.stderr
    assert "correct-horse" not in done.stderr + done.stdout
    assert "127.0.0.1:1" not in done.stderr
