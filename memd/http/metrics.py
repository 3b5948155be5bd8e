"""The figures of `memd status` and of this server process, for Prometheus. Codes and counts, no ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from memd.inbox.status import Status


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
    registry.register(_Figures(status, served))
    return generate_latest(registry)


class _Figures(Collector):
    def __init__(self, status: Status, served: Served) -> None:
        self._status = status
        self._served = served

    def collect(self) -> Iterable[Metric]:
        yield from self._keys()
        yield from self._counted()
        yield from self._requests()

    def _keys(self) -> Iterator[Metric]:
        status = self._status
        yield _gauge("memd_keys", "Keys by state", "state", {
            "pending": status.pending, "due": status.due, "parked": status.parked,
            "batched": status.batched, "rationed": status.rationed, "claimed": status.claimed, "dead": status.dead,
        })  # fmt: skip
        yield _gauge("memd_raw_pushes", "Pushes in each raw list", "list", status.raw)
        yield GaugeMetricFamily("memd_unread_lists", "Raw lists that no scheduler reads", value=len(status.unread))
        waiting = status.oldest_waiting_s or 0.0
        meaning = "Time since the first push of the key that is due first"
        yield GaugeMetricFamily("memd_oldest_waiting_seconds", meaning, waiting)
        states = Counter(worker["state"] for worker in status.workers)
        yield _gauge("memd_workers", "Workers by state", "state", states)
        stopped = len(status.waiting_parts)
        yield GaugeMetricFamily("memd_waiting_parts", "Parts of memd up that cannot start and are tried again", stopped)
        paused = Counter(str(pause["code"]) for pause in status.paused)
        yield _gauge("memd_paused_endpoints", "Model endpoints whose breaker is open, by code", "code", paused)
        yield GaugeMetricFamily("memd_unfit", "Problems of the server", len(status.server["unfit"]))

    def _counted(self) -> Iterator[Metric]:
        status = self._status
        yield CounterMetricFamily("memd_pushes", "Pushes accepted", value=status.pushes)
        yield _counter("memd_ended", "Pushes by how they ended", "state", {
            "stored": status.stored, "skipped": status.skipped, "dead": status.dead_so_far,
        })  # fmt: skip
        yield _counter("memd_ended_reasons", "Skipped and dead pushes by reason", "reason", status.by_reason)
        yield _counter("memd_discarded_letters", "Letters of raw pushes discarded", "list", status.discarded)
        yield _counter("memd_dropped_turns", "Turns that filtering dropped", "reason", status.dropped)
        yield _counter("memd_cut_blocks", "Blocks that filtering cut out of turns", "kind", status.cut)
        yield _counter("memd_refused_facts", "Proposed facts that were refused", "reason", status.refused)
        yield _counter("memd_redacted", "Secrets cut out before the model saw them", "kind", status.redacted)
        yield _counter("memd_not_kept_messages", "Messages not kept, as asked", "reason", status.not_kept)
        yield _counter("memd_mended_replies", "Repairs of the form of the model's replies", "kind", status.mended)
        yield _counter("memd_facts", "Facts by change", "change", status.facts)
        tokens = {name.removesuffix("_tokens"): n for name, n in status.usage.items() if name.endswith("_tokens")}
        yield _counter("memd_model_tokens", "Tokens of the model", "kind", tokens)
        yield CounterMetricFamily("memd_model_calls", "Calls of the model", value=status.usage["model_calls"])

    def _requests(self) -> Iterator[Metric]:
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


def _gauge(name: str, meaning: str, label: str, values: dict[str, int] | Counter[str]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for value, count in sorted(values.items()):
        family.add_metric([value], count)
    return family


def _counter(name: str, meaning: str, label: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value, count in sorted(values.items()):
        family.add_metric([value], count)
    return family
