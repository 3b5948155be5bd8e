"""One real server for each test process, emptied before each test."""

from __future__ import annotations

import gc
import io
import logging
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest
import redis
import structlog
from support import ENDS_S, STORE, Cli, MakeSettings, Step, environment, make_settings, wait_for

from memd.cli import main
from memd.client import Memd
from memd.config import Settings
from memd.inbox import library
from memd.inbox.connection import connect, inbox_url
from memd.ops import server
from memd.testing import ModelServer

# A shell starts its background jobs with SIGINT ignored, and children inherit that: no Ctrl-C would reach them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# On a busy machine everything is slow; that is no property of the code under test.
hypothesis.settings.register_profile("here", suppress_health_check=[hypothesis.HealthCheck.too_slow], deadline=None)
hypothesis.settings.load_profile("here")


if STORE == "postgres":
    pytest_plugins = ["support.postgres_fixtures"]
collect_ignore_glob = [] if STORE == "postgres" else ["*/test_postgres*.py"]


def pytest_collection_finish() -> None:
    """Leave all modules and tests out of the garbage collector: they stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A real server on a short socket path, shared by the tests of this process."""
    folder = Path(tempfile.mkdtemp(prefix="memd-"))
    settings = make_settings(folder, None)
    process = server.start(settings)
    yield inbox_url(settings)
    process.send_signal(signal.SIGTERM)
    process.wait(ENDS_S)
    shutil.rmtree(folder)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty data folder with a short path."""
    folder = Path(tempfile.mkdtemp(prefix="memd-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def configured(server_url: str, data_dir: Path) -> MakeSettings:
    """Settings for this test's folder and server, with changes by keyword (`scheduler__quiet_s=1`)."""

    def make(**changes: object) -> Settings:
        return make_settings(data_dir, server_url, **changes)

    return make


@pytest.fixture
def settings(configured: MakeSettings) -> Settings:
    """The short-time settings."""
    return configured()


@pytest.fixture
def client(settings: Settings) -> Iterator[redis.Redis]:
    """A client of an emptied server with the inbox installed; the server is empty again afterwards."""
    connection = connect(settings)
    _empty(connection)
    library.install(connection, settings)
    yield connection
    with connect(settings) as afterwards:  # the test may have closed its own
        _empty(afterwards)


def _empty(connection: redis.Redis) -> None:
    connection.flushall()
    connection.function_flush()


@pytest.fixture
def memd(settings: Settings, client: redis.Redis) -> Iterator[Memd]:
    """An app's client."""
    with Memd(settings) as app:
        yield app


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """The HTTP model: one fact for each new user message."""
    with ModelServer() as found:
        yield found


@pytest.fixture
def asking(configured: MakeSettings, client: redis.Redis, model: ModelServer) -> MakeSettings:
    """Settings that ask the HTTP model, with changes by keyword; written to the server as well."""

    def make(**changes: object) -> Settings:
        settings = configured(
            extraction__extractor="anthropic",
            extraction__base_url=model.base_url,
            extraction__api_key="test-key",
            **changes,
        )
        library.install(client, settings)
        return settings

    return make


@contextmanager
def logs_as_before() -> Iterator[None]:
    """A command that sets up logging writes to the stream of this test, which is closed after it: no other test may."""
    configured, handlers, level = structlog.get_config(), logging.root.handlers[:], logging.root.level
    try:
        yield
    finally:
        structlog.configure(**configured)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)


@pytest.fixture
def cli(
    settings: Settings, client: redis.Redis, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Cli:
    """Runs `memd` in this process, with the test's settings: a process of its own takes twenty times as long."""

    def run(*words: str, given: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as here:
            for name, value in {**environment(settings), **env}.items():
                here.setenv(name, value)
            here.setattr(sys, "argv", ["memd", *words])
            here.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
            with logs_as_before(), pytest.raises(SystemExit) as ended:
                main()
        return subprocess.CompletedProcess(words, int(ended.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture
def cli_process(settings: Settings, client: redis.Redis) -> Cli:
    """Runs `memd` as a process of its own, for what only a process has: its start, its streams, its signals."""

    def run(*words: str, given: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memd", *words],
            env={**environment(settings), **env},
            input=given,
            capture_output=True,
            text=True,
            timeout=ENDS_S,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that shifts the wall clock of the process it is loaded into (LD_PRELOAD), see clock.c."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("not run: no C compiler (cc) to shift a clock with")
    library_file = tmp_path_factory.mktemp("clock") / "clock.so"
    source = Path(__file__).parent / "support" / "clock.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library_file), str(source), "-ldl"], check=True)
    return library_file


@pytest.fixture
def step(settings: Settings, shim: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Step]:
    """A running server of the test's own, and a function that sets its clock so many seconds from the real time."""
    shift = settings.data_dir / "shift"
    shift.write_text("0")
    with monkeypatch.context() as env:
        env.setenv("LD_PRELOAD", str(shim))
        env.setenv("CLOCK_SHIFT", str(shift))
        process = server.start(settings)

    def set_clock(seconds: int) -> None:
        with connect(settings) as client:
            before = int(client.time()[0])
            was = int(shift.read_text())
            shift.write_text(f"{seconds:<24}")
            wait_for(lambda: abs(int(client.time()[0]) - before - seconds + was) < 60, "the clock is set")

    with connect(settings) as client:
        library.install(client, settings)
    yield set_clock
    server.stop(process)
