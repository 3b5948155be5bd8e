"""A server that fails over: sentinels say which of several servers is the primary, and clients ask them.

The URL names the sentinels, the service and, before the @, an account of the servers:

    redis+sentinel://user:password@host1:26379,host2:26379,host3:26379/service

`rediss+sentinel://` encrypts all connections. Options behind `?` are those of redis-py (`ssl_ca_certs`, …), and
`sentinel_username`, `sentinel_password` of an account that the sentinels ask for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

import redis
import redis.asyncio
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.connection import parse_url
from redis.sentinel import Sentinel

SCHEMES = {"redis+sentinel": "redis", "rediss+sentinel": "rediss"}
"""The schemes of such URLs, with those of the servers behind them."""

PORT = 26379
ANSWERS_S = 1.0
"""The time limit of one sentinel: when one host is away, the next one is asked soon."""

OF_SENTINELS = "sentinel_"
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:,/@]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class WatchedService:
    """What such a URL says. `options`: of connections to the servers; `own`: of those to the sentinels."""

    name: str
    hosts: tuple[tuple[str, int], ...]
    options: dict[str, Any]
    own: dict[str, Any]
    encrypted: bool

    @property
    def address(self) -> str:
        """The service as a URL without accounts."""
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"redis{'s' * self.encrypted}+sentinel://{hosts}/{self.name}"


def is_service(url: str) -> bool:
    """Whether a URL names sentinels."""
    return url.partition("://")[0] in SCHEMES


def service_of(url: str) -> WatchedService:
    """The service of a URL. Raises ValueError."""
    parts = urlsplit(url)
    account, _, hosts = parts.netloc.rpartition("@")
    name = parts.path.strip("/")
    if not name or "/" in name:
        raise ValueError("no service")
    encrypted = parts.scheme == "rediss+sentinel"
    fields = parse_qsl(parts.query, strict_parsing=bool(parts.query))
    of_servers = [(key, value) for key, value in fields if not key.startswith(OF_SENTINELS)]
    netloc = f"{account}@server" if account else "server"
    one = urlunsplit(SplitResult(SCHEMES[parts.scheme], netloc, "", urlencode(of_servers), ""))
    options: dict[str, Any] = dict(parse_url(one))  # type: ignore[no-untyped-call]  # redis-py's gap
    for taken in ("host", "port", "connection_class"):
        options.pop(taken, None)
    own: dict[str, Any] = {
        key.removeprefix(OF_SENTINELS): value for key, value in fields if key.startswith(OF_SENTINELS)
    }
    own |= {key: value for key, value in options.items() if key.startswith("ssl_")}
    if encrypted:
        options["ssl"] = own["ssl"] = True
    return WatchedService(name, tuple(map(_host, hosts.split(","))), options, own, encrypted)


def client(url: str, options: dict[str, Any], kind: type[redis.Redis]) -> redis.Redis:
    """A sync client of the service's primary, of this class. Nothing is sent yet. Raises ValueError."""
    service = service_of(url)
    sentinels = Sentinel(service.hosts, sentinel_kwargs=_of_sentinels(service), **service.options, **options)  # type: ignore[no-untyped-call]
    found: redis.Redis = sentinels.master_for(service.name, redis_class=kind)  # type: ignore[no-untyped-call]  # redis-py's gaps
    return found


def async_client(url: str, options: dict[str, Any], kind: type[redis.asyncio.Redis]) -> redis.asyncio.Redis:
    """An async client of the service's primary, of this class. Nothing is sent yet. Raises ValueError."""
    service = service_of(url)
    sentinels = AsyncSentinel(service.hosts, sentinel_kwargs=_of_sentinels(service), **service.options, **options)  # type: ignore[no-untyped-call]
    found: redis.asyncio.Redis = sentinels.master_for(service.name, redis_class=kind)
    return found


def _of_sentinels(service: WatchedService) -> dict[str, Any]:
    return {**service.own, "socket_timeout": ANSWERS_S, "socket_connect_timeout": ANSWERS_S, "driver_info": None}


def _host(text: str) -> tuple[str, int]:
    match = _HOST.fullmatch(text)
    if match is None:
        raise ValueError("no host")
    return match[1].strip("[]"), int(match[2] or PORT)
