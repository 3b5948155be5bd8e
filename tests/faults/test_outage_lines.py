"""What is said of a server that is away: once when it goes, with its address, and once when it is back."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import orjson
import pytest
import redis
import structlog
from support import make_settings, part, wait_for
from support.fault_support import OwnServer, events
from support.proxy import Proxy

from memd import events as memd_events
from memd.config import Settings
from memd.errors import InboxUnavailable
from memd.inbox.connection import Call, connect, send, socket_path
from memd.inbox.figures import workers_listening
from memd.workers.rq_log import is_news

TRIES = 6
"""Tries of a worker in one outage: before, each logged two lines or more."""


@pytest.mark.timing
def test_a_worker_says_once_that_its_server_is_away(data_dir: Path) -> None:
    """Without a server from the start, then killed: one line each, the address in it, and one when it is back."""
    settings = make_settings(data_dir, None)
    with part("worker", settings):
        has_lines(settings, "outage_began", 1)
        with OwnServer(settings) as server:
            is_back(settings, 1)
            server.kill()
            has_lines(settings, "outage_began", 2)
            server.start()
            is_back(settings, 2)
    for began in events(settings, "worker", "outage_began"):
        assert began["code"] == "InboxUnavailable"
        assert f"the server at unix://{socket_path(settings)} cannot be reached" in began["error"]
    assert events(settings, "worker", "forgotten", "forgetting_waits", "library_log") == []


def has_lines(settings: Settings, event: str, times: int) -> None:
    """Wait until the worker has logged an event so often."""
    wait_for(lambda: len(events(settings, "worker", event)) >= times, f"{event} is logged {times} times")


def is_back(settings: Settings, times: int) -> None:
    """Wait until the worker listens again, and see that all outages so far are one line at each end."""
    has_lines(settings, "outage_ended", times)
    with connect(settings) as client:
        wait_for(lambda: workers_listening(client), "the worker listens")
    assert len(events(settings, "worker", "outage_began")) == times
    assert len(events(settings, "worker", "outage_ended")) == times


@pytest.mark.timing
def test_many_tries_are_one_line(server_url: str, settings: Settings, client: redis.Redis) -> None:
    """A server that hangs up on each command: the worker tries again and again, and says it once."""
    with Proxy(server_url) as proxy, part("worker", make_settings(settings.data_dir, proxy.url)):
        with connect(settings) as direct:
            wait_for(lambda: workers_listening(direct), "the worker listens")
        proxy.answer = b"-LOADING the server is loading\r\n"
        proxy.commands.clear()
        wait_for(lambda: proxy.commands.total() >= 2 * TRIES, "it has tried again and again")
        began = events(settings, "worker", "outage_began")
        assert [line["code"] for line in began] == ["InboxUnavailable"]
        assert began[0]["error"].startswith(f"the server at {proxy.url} is still loading")
        proxy.answer = None
        wait_for(lambda: events(settings, "worker", "outage_ended"), "its end is logged")
        assert events(settings, "worker", "forgotten", "library_log") == []


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://memd:hush@127.0.0.1:1/0", "redis://127.0.0.1:1 cannot be reached"),
        ("rediss://:hush@127.0.0.1:1", "rediss://127.0.0.1:1 cannot be reached"),
        ("redis://[::1]:1", "redis://[::1]:1 cannot be reached"),
        ("unix:///nowhere/memd.sock?password=hush", "unix:///nowhere/memd.sock cannot be reached"),
    ],
)
def test_the_address_is_named_and_the_password_is_not(data_dir: Path, url: str, address: str) -> None:
    """For each kind of address; a client of a door gets the sentence without the address."""
    with connect(make_settings(data_dir, url), retries=0) as client, pytest.raises(InboxUnavailable) as raised:
        send(client, Call(("PING",), bool))
    assert f"the server at {address}" in str(raised.value)
    assert "hush" not in str(raised.value)
    assert raised.value.for_clients == "the server cannot be reached; is `memd up` running?"


@contextmanager
def _logged(level: str) -> Iterator[StringIO]:
    """What memd logs from `level` on, inside the block."""
    before, configured = (logging.root.handlers[:], logging.root.level), structlog.get_config()
    stream = StringIO()
    try:
        memd_events.setup(level, "json", stream)
        yield stream
    finally:
        logging.root.handlers[:], logging.root.level = before
        structlog.configure(**configured)


def test_a_librarys_line_has_its_template_and_its_place() -> None:
    """Never its values; of a finished text only the place in the code, as it may hold anything."""
    with _logged("info") as stream:
        logging.getLogger("rq.worker").warning("job %s failed (%s)", "secret-1", ValueError("secret-2"))
        logging.getLogger("rq.worker").warning(f"job {'secret-3'} failed")
    template, finished = map(orjson.loads, stream.getvalue().splitlines())
    assert (template["event"], template["said"]) == ("library_log", "job %s failed (%s)")
    assert "said" not in finished
    for line in (template, finished):
        assert line["library"] == "rq.worker"
        assert line["place"].startswith("test_outage_lines.test_a_librarys_line")
    assert "secret" not in stream.getvalue()


def test_a_librarys_warning_is_below_the_level_error() -> None:
    """Also when the library gave its own logger a lower level, as RQ does."""
    logger = logging.getLogger("rq.worker")
    before = logger.level
    with _logged("error") as stream:
        logger.setLevel("WARNING")
        logger.warning("job %s died", "one")
        logger.error("job %s failed", "two")
    logger.setLevel(before)
    assert [orjson.loads(line)["said"] for line in stream.getvalue().splitlines()] == ["job %s failed"]


@pytest.mark.parametrize(
    ("template", "values", "news"),
    [
        ("Worker %s: could not connect to Redis instance: %s retrying", ("w", redis.ConnectionError("x")), False),
        ("Worker %s: pubsub thread exiting on %s", ("w", ValueError("closed")), False),
        ("Worker %s: Redis connection timeout, quitting...", ("w",), False),
        ("Worker %s: job %s failed (%s)", ("w", "j", "text"), True),
        ("Warm shut down requested, no horse found", (), True),
    ],
)
def test_rqs_lines_about_a_lost_server_are_dropped(template: str, values: tuple[object, ...], news: bool) -> None:
    """The others stay."""
    assert is_news(logging.LogRecord("rq.worker", logging.ERROR, "x.py", 1, template, values, None)) is news
