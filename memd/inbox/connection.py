"""Server connections. A command is built once and sent by a sync or async client; errors are translated here."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar
from urllib.parse import quote

import redis
import redis.asyncio
from redis.asyncio import SSLConnection as SSLAsync
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.retry import Retry

from memd.config import Settings
from memd.errors import (
    AccountRefused,
    ConfigError,
    InboxFull,
    InboxUnavailable,
    MemdError,
    NotAllowed,
    NotReady,
    Rejected,
)
from memd.inbox import sentinels
from memd.inbox.kept_connections import AsyncKeepingClient, KeepingClient
from memd.printable import printable

T = TypeVar("T")

TIMEOUT_S = 5.0
"""The time limit of one command, and of connecting."""

NO_URL = (
    "setting redis_url is no URL of a server; write redis://host:6379, rediss://…, unix:///path, or "
    "redis+sentinel://host1:26379,host2:26379/service"
)

MAX_SOCKET_BYTES = 103
"""The longest path of a socket: 107 bytes on Linux, 103 on macOS."""

OWN_ACCOUNT = "memd-daemon"
"""The account of memd's own processes on the embedded server when it has a port."""

UPDATE = (
    "`name` of a message and `user_name` need version 2, `project_id` and `source` version 3: update memd on the "
    "server, or push without them"
)
"""What to do where the server's functions are older than a push."""

_STATES = {
    "LOADING": "is still loading its data",
    "BUSY": "is busy with a script that does not end",
    "READONLY": "is a read-only replica; memd needs its primary",
    "MISCONF": "cannot write to its disk and takes nothing more",
    "NOREPLICAS": "has too few replicas that keep up, and takes nothing until they are back",
}
"""States of a server that pass or that its operator fixes; memd retries meanwhile."""

_ACCOUNT = {
    "NOAUTH": "the server asks for a password, and redis_url has none",
    "WRONGPASS": "the server refuses the user or the password of redis_url",
}


NO_RIGHT_INSIDE = ("ACL failure in script", "The user executing the script can't")
"""How a function's error begins when its caller lacks a right that it needs: since Redis 7.2, and before."""


class Call(NamedTuple, Generic[T]):
    """A command and the parser of its reply, independent of the client that sends it.

    `then`: a second command, which has to follow on the same connection; the parser gets both replies.
    """

    command: tuple[Any, ...]
    parse: Callable[[Any], T]
    then: tuple[Any, ...] = ()


def inbox_url(settings: Settings) -> str:
    """The URL of the inbox: the configured server, or the embedded server's socket."""
    if settings.redis_url is not None:
        return settings.redis_url.reveal()
    return f"unix://{_own_account(settings)}{quote(os.fsencode(socket_path(settings)))}"


def fails_over(settings: Settings) -> bool:
    """Whether sentinels choose the server."""
    return sentinels.is_service(inbox_url(settings))


def password_file(settings: Settings, account: str) -> Path:
    """The file with the password of an account of the embedded server; it exists only with `server.port`."""
    return settings.data_dir.absolute() / "server" / f"{account}.password"


def own_password(settings: Settings) -> str:
    """The password of memd's own processes for the embedded server; "" when it asks for none."""
    try:
        return password_file(settings, OWN_ACCOUNT).read_text(encoding="ascii").strip()
    except (OSError, ValueError):  # no port, or no right to read it: then the server refuses
        return ""


def _own_account(settings: Settings) -> str:
    password = own_password(settings)
    return f"{OWN_ACCOUNT}:{password}@" if password else ""


def socket_path(settings: Settings) -> Path:
    """The embedded server's socket: in the data folder if that path is short enough, else in a private one in /tmp."""
    folder = settings.data_dir.absolute() / "server"
    inside = folder / "memd.sock"
    if len(os.fsencode(inside)) <= MAX_SOCKET_BYTES:
        return inside
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    # Not tempfile.gettempdir(): with another TMPDIR, a client would look for the server elsewhere.
    return Path("/tmp") / f"memd-{os.getuid()}" / f"{name}.sock"  # noqa: S108  (a private folder in it)


def _options(retries: int) -> dict[str, Any]:
    # A lost reply makes redis-py send again; every command of the inbox may be sent twice, so that is safe.
    backoff = ExponentialWithJitterBackoff(cap=0.5, base=0.02) if retries else NoBackoff()
    timeouts = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
    # No CLIENT SETINFO at each connection: Redis 7.0 has none, and accounts need no right to it.
    return {**timeouts, "retry": (backoff, retries), "driver_info": None}


