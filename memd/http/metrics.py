"""The figures of `memd status` and of this server process, for Prometheus. Codes and counts, no ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from memd.inbox.status import Status
from memd.ops.inbox_metrics import InboxCollector


class Served:
    """Counts the requests by route and status, and their seconds by route."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        self.seconds: Counter[str] = Counter()

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.counts[route, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]  # a Counter adds floats as well


def render(status: Status, served: Served) -> bytes:
    """The text of `/metrics`."""
    registry = CollectorRegistry()
    registry.register(InboxCollector(status))
    registry.register(_Requests(served))
    return generate_latest(registry)


class _Requests(Collector):
    def __init__(self, served: Served) -> None:
        self._served = served

    def collect(self) -> Iterable[Metric]:
        counts = dict(self._served.counts)
        answers = CounterMetricFamily(
            "memd_http_requests", "Requests served by this process", labels=["route", "status"]
        )
        for (route, status), count in counts.items():
            answers.add_metric([route, str(status)], count)
        yield answers
        times = SummaryMetricFamily("memd_http_request_seconds", "Seconds that requests took", labels=["route"])
        for route, seconds in dict(self._served.seconds).items():
            total = sum(count for (name, _), count in counts.items() if name == route)
            times.add_metric([route], total, seconds)
        yield times
