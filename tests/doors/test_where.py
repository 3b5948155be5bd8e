"""Where memd keeps and finds things: `memd where`, the server's port, and the folder that a command looked in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from support import Cli, ended, environment, execute, free_port, make_settings, part

from memd.client import Memd
from memd.config import Settings
from memd.errors import ConfigError
from memd.inbox import library
from memd.inbox.connection import connect, inbox_url, password_file, socket_path
from memd.ops import server
from memd.ops.where import masked_url, push_line

EMPTY = [
    ("show", "nobody"),
    ("inject", "nobody"),
    ("search", "nobody", "Porto"),
    ("why", "nobody", "fact_0badcafe"),
    ("facts", "list", "nobody"),
    ("facts", "archived", "nobody"),
    ("facts", "withheld", "nobody"),
    ("facts", "rm", "nobody", "fact_0badcafe"),
    ("export", "nobody"),
    ("audit", "--all"),
]


@pytest.mark.parametrize("words", EMPTY, ids=lambda words: " ".join(words[:2]))
def test_what_finds_nothing_names_the_folder(cli: Cli, settings: Settings, words: tuple[str, ...]) -> None:
    """By its absolute path, on stderr."""
    assert f" in {settings.data_dir.absolute()}\n" in cli(*words).stderr


@pytest.fixture
def with_port(data_dir: Path) -> Iterator[Settings]:
    """A running embedded server with a port, and the inbox installed."""
    settings = make_settings(data_dir, None, server__port=free_port())
    process = server.start(settings)
    with connect(settings) as client:
        library.install(client, settings)
    yield settings
    server.stop(process)


def where(settings: Settings, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "memd"), "where", *words]
    return subprocess.run(command, env=environment(settings) | env, capture_output=True, text=True, check=False)


def test_where_names_every_place(data_dir: Path) -> None:
    """As a table, as JSON, and each path alone; a server that does not run is said on stderr."""
    settings = make_settings(data_dir, None)
    found = json.loads(where(settings, "--json").stdout)
    assert found["data_dir"] == str(data_dir)
    assert found["socket"] == str(socket_path(settings))
    assert found["port"] is found["password_file"] is found["url"] is None
    table = where(settings).stdout
    assert all(found[name] in table for name in ("config", "data_dir", "memories", "socket", "server_log"))
    assert where(settings, "--data").stdout == f"{data_dir}\n"
    alone = where(settings, "--socket")
    assert (alone.stdout, alone.returncode) == (f"{socket_path(settings)}\n", 0)
    assert "memd up" in alone.stderr
    assert where(settings, "--password-file").returncode == ConfigError.exit_code


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:hunter2@h:6379/0", "redis://**********@h:6379/0"),
        ("redis://u:p@ss/hunter2@h", "redis://**********@h"),
        ("rediss://h:1?password=hunter2", "rediss://h:1?**********"),
        ("unix://u:hunter2@/run/redis.sock", "unix://**********@/run/redis.sock"),
    ],
)
def test_where_masks_an_address(data_dir: Path, cli: Cli, url: str, shown: str) -> None:
    """No password is printed, in no form; a server of the user's own has a socket only if its address is one."""
    settings = make_settings(data_dir, url)
    assert masked_url(settings) == shown
    assert "hunter2" not in push_line(settings)
    env = environment(settings)
    alone = cli("where", "--socket", **env)
    if url.startswith("unix"):
        assert alone.stdout == "/run/redis.sock\n"
    else:
        assert alone.returncode == ConfigError.exit_code
        assert shown in alone.stderr
    assert "hunter2" not in alone.stderr + cli("where", **env).stdout + cli("where", "--json", **env).stdout


def test_the_socket_of_a_long_path_is_found_with_any_tmpdir(data_dir: Path, tmp_path: Path) -> None:
    """Longer than the 107 bytes of a Unix address: the server is reached by the path that `memd where` prints."""
    folder = data_dir / ("long ä" * 20)
    folder.mkdir()
    settings = make_settings(folder, None)
    process = server.start(settings)
    try:
        path = where(settings, "--socket", TMPDIR=str(tmp_path)).stdout.rstrip("\n")
        assert len(os.fsencode(path)) <= 107
        assert server.ping(Path(path)) == b"+PONG\r\n"
        assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    finally:
        server.stop(process)