def connect(settings: Settings, retries: int = 2) -> redis.Redis:
    """A sync client. Nothing is sent yet. Raises ConfigError."""
    options = _options(retries)
    options["retry"] = Retry(*options["retry"])
    url = inbox_url(settings)
    kind = KeepingClient if retries else redis.Redis
    try:
        return sentinels.client(url, options, kind) if sentinels.is_service(url) else kind.from_url(url, **options)
    except ValueError:
        raise ConfigError(NO_URL) from None


def connect_async(settings: Settings, retries: int = 2) -> redis.asyncio.Redis:
    """An async client. Nothing is sent yet. Raises ConfigError."""
    options = _options(retries)
    options["retry"] = redis.asyncio.retry.Retry(*options["retry"])
    url = inbox_url(settings)
    kind = AsyncKeepingClient if retries else redis.asyncio.Redis
    try:
        if sentinels.is_service(url):
            return sentinels.async_client(url, options, kind)
        client: redis.asyncio.Redis = kind.from_url(url, **options)
    except ValueError:
        raise ConfigError(NO_URL) from None
    return client


def send(client: redis.Redis, call: Call[T]) -> T:
    """Send a call. Raises Rejected, InboxFull, NotReady or InboxUnavailable."""
    if call.then:
        return call.parse(execute(_pair(client.pipeline(transaction=False), call)))
    try:
        return call.parse(client.execute_command(*call.command))  # type: ignore[no-untyped-call]  # redis-py's gap
    except redis.RedisError as error:
        translate(error, client)


def _pair(pipeline: Any, call: Call[Any]) -> Any:
    """A call's two commands in one pipeline: they go over one connection, and are sent again only together."""
    pipeline.execute_command(*call.command)
    pipeline.execute_command(*call.then)
    return pipeline


def execute(pipeline: Any) -> list[Any]:
    """Run a pipeline. Raises as `send` does."""
    try:
        replies: list[Any] = pipeline.execute()
    except redis.RedisError as error:
        translate(error, pipeline)
    return replies


def execute_past(pipeline: Any) -> list[Any]:
    """Run a pipeline; the reply for a key of a wrong type, which another program wrote, is None. Raises as `send`."""
    try:
        replies: list[Any] = pipeline.execute(raise_on_error=False)
    except redis.RedisError as error:
        translate(error, pipeline)
    for number, reply in enumerate(replies):
        if isinstance(reply, redis.RedisError):
            if "WRONGTYPE" not in str(reply):
                translate(reply, pipeline)
            replies[number] = None
    return replies


class Flight(Generic[T]):
    """Calls in flight in one pipeline: the server executes them while the caller does other work.

    It holds a connection until `land` or `call_off`. Raises as `send` does when the calls cannot be sent.
    """

    def __init__(self, client: redis.Redis, calls: Sequence[Call[T]]) -> None:
        self._calls = calls
        self._open = True
        self._client = client
        self._pool = client.connection_pool
        try:
            self._connection = self._pool.get_connection()
        except redis.RedisError as error:
            translate(error, client)
        try:
            packed = self._connection.pack_commands([call.command for call in calls])  # type: ignore[no-untyped-call]
            self._connection.send_packed_command(packed)  # type: ignore[no-untyped-call]  # redis-py's gaps
        except redis.RedisError as error:
            self.call_off()
            translate(error, client)

    def land(self) -> list[T | MemdError]:
        """Wait for all replies; a call that failed has its error in place of the result."""
        results: list[T | MemdError] = []
        try:
            for call in self._calls:
                try:
                    results.append(call.parse(self._connection.read_response()))
                except redis.ResponseError as error:
                    results.append(translated(error, self._client))
        except redis.RedisError as error:
            translate(error, self._client)
        else:
            self._open = False
            self._pool.release(self._connection)
        finally:
            self.call_off()
        return results

    def call_off(self) -> None:
        """Discard outstanding replies and close the connection. It is unknown whether the calls were executed."""
        if self._open:
            self._open = False
            self._connection.disconnect()  # type: ignore[no-untyped-call]  # redis-py's gap
            self._pool.release(self._connection)


async def send_async(client: redis.asyncio.Redis, call: Call[T]) -> T:
    """Send a call from a coroutine. Raises as `send` does."""
    if call.then:
        pair = _pair(client.pipeline(transaction=False), call)
        try:
            return call.parse(await pair.execute())
        except redis.RedisError as error:
            translate(error, pair)
    try:
        return call.parse(await client.execute_command(*call.command))  # type: ignore[no-untyped-call]  # redis-py's gap
    except redis.RedisError as error:
        translate(error, client)


