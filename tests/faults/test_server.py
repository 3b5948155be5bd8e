"""The embedded server: private, durable, and on a socket that always fits."""

from __future__ import annotations

import signal
import stat
import subprocess
from pathlib import Path

import pytest
import redis
from msgspec import structs
from support import execute, make_settings, wait_for

from memd.errors import AlreadyRunning, ConfigError, InboxUnavailable
from memd.inbox.connection import MAX_SOCKET_BYTES, connect, socket_path
from memd.inbox.server_check import examine
from memd.ops import locks, server

pytestmark = pytest.mark.timing


def test_the_embedded_server_is_private_and_durable(data_dir: Path) -> None:
    """Append-only file on, no eviction, folders 0700, and nothing pushed is lost by kill -9."""
    settings = make_settings(data_dir, None)
    process = server.start(settings)
    try:
        with connect(settings) as client:
            found = examine(client)
            assert found.problems == ()
            assert found.durability == "append-only file"
            client.rpush("memd:in", *[b"x"] * 1000)
            execute(client, "WAITAOF", 1, 0, 10_000)  # a slow disk may hold writes back for two seconds
        assert stat.S_IMODE((data_dir / "server").stat().st_mode) == 0o700
        process.send_signal(signal.SIGKILL)
        process.wait()
        process = server.start(settings)
        with connect(settings) as client:
            assert client.llen("memd:in") == 1000
    finally:
        server.stop(process)


