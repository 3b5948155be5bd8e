"""Metrics without `memd serve`: a small server in the scheduler's process, with what the inbox counted.

Workers and their short-lived children count in the inbox, so one scheduler tells of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from prometheus_client import start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from memd.config import Settings
from memd.errors import MemdError
from memd.events import Event, logger
from memd.inbox.connection import connect
from memd.inbox.status import read_status
from memd.ops.inbox_metrics import InboxCollector


def start(settings: Settings) -> None:
    """Serve from now on, in threads that end with this process. Without its port the scheduler works all the same."""
    assert settings.metrics.port is not None  # noqa: S101  (the caller asked)
    try:
        start_http_server(settings.metrics.port, settings.metrics.host, Scraped(settings))
    except OSError as error:  # another scheduler of this machine has the port, or the address is not this machine's
        logger(part="metrics").warning(Event.METRICS_FAILED, code=type(error).__name__, port=settings.metrics.port)
        return
    logger(part="metrics").info(Event.METRICS_READY, host=settings.metrics.host, port=settings.metrics.port)


class Scraped(Collector):
    """Reads the inbox at each scrape."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def collect(self) -> Iterable[Metric]:
        """All metrics; of an inbox that is away only that it is."""
        meaning = "Whether the inbox could be read"
        try:
            with closing(connect(self._settings, retries=0)) as client:
                status = read_status(client, self._settings)
        except MemdError:  # the scheduler logs the outage
            yield GaugeMetricFamily("memd_inbox_up", meaning, value=0)
            return
        yield GaugeMetricFamily("memd_inbox_up", meaning, value=1)
        yield from InboxCollector(status).collect()