class HasPool(Protocol):
    """A client or a pipeline of redis-py."""

    connection_pool: Any


def address(client: HasPool) -> str:
    """The server that a client is for, as a URL without user and password."""
    options = client.connection_pool.connection_kwargs
    if service := getattr(client.connection_pool, "service_name", None):
        return f"sentinels' service {service}"
    if "path" in options:
        return f"unix://{options['path']}"
    encrypted = issubclass(client.connection_pool.connection_class, redis.SSLConnection | SSLAsync)
    host = options.get("host", "localhost")
    name = f"[{host}]" if ":" in host else host
    return f"{'rediss' if encrypted else 'redis'}://{name}:{options.get('port', 6379)}"


def primary(client: HasPool) -> str | None:
    """Host and port of the server that sentinels chose, as far as this client knows; None where none choose."""
    known = getattr(client.connection_pool, "master_address", None)
    return f"{known[0]}:{known[1]}" if known else None


def serves_by_sentinels(client: HasPool) -> bool:
    """Whether sentinels choose the server of a client."""
    return getattr(client.connection_pool, "service_name", None) is not None


def server_address(settings: Settings) -> str:
    """The server of these settings, safe to print. Nothing is sent."""
    with connect(settings) as client:
        return printable(address(client))


def translate(error: redis.RedisError, client: HasPool) -> NoReturn:
    """Raise memd's error for one of redis-py."""
    raise translated(error, client) from None


def translated(error: redis.RedisError, client: HasPool) -> MemdError:
    """memd's error for an error of redis-py. The server's text is kept only if memd's functions wrote it."""
    text = str(error)
    if text.startswith("Command # "):  # redis-py puts the command of a pipeline before the server's text
        text = text.rpartition(" of pipeline caused error: ")[2]
    if text.startswith("MEMDREJECTED "):
        code, _, sentence = text.removeprefix("MEMDREJECTED ").partition(": ")
        return Rejected(code, f"{sentence}; {UPDATE}" if code == "E_VERSION" else sentence)
    if isinstance(error, redis.OutOfMemoryError) or text.startswith(("MEMDFULL", "OOM")):
        return InboxFull("the server is near its memory limit; push again when the backlog has drained")
    if text.startswith("MEMDNOTREADY") or "Function not found" in text:
        return NotReady("the inbox is not set up: start `memd up` or `memd scheduler` once on this server")
    refused = _refused(error, text)
    if refused is not None:
        return refused
    return unavailable(client, _unavailable(error, text))


def unavailable(client: HasPool, said: str) -> InboxUnavailable:
    """The error for a server that does not serve. `said`: what it does, without the subject of the sentence."""
    return InboxUnavailable(f"the server at {printable(address(client))} {said}", f"the server {said}")


def _refused(error: redis.RedisError, text: str) -> MemdError | None:
    """The error if the account is at fault, else None."""
    if isinstance(error, redis.exceptions.NoPermissionError) or text.startswith(NO_RIGHT_INSIDE):
        command = re.search(r"the '([a-z|]+)' command", text)
        what = f"run {command[1].upper().replace('|', ' ')}" if command else "do all that this takes"
        return NotAllowed(f"the account of redis_url must not {what}; `memd acl` prints what each account needs")
    code = _code(error, text)
    if code in _ACCOUNT or isinstance(error, redis.AuthenticationError):
        return AccountRefused(_ACCOUNT.get(code, _ACCOUNT["WRONGPASS"]))
    return None


def _unavailable(error: redis.RedisError, text: str) -> str:
    """What the server does or does not do, as a sentence without its subject."""
    if isinstance(error, redis.TimeoutError):
        return f"did not answer within {TIMEOUT_S:g} s"
    code = _code(error, text)
    if code in _STATES:
        return _STATES[code]
    if "max number of clients" in text:
        return "has no connection left for us (maxclients)"
    if isinstance(error, redis.ConnectionError):
        return "cannot be reached; is `memd up` running?"
    return f"refused the command ({code if code.isupper() else 'no code'})"


def _code(error: redis.RedisError, text: str) -> str:
    """The first word of the server's reply, which is a code if it is in capitals."""
    status = error.status_code
    return status if status and status != "ERR" else text.split(" ", 1)[0]
