"""A claim as OpenTelemetry spans, in the trace of the push that brought it: its life, and a span for each step.

Attributes are counts, codes and the names of outcomes: no ids, no texts, no hashes of either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
    get_tracer,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from memd.inbox.claim import Claim
from memd.workers.outcome import Dead, Lost, Outcome, Retry, Skipped, Stored

T = TypeVar("T")

_READER = TraceContextTextMapPropagator()


class ClaimSpans:
    """Makes spans by the tracer of this process."""

    def __init__(self) -> None:
        self._tracer = get_tracer("memd")

    @contextmanager
    def of(self, claim: Claim) -> Iterator[TracedClaim]:
        """The span of a claim: below the span of its newest push, with links to those of the pushes before."""
        *others, newest = [_remote(trace) for trace in claim.traces] or [Context()]
        links = [Link(get_current_span(other).get_span_context()) for other in others]
        span = self._tracer.start_span("memd.remember", newest, SpanKind.CONSUMER, links=links)
        span.set_attribute("memd.messages", len(claim.messages))
        span.set_attribute("memd.attempts", claim.attempts)
        try:
            yield TracedClaim(self._tracer, span)
        finally:
            span.end()


class TracedClaim:
    """The span of one claim."""

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._below = set_span_in_context(span, Context())

    async def step(self, name: str, work: Awaitable[T]) -> T:
        """One step, with the name of what it returns, or of the error that it raises."""
        span = self._tracer.start_span(f"memd.{name}", self._below)
        try:
            result = await work
            if result is not None:
                span.set_attribute("memd.result", type(result).__name__.lower())
            return result
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)  # never the words of an error
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            span.end()

    def end_with(self, outcome: Outcome) -> None:
        """Say how the claim ends."""
        self._span.set_attribute("memd.outcome", type(outcome).__name__.lower())
        match outcome:
            case Stored():
                self._span.set_attribute("memd.facts", len(outcome.fact_ids))
            case Skipped(reason):
                self._span.set_attribute("memd.code", reason)
            case Retry(code) | Dead(code) | Lost(code):
                self._span.set_attribute("memd.code", code)
                self._span.set_status(StatusCode.ERROR)


def _remote(trace: str) -> Context:
    return _READER.extract({"traceparent": trace}, Context())
