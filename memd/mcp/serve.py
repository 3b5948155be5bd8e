"""`memd mcp`: the server on stdio, or over HTTP."""

from __future__ import annotations

import os

from mcp.server.transport_security import TransportSecuritySettings

from memd.client import Memd
from memd.config import Settings
from memd.errors import ConfigError
from memd.events import Event, logger
from memd.http import keyring
from memd.http.guard import is_loopback
from memd.http.listener import listen, serve
from memd.mcp.binding import Binding, ByProcess, ByToken, Verifier, only_user
from memd.mcp.server import build
from memd.push.validation import check_identifier

MAX_BODY_BYTES = 1_048_576
"""Of one request; a fact has a few thousand characters."""


def run_stdio(settings: Settings, user_id: str | None, agent_name: str) -> None:
    """Serve the client that started this process, until it closes stdin. Raises ConfigError, Rejected."""
    user_id = user_id or settings.client.default_user
    if user_id is None:
        raise ConfigError("name the user: --user, MEMD_MCP_USER, or the setting client.default_user")
    with Memd(settings) as memd:
        build(memd, ByProcess(check_identifier("user_id", user_id)), agent_name=agent_name).run("stdio")


def run_http(settings: Settings, user_id: str | None, agent_name: str, host: str, port: int) -> None:
    """Serve streamable HTTP at /mcp until SIGTERM. Raises ConfigError before anything is listened on, and Rejected."""
    binding, verifier = _binding(settings, user_id, host)
    with Memd(settings) as memd:
        server = build(memd, binding, agent_name=agent_name, verifier=verifier)
        app = server.streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=MAX_BODY_BYTES,
            transport_security=_names(settings, host),
        )
        listener = listen(host, port, "--host and --port")
        logger(part="mcp").info(Event.MCP_READY, host=host, port=port, pid=os.getpid(), tokens=verifier is not None)
        serve(app, listener, settings.http, "on")


def _binding(settings: Settings, user_id: str | None, host: str) -> tuple[Binding, Verifier | None]:
    """By the process when it names a user, else by tokens; never by neither."""
    if user_id is not None:
        if not is_loopback(host):
            raise ConfigError("to listen beyond this machine takes tokens (http.tokens, `memd token add`), not --user")
        return ByProcess(check_identifier("user_id", user_id)), None
    file = settings.http.tokens
    if file is None:
        raise ConfigError("name the user (--user), or set http.tokens and give each user a token (`memd token add`)")
    if settings.store.shared:
        raise ConfigError("setting store.shared: tokens keep users apart, and here all users share one memory")
    if not any(map(only_user, keyring.load(file))):
        raise ConfigError("setting http.tokens: no token there names exactly one user; `memd token add --user` does")
    return ByToken(), Verifier(keyring.Keyring(file))


def _names(settings: Settings, host: str) -> TransportSecuritySettings:
    """The Hosts and Origins that are answered: this machine's names, http.hosts, and the address listened on."""
    names = dict.fromkeys(("localhost", "127.0.0.1", "[::1]", *settings.http.hosts, host))
    hosts = [f"{name}{port}" for name in names for port in ("", ":*")]
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in hosts]
    )