@pytest.mark.parametrize("own", [None, "glibc.malloc.tcache_count=9"])
def test_the_embedded_server_keeps_freed_memory_at_hand(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    """More of it than glibc would, or a push grows dearer with the pending keys; what the environment says counts."""
    if own:
        monkeypatch.setenv("GLIBC_TUNABLES", own)
    else:
        monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    process = server.start(make_settings(data_dir, None))
    try:
        environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    finally:
        server.stop(process)
    expected = own or "glibc.malloc.tcache_count=127"
    assert [one for one in environment if one.startswith(b"GLIBC_TUNABLES=")] == [f"GLIBC_TUNABLES={expected}".encode()]


def test_a_folder_has_one_server_even_when_that_one_is_silent(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second server waits for the end of the first, then gives up; nothing of the first was touched."""
    settings = make_settings(data_dir, None)
    monkeypatch.setattr(locks, "EARLIER_S", 0.2)
    first = server.start(settings)
    try:
        first.send_signal(signal.SIGSTOP)
        with pytest.raises(AlreadyRunning, match=str(first.pid)):
            server.stop(server.start(settings))
        first.send_signal(signal.SIGCONT)
        with connect(settings) as client:
            assert client.info("server")["process_id"] == first.pid
    finally:
        first.send_signal(signal.SIGCONT)
        server.stop(first)


def test_a_server_of_somebody_else_on_the_socket_is_left_alone(data_dir: Path) -> None:
    """A server that holds no lock but answers on the socket is not displaced."""
    settings = make_settings(data_dir, None)
    server.stop(server.start(settings))
    foreign = subprocess.Popen([server.binary(), str(data_dir / "server" / "server.conf")])
    try:
        wait_for(lambda: server.ping(socket_path(settings)), "the foreign server answers")
        with pytest.raises(AlreadyRunning, match="did not start"):
            server.stop(server.start(settings))
        assert server.ping(socket_path(settings))
    finally:
        server.stop(foreign)


def test_a_loading_server_is_not_taken_for_one_without_persistence(data_dir: Path) -> None:
    """While it reads its append-only file a server says it has none; that is a reason to wait, not to give up."""
    settings = make_settings(data_dir, None)
    process = server.start(settings)
    with connect(settings) as client:
        writes = client.pipeline(transaction=False)
        for _ in range(15_000):
            writes.rpush("memd:in", b"x")
        writes.execute()
    server.stop(process)
    slow = subprocess.Popen([*process.args, "--key-load-delay", "100"])  # type: ignore[misc]  # a list here
    try:
        with connect(settings, retries=0) as client:
            loading = wait_for(lambda: persistence(client), "the server answers")
            assert (loading["loading"], loading["aof_enabled"]) == (1, 0)
            with pytest.raises(InboxUnavailable, match="loading"):
                examine(client)
            assert wait_for(lambda: found(client), "the server has loaded") == [()]
    finally:
        server.stop(slow)


def test_a_long_append_only_file_is_waited_for(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that says it is loading is given the time it takes; only silence has a deadline."""
    settings = make_settings(data_dir, None)
    process = server.start(settings)
    with connect(settings) as client:
        writes = client.pipeline(transaction=False)
        for _ in range(15_000):
            writes.rpush("memd:in", b"x")
        writes.execute()
    server.stop(process)
    monkeypatch.setattr(server, "_CONF", server._CONF + "key-load-delay 100\n")
    monkeypatch.setattr(server, "SILENCE_S", 0.5)
    process = server.start(settings)
    with connect(settings) as client:
        assert client.llen("memd:in") == 15_000
    server.stop(process)


def persistence(client: redis.Redis) -> dict[str, int]:
    """What the server says about its persistence; nothing while it cannot be reached."""
    try:
        return client.info("persistence")
    except redis.ConnectionError:
        return {}


def found(client: redis.Redis) -> list[tuple[str, ...]]:
    """The problems that `examine` finds, as one item; no item while the server is unavailable."""
    try:
        return [examine(client).problems]
    except InboxUnavailable:
        return []


def test_a_long_data_folder_gets_a_short_socket(data_dir: Path) -> None:
    """Where a socket in the data folder would be too long for the system, it lies in a private folder elsewhere."""
    deep = data_dir / ("d" * 100)
    deep.mkdir()
    path = socket_path(make_settings(deep, None))
    assert len(str(path)) <= MAX_SOCKET_BYTES
    assert not path.is_relative_to(deep)
    other = data_dir / ("e" * 100)
    other.mkdir()
    assert socket_path(make_settings(other, None)) != path
    process = server.start(make_settings(deep, None))
    server.stop(process)


@pytest.mark.parametrize("name", ["a b", 'it\'s "x"', "50%41 ?#", "记忆", "a\\b"])
def test_a_data_folder_may_have_any_name(data_dir: Path, name: str) -> None:
    """Blanks, quotes, Chinese and what means something in an address: the server starts there and is found there."""
    (data_dir / name).mkdir()
    settings = make_settings(data_dir / name, None)
    process = server.start(settings)
    try:
        with connect(settings) as client:
            assert client.config_get("dir")["dir"] == str(data_dir / name / "server")
    finally:
        server.stop(process)


def test_a_data_folder_that_cannot_be_used_is_said_in_a_sentence(data_dir: Path) -> None:
    """Where a file stands in the way of the folder, nothing is started."""
    (data_dir / "file").touch()
    settings = structs.replace(make_settings(data_dir, None), data_dir=data_dir / "file")
    with pytest.raises(ConfigError, match="cannot be used"):
        server.start(settings)


def test_a_folder_that_others_need_is_not_closed(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/`, a home, a folder above it, a shared folder: refused as they are; a folder of one's own is closed."""
    home = data_dir / "homes" / "ana"
    home.mkdir(parents=True, mode=0o755)
    monkeypatch.setenv("HOME", str(home))
    (data_dir / "shared").mkdir()
    (data_dir / "shared").chmod(0o1777)
    (data_dir / "link").symlink_to(home)
    for folder in (Path("/"), home, home.parent, data_dir / "shared", data_dir / "link"):
        mode = folder.stat().st_mode
        with pytest.raises(ConfigError, match="not memd's alone"):
            server.private_folder(folder)
        assert folder.stat().st_mode == mode
    server.private_folder(home / "memd")
    (data_dir / "own").mkdir(mode=0o755)
    server.private_folder(data_dir / "own")
    assert stat.S_IMODE((data_dir / "own").stat().st_mode) == stat.S_IMODE((home / "memd").stat().st_mode) == 0o700
