"""Spans of OpenTelemetry: one trace from the push to the store. Run where its SDK is installed: `make test-newest`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import redis
from support import MakeSettings, ended, first_due, free_port, part, wait_for

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.inbox.verbs import P
from memd.testing import ModelServer
from memd.workers.drain import Drain

pytest.importorskip("opentelemetry.sdk", reason="not run: `make test-newest` has OpenTelemetry")

from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

TURN = {"role": "user", "content": "I live in Porto.", "id": "m1"}
ONE, TWO = (f"00-{n:032x}-{n:016x}-01" for n in (0xA1, 0xB2))


@cache
def exporter() -> InMemorySpanExporter:
    """The spans of this process: an app's own OpenTelemetry, which it sets up once."""
    found = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    trace.set_tracer_provider(provider)
    return found


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """An app with OpenTelemetry."""
    exporter().clear()
    yield exporter()
    exporter().clear()


@pytest.fixture
def traced(configured: MakeSettings) -> Settings:
    """Settings with traces, whose drain ends as soon as nothing is due."""
    return configured(tracing__enabled=True, drain__linger_s=0.05)


def drain(settings: Settings) -> None:
    asyncio.run(Drain(settings, "host:1").run())


def by_name(found: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in found.get_finished_spans()}


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    found: int = span.parent.span_id
    return found


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    found: int = span.context.span_id
    return found


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_one_trace_from_push_to_store(traced: Settings, spans: InMemorySpanExporter, asynchronous: bool) -> None:
    """The app's span, the push below it, the claim below the push, its steps below the claim; no id and no word."""

    async def push() -> None:
        async with AsyncMemd(traced) as app:
            await app.push([TURN], thread_id="secret-thread", user_id="secret-user", now=True)

    with trace.get_tracer("app").start_as_current_span("turn"):
        if asynchronous:
            asyncio.run(push())
        else:
            with Memd(traced) as app:
                app.push([TURN], thread_id="secret-thread", user_id="secret-user", now=True)
    drain(traced)
    found = by_name(spans)
    steps = {"memd.load", "memd.choose", "memd.ask", "memd.commit", "memd.settle"}
    assert found.keys() == {"turn", "memd.push", "memd.remember", *steps}
    assert len({span.context.trace_id for span in found.values() if span.context}) == 1
    assert parent_of(found["memd.push"]) == span_id(found["turn"])
    assert parent_of(found["memd.remember"]) == span_id(found["memd.push"])
    assert {parent_of(found[name]) for name in steps} == {span_id(found["memd.remember"])}
    told = dict(found["memd.remember"].attributes or {})
    assert told == {"memd.messages": 1, "memd.attempts": 0, "memd.outcome": "stored", "memd.facts": 1}
    written = "".join(span.to_json() for span in found.values())
    assert not [word for word in ("secret", "Porto") if word in written]


def test_a_failure_is_told_by_its_code(
    asking: MakeSettings, memd: Memd, model: ModelServer, spans: InMemorySpanExporter
) -> None:
    """And by the name of the error, never by its words."""
    model.fail(401)
    settings = asking(tracing__enabled=True, drain__linger_s=0.05)
    memd.push([TURN], thread_id="t", user_id="ana", now=True)
    drain(settings)
    found = by_name(spans)
    told = dict(found["memd.remember"].attributes or {})
    assert (told["memd.outcome"], told["memd.code"]) == ("retry", "unauthorized")
    assert dict(found["memd.ask"].attributes or {}) == {"error.type": "ModelUnavailable"}
    assert [event for span in found.values() for event in span.events] == []


def test_every_push_of_a_claim_is_linked(
    memd: Memd, client: redis.Redis, traced: Settings, spans: InMemorySpanExporter
) -> None:
    """The claim is in the trace of the newest push and names the others; a claim that comes back keeps them."""
    for number, parent in enumerate((ONE, TWO)):
        push = {"thread_id": "t", "user_id": "ana", "traceparent": parent, "messages": [{**TURN, "id": f"m{number}"}]}
        memd.push_json(json.dumps(push).encode(), now=True)
    [first] = send(client, verbs.claim(traced, 1, 0, "w", "m")).taken
    memd.push([{**TURN, "id": "m9"}], thread_id="t", user_id="ana")  # so that what comes back is merged
    send(client, verbs.release(first.id, "paused"))
    memd.flush()
    drain(traced)
    remember = by_name(spans)["memd.remember"]
    assert remember.context is not None
    assert (remember.context.trace_id, parent_of(remember)) == (0xB2, 0xB2)
    assert [link.context.trace_id for link in remember.links] == [0xA1]


def test_off_nothing_is_carried(memd: Memd, client: redis.Redis, spans: InMemorySpanExporter) -> None:
    """Even in an app that traces: a push has no field more."""
    with trace.get_tracer("app").start_as_current_span("turn"):
        memd.push([TURN], thread_id="t", user_id="ana", now=True)
    assert client.hget(f"{P}:ctx:{first_due(client)}", ".traces") is None
    assert by_name(spans).keys() == {"turn"}


class Collector(BaseHTTPRequestHandler):
    """Takes spans in, as a collector of OpenTelemetry does."""

    taken: list[Any]

    def do_POST(self) -> None:
        request = ExportTraceServiceRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
        self.taken.append(request)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.mark.timing
def test_a_worker_exports_its_spans(memd: Memd, configured: MakeSettings) -> None:
    """A real worker to a real collector, by OpenTelemetry's own variables."""
    Collector.taken = []
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    settings = configured(tracing__enabled=True)
    where = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    try:
        with part("scheduler", settings), part("worker", settings, where):
            memd.push_json(
                json.dumps({"thread_id": "t", "user_id": "ana", "traceparent": ONE, "messages": [TURN]}).encode()
            )
            assert ended(memd) == {"stored": 1}
            wait_for(lambda: "memd.remember" in names(Collector.taken), "the spans have arrived")
    finally:
        collector.shutdown()
    [resource] = {str(one.resource.attributes) for request in Collector.taken for one in request.resource_spans}
    assert "memd" in resource
    assert {span.trace_id.hex() for span in spans_in(Collector.taken)} == {ONE.split("-")[1]}


def spans_in(taken: list[Any]) -> list[Any]:
    return [
        span
        for request in taken
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def names(taken: list[Any]) -> set[str]:
    return {span.name for span in spans_in(taken)}


@pytest.mark.timing
def test_a_collector_that_is_away_stops_nothing(memd: Memd, configured: MakeSettings) -> None:
    """Pushes are stored; the worker's child ends a little later."""
    settings = configured(tracing__enabled=True)
    where = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    with part("scheduler", settings), part("worker", settings, where):
        memd.push([TURN], thread_id="t", user_id="ana")
        assert ended(memd) == {"stored": 1}
