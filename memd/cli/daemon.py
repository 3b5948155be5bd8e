"""Running memd: the whole tree, and its parts alone."""

from __future__ import annotations

from typing import Annotated

import typer

from memd.cli.common import daemon_settings

Workers = Annotated[int | None, typer.Option("--workers", help="Worker processes (drain.workers).")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Model calls at once in a worker.")]
Quiet = Annotated[float | None, typer.Option("--quiet", help="Seconds of silence until a key is due.")]


def up(workers: Workers = None, concurrency: Concurrency = None, quiet: Quiet = None) -> None:
    """Run everything here: embedded server (unless redis_url is set), scheduler, workers. Ctrl-C stops.

    Example: memd up --workers 4
    """
    from memd.ops import supervisor  # noqa: PLC0415  (heavy for one-shot commands)

    flags = {"drain__workers": workers, "drain__concurrency": concurrency, "scheduler__quiet_s": quiet}
    raise typer.Exit(supervisor.run(daemon_settings(**flags)))


def server() -> None:
    """Run the embedded server alone, in the foreground."""
    from memd.ops import server as embedded  # noqa: PLC0415

    raise typer.Exit(embedded.run(daemon_settings()))


def scheduler(quiet: Quiet = None) -> None:
    """Run a scheduler alone. Two or more may run: one is enough, the others stand by."""
    from memd.scheduler import loop as scheduling  # noqa: PLC0415

    scheduling.run(daemon_settings(scheduler__quiet_s=quiet))


def worker(concurrency: Concurrency = None) -> None:
    """Run one worker alone; start as many as you need, on any machine that has the data folder."""
    from workers import worker as working  # noqa: PLC0415

    working.run(daemon_settings(drain__concurrency=concurrency))


def serve(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on (http.host).")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on (http.port).")] = None,
) -> None:
    """Serve memd's verbs over HTTP. Beyond this machine it takes tokens: see `memd token`.

    Example: memd serve --port 8477
    """
    import importlib.util  # noqa: PLC0415

    from memd.errors import ConfigError  # noqa: PLC0415

    missing = [name for name in ("starlette", "uvicorn", "prometheus_client") if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError("memd serve needs more than the bare memd: pip install 'memd[http]'")
    from memd.http import serve as serving  # noqa: PLC0415

    serving.run(daemon_settings(http__host=host, http__port=port))


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (up, server, scheduler, worker, serve):
        app.command()(command)
