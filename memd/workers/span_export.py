"""Exports the spans of a process by OTLP over HTTP; addresses and sampling come from OpenTelemetry's own variables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import set_tracer_provider

EXPORT_S = 2.0
"""Seconds of one export and its repetitions: a collector that is away holds up the end of a worker's child so long."""


@contextmanager
def exporting() -> Iterator[None]:
    """Export in a thread, as long as the block; at its end, what is left. The exporter logs what it cannot deliver."""
    resource = Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "memd")})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=EXPORT_S)))
    set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
