"""RQ's own log lines: those about a server that is away are dropped, as `memd.inbox.outage` says it once."""

from __future__ import annotations

import logging

import redis

AWAY = ("Redis connection timeout", "pubsub thread exiting on")
"""In RQ's lines about a lost server that name no error of the connection: a worker that gave it up closes the rest."""


def only_news() -> None:
    """Drop the lines that RQ writes at each try to reach a lost server."""
    logging.getLogger("rq.worker").addFilter(is_news)


def is_news(line: logging.LogRecord) -> bool:
    """Whether a line says more than that the server is away."""
    values = line.args if isinstance(line.args, tuple) else ()
    error = line.exc_info[1] if line.exc_info else None
    away = any(isinstance(value, redis.ConnectionError | redis.TimeoutError) for value in (*values, error))
    return not (away or any(words in str(line.msg) for words in AWAY))
