"""The trace that a push belongs to, as W3C's `traceparent`: of its producer, or of the span that is open where it is
pushed.

OpenTelemetry is used where the app has loaded it; this module loads nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from memd.context import Context
from memd.push.strict_json import refuse

_FORM = re.compile("00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def is_trace(value: str) -> bool:
    """Whether a text is a `traceparent`."""
    return _FORM.fullmatch(value) is not None


def check_trace(value: object) -> str:
    """A `traceparent`, or "" where there is none in its form: no push is lost for its trace.

    Raises Rejected for what is no text.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        refuse("E_TRACEPARENT", "traceparent must be text", "traceparent")
    return value if is_trace(value) else ""


@contextmanager
def push_span(context: Context) -> Iterator[Context]:
    """A span `memd.push` by the app's OpenTelemetry, as long as the block; the context belongs to it.

    The context as it is where it has a trace already, or the app has not loaded OpenTelemetry.
    """
    otel = sys.modules.get("opentelemetry.trace")
    if otel is None or context.trace:
        yield context
        return
    # Not made the current span: the block may end in another task.
    span = otel.get_tracer("memd").start_span("memd.push", kind=otel.SpanKind.PRODUCER)
    try:
        found = span.get_span_context()
        trace = f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
        yield replace(context, trace=trace) if found.is_valid else context
    except Exception as error:
        span.set_attribute("error.type", type(error).__name__)  # never the words of an error
        span.set_status(otel.StatusCode.ERROR)
        raise
    finally:
        span.end()
