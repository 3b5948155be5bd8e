"""The names of all log events, and the setup of logging.

A log line has codes, sizes, times and hashed ids; never text, ids, keys or local variables.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from enum import StrEnum
from functools import cache
from typing import Any, TextIO

import orjson


class Event(StrEnum):
    """All events, in the order of the flow."""

    PUSH_REFUSED = "push_refused"
    PUSH_DELAYED = "push_delayed"
    RAW_PUSH_DEAD = "raw_push_dead"
    RAW_PUSH_SKIPPED = "raw_push_skipped"
    RAW_LIST_UNREAD = "raw_list_unread"

    CONFIG_NOT_READ = "config_not_read"

    SERVER_READY = "server_ready"
    SERVER_WAITS = "server_waits"
    SERVER_CUT_OFF = "server_cut_off"
    SERVER_UNFIT = "server_unfit"
    SERVER_EMPTIED = "server_emptied"
    SERVER_ADOPTED = "server_adopted"
    SETTINGS_EDITED = "settings_edited"
    CLOCK_SET_BACK = "clock_set_back"
    PART_STARTED = "part_started"
    PART_DIED = "part_died"
    PART_WAITS = "part_waits"
    PART_RECOVERED = "part_recovered"
    PART_KILLED = "part_killed"
    UP_READY = "up_ready"
    UP_STOPPING = "up_stopping"
    UP_STOPPED = "up_stopped"
    SHARED_STORE = "shared_store"
    STORE_NOT_SYNCHRONOUS = "store_not_synchronous"
    SAID_KEPT = "said_kept"

    SCHEDULER_STARTED = "scheduler_started"
    SCHEDULER_STOPPED = "scheduler_stopped"
    DUTY_FAILED = "duty_failed"
    LEASE_EXPIRED = "lease_expired"
    WORKER_DIED = "worker_died"
    BUDGET_REACHED = "budget_reached"
    BELL_RUNG = "bell_rung"
    BELL_REFUSED = "bell_refused"
    OUTAGE_BEGAN = "outage_began"
    OUTAGE_ENDED = "outage_ended"

    WORKER_STARTED = "worker_started"
    WORKER_STOPPED = "worker_stopped"
    DRAIN_STARTED = "drain_started"
    DRAIN_ENDED = "drain_ended"
    DRAIN_DIED = "drain_died"
    JOB_REFUSED = "job_refused"

    MODEL_OUTAGE_BEGAN = "model_outage_began"
    MODEL_OUTAGE_ENDED = "model_outage_ended"
    ENDPOINT_LEARNT = "endpoint_learnt"
    DEFERRED = "deferred"
    BATCH_SENT = "batch_sent"
    BATCH_ENDED = "batch_ended"
    BATCH_GIVEN_UP = "batch_given_up"
    BATCH_FAILED = "batch_failed"
    STORED = "stored"
    SKIPPED = "skipped"
    RELEASED = "released"
    BURIED = "buried"
    HALVED = "halved"
    CLAIM_LOST = "claim_lost"
    FORGOTTEN = "forgotten"
    FORGETTING_WAITS = "forgetting_waits"
    VECTORS_MADE = "vectors_made"
    VECTORS_DELAYED = "vectors_delayed"

    METRICS_READY = "metrics_ready"
    METRICS_FAILED = "metrics_failed"
    HTTP_READY = "http_ready"
    HTTP_STOPPED = "http_stopped"
    HTTP_FAILED = "http_failed"
    MCP_READY = "mcp_ready"
    TOKENS_UNREADABLE = "tokens_unreadable"

    INJECT_FAILED = "inject_failed"
    SESSION_FAILED = "session_failed"
    SUMMARY_REFUSED = "summary_refused"
    DOCUMENT_DAMAGED = "document_damaged"
    CONFLICT = "conflict"
    LIBRARY_LOG = "library_log"


@cache
def _structlog() -> Any:
    import structlog  # noqa: PLC0415  (30 ms: most commands of the CLI log nothing)

    return structlog


def setup(level: str = "info", style: str = "auto", stream: TextIO | None = None) -> None:
    """Send structlog and the standard library's loggers to one stream, one line per event.

    `style`: json, pretty, or auto (pretty on a terminal). Exceptions are logged without local variables.
    """
    structlog = _structlog()
    stream = stream or sys.stderr
    pretty = style == "pretty" or (style == "auto" and stream.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render = _renderers(pretty)
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _library_line],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
            pass_foreign_args=True,
        )
    )
    lowest = logging.INFO if level == "debug" else max(logging.WARNING, getattr(logging, level.upper()))
    handler.setLevel(lowest)  # RQ gives its own logger a level, which goes before the root's
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(lowest)


def _renderers(pretty: bool) -> list[Any]:
    if pretty:
        return [_shorten_exception, _structlog().dev.ConsoleRenderer()]
    return [_shorten_exception, lambda _, __, event: orjson.dumps(event, default=repr).decode()]


def _shorten_exception(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Keep the type and place of an exception and drop its message, which may quote a user's text."""
    info = event.pop("exc_info", None)
    if not info:
        return event
    error = info if isinstance(info, BaseException) else sys.exc_info()[1]
    event["error"] = type(error).__name__
    trace = error.__traceback__ if error else None
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_qualname}:{trace.tb_lineno}" if hasattr(code, "co_qualname") else code.co_name)
        trace = trace.tb_next
    event["at"] = places[-6:]
    return event


def _library_line(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A line of a library such as RQ: its logger, its level, its place in the code, and its template.

    Never its arguments. A line without arguments may be a finished text with somebody's words in it: its place is all
    that is logged of it.
    """
    record: logging.LogRecord = event["_record"]
    if event.pop("positional_args", None):
        event["said"] = str(record.msg)
    event["library"], event["place"] = record.name, f"{record.module}.{record.funcName}:{record.lineno}"
    event["event"] = Event.LIBRARY_LOG
    return event


def logger(**bound: Any) -> Any:
    """A logger that adds these values to each of its lines."""
    return _structlog().get_logger(**bound)