def test_the_port_is_for_pushing_only(with_port: Settings) -> None:
    """Without a password nobody enters, by port or socket; with the producers' one a client can only push."""
    port = with_port.server.port
    assert port
    secret = password_file(with_port, "memd-in")
    assert secret.stat().st_mode & 0o777 == 0o600
    with redis.Redis(port=port) as nobody, pytest.raises(redis.AuthenticationError):
        nobody.ping()
    with redis.Redis(unix_socket_path=str(socket_path(with_port))) as nobody, pytest.raises(redis.AuthenticationError):
        nobody.ping()
    with redis.Redis(port=port, username="memd-in", password=secret.read_text().strip()) as producer:
        assert execute(producer, "RPUSH", "memd:in", "{}") == 1
        for command in (("LRANGE", "memd:in", 0, -1), ("RPUSH", "other", "x"), ("FLUSHALL",), ("CONFIG", "GET", "*")):
            with pytest.raises(redis.exceptions.NoPermissionError):
                execute(producer, *command)


def test_memd_works_beside_its_port(with_port: Settings) -> None:
    """Scheduler, worker and client have their own account; no password is printed, or is in the configuration."""
    with part("scheduler", with_port), part("worker", with_port), Memd(with_port) as app:
        app.push([{"role": "user", "content": "I live in Porto."}], thread_id="t", user_id="ana")
        assert ended(app) == {"stored": 1}
    shown = where(with_port).stdout + where(with_port, "--json").stdout + push_line(with_port)
    shown += (with_port.data_dir / "server" / "server.conf").read_text()
    shown += "".join(log.read_text() for log in with_port.data_dir.rglob("*.log"))
    for account in ("memd-in", "memd-daemon"):
        assert password_file(with_port, account).read_text().strip() not in shown


def test_a_port_is_switched_on_and_off(data_dir: Path) -> None:
    """The passwords outlive a restart, and are gone with the port; then the socket asks for none again."""
    found = []
    for port in (free_port(), free_port(), None):
        settings = make_settings(data_dir, None, server__port=port)
        server.stop(server.start(settings))
        file = password_file(settings, "memd-in")
        found.append(file.read_text() if file.exists() else None)
    assert found[0] == found[1]
    assert found[2] is None
    assert "@" not in inbox_url(make_settings(data_dir, None))


def test_the_password_file_is_found_without_the_setting(with_port: Settings) -> None:
    """`memd up` had server.port in its environment; another shell has not, and says so."""
    other = make_settings(with_port.data_dir, None)
    found = where(other, "--password-file")
    assert found.stdout == f"{password_file(with_port, 'memd-in')}\n"
    assert "server.port is not set here" in found.stderr
    assert found.stdout.strip() in where(other).stdout
    json_found = json.loads(where(other, "--json").stdout)
    assert (json_found["port"], json_found["password_file"]) == (None, found.stdout.strip())


def test_a_line_break_in_a_path_is_escaped(tmp_path: Path) -> None:
    """In the table; `--data` is for scripts and prints the path as it is."""
    folder = tmp_path / "a\nb"
    folder.mkdir()
    settings = make_settings(folder, None)
    assert f"{tmp_path}/a\\nb (environment)" in where(settings).stdout
    assert where(settings, "--data").stdout == f"{folder}\n"


def test_an_empty_flag_is_the_default(settings: Settings, tmp_path: Path) -> None:
    """`--data-dir ''` is not the current folder."""
    command = [str(Path(sys.executable).parent / "memd"), "--data-dir", "", "where", "--data"]
    env = environment(settings) | {"XDG_DATA_HOME": "/data"}
    assert subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True).stdout == b"/data/memd\n"
