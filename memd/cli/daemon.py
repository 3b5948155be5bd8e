"""Running memd: all of it, or one part. A part is imported when it is started: no process needs the others' modules."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from memd.cli.common import Agent, daemon_loaded, daemon_settings, echo, warn
from memd.config import Settings
from memd.errors import ConfigError

HTTP_PACKAGES = ("starlette", "uvicorn", "prometheus_client", "jinja2")

Workers = Annotated[int | None, typer.Option("--workers", help="Worker processes (drain.workers).")]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", help="Model calls in flight in one worker (drain.concurrency).")
]
Quiet = Annotated[
    float | None, typer.Option("--quiet", help="Seconds of silence until a key is due (scheduler.quiet_s).")
]
TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Start although a scheduler with other settings runs, which ends then.")
]


def up(
    workers: Workers = None,
    concurrency: Concurrency = None,
    quiet: Quiet = None,
    take_over: TakeOver = False,
    console: Annotated[
        bool, typer.Option("--console", help="Also serve the console, and print a link that opens it, once.")
    ] = False,
) -> None:
    """Run all of memd here: server, scheduler, workers. Ctrl-C stops it.

    The embedded server is left out when redis_url is set.

    Example: memd up --console
    """
    flags: dict[str, Any] = {
        "drain__workers": workers, "drain__concurrency": concurrency, "scheduler__quiet_s": quiet,
    }  # fmt: skip
    if console:
        _require("up --console", "http", *HTTP_PACKAGES)
        flags |= {"http__enabled": True, "http__console": True}
    found = daemon_loaded(**flags)
    raise typer.Exit(
        _part("memd.ops.supervisor").run(
            found, partial(_open, found.settings) if console else None, take_over=take_over
        )
    )


def server() -> None:
    """Run only the embedded server. It stays in the foreground.

    Example: memd server
    """
    raise typer.Exit(_part("memd.ops.server").run(daemon_settings()))


def scheduler(quiet: Quiet = None, take_over: TakeOver = False) -> None:
    """Run only a scheduler. One is enough; a second one with the same settings shares the work.

    Example: memd scheduler
    """
    settings = daemon_settings(scheduler__quiet_s=quiet)
    if settings.metrics.port is not None:
        _require("scheduler", "metrics", "prometheus_client")
        _part("memd.ops.exporter").start(settings)
    _part("memd.scheduler.loop").run(settings, take_over=take_over)


def worker(concurrency: Concurrency = None) -> None:
    """Run only one worker. Start as many as you need, on any machine that has the data folder.

    Example: memd worker --concurrency 16
    """
    _part("memd.workers.worker").run(daemon_settings(drain__concurrency=concurrency))


def serve(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on (http.host).")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on (http.port).")] = None,
) -> None:
    """Serve memd over HTTP. Clients on other machines need tokens: see `memd token`.

    Example: memd serve --port 8477
    """
    _require("serve", "http", *HTTP_PACKAGES)
    _part("memd.http.serve").run(daemon_loaded(http__host=host, http__port=port))


def mcp(
    user: Annotated[
        str | None, typer.Option("--user", envvar="MEMD_MCP_USER", help="Whose memory this process serves.")
    ] = None,
    agent: Agent = "",
    tasks: Annotated[
        bool, typer.Option("--tasks", envvar="MEMD_MCP_TASKS", help="Offer a todo list and a task graph as well.")
    ] = False,
    thread: Annotated[
        str | None,
        typer.Option("--thread", envvar="MEMD_MCP_THREAD", help="Offer tools for the session of this thread as well."),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option("--project", envvar="MEMD_MCP_PROJECT", help="The project that the user works on there."),
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP at /mcp, instead of stdio.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on, with --http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="TCP port, with --http.")] = 8478,
) -> None:
    """Serve one user's memory to an MCP host: tools and a resource.

    With --http and without --user, the token of a request names the user.

    Example: memd mcp --user ana
    """
    _require("mcp", "mcp", "mcp")
    settings = daemon_settings()
    server = _part("memd.mcp.server")
    offer = server.Offer(agent, tasks, thread, project)
    if http:
        server.run_http(settings, user, offer, host, port)
    else:
        server.run_stdio(settings, user, offer)


def _open(settings: Settings) -> None:
    """Print a link into the console, for the person at this terminal."""
    link = _part("memd.http.console.links").make(settings.data_dir, settings.http)
    warn("The console: this link opens it in a browser, once, within five minutes (`memd console` prints another):")
    echo(link)


def _require(command: str, extra: str, *packages: str) -> None:
    if any(find_spec(package) is None for package in packages):
        raise ConfigError(f"`memd {command}` needs packages that are not installed: pip install 'memd[{extra}]'")


def _part(module: str) -> Any:
    return import_module(module)
