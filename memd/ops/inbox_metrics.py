"""The figures of the inbox for Prometheus: codes, counts. Labels name states, reasons, lists and models, never ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from memd.inbox.histograms import DURATIONS
from memd.inbox.status import Status


class InboxCollector(Collector):
    """The metrics of one status."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        """All metrics."""
        yield from self._keys()
        yield from self._counted()
        yield from self._durations()
        yield from self._models()

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
        yield CounterMetricFamily("memd_events_lost", "Events that could not be written", value=status.events_lost)
        tokens = {name.removesuffix("_tokens"): n for name, n in status.usage.items() if name.endswith("_tokens")}
        yield _counter("memd_model_tokens", "Tokens of the model", "kind", tokens)
        yield CounterMetricFamily("memd_model_calls", "Calls of the model", value=status.usage["model_calls"])

    def _durations(self) -> Iterator[Metric]:
        for duration, histogram in self._status.durations.items():
            counts = [(f"{bound:g}", count) for bound, count in histogram.counts]
            yield HistogramMetricFamily(
                f"memd_{duration}_seconds",
                DURATIONS[duration],
                buckets=[*counts, ("+Inf", histogram.total)],
                sum_value=histogram.seconds,
            )

    def _models(self) -> Iterator[Metric]:
        calls = CounterMetricFamily("memd_calls_by_model", "Calls of a model, by way", labels=["model", "way"])
        tokens = CounterMetricFamily("memd_tokens_by_model", "Tokens of a model, by kind", labels=["model", "kind"])
        failures = CounterMetricFamily("memd_failures_by_model", "Failed calls, by code", labels=["model", "code"])
        for model, use in self._status.models.items():
            calls.add_metric([model, "now"], use.calls)
            calls.add_metric([model, "batch"], use.batch_calls)
            for kind, count in use.tokens.items():
                tokens.add_metric([model, kind], count)
            for code, count in sorted(use.failures.items()):
                failures.add_metric([model, code], count)
        yield from (calls, tokens, failures)


def _gauge(name: str, meaning: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for value, count in sorted(values.items()):
        family.add_metric([value], count)
    return family


def _counter(name: str, meaning: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value, count in sorted(values.items()):
        family.add_metric([value], count)
    return family
