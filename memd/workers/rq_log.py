"""RQ's own log lines: drops the lines about an unreachable server, because `memd.inbox.outage` logs it once."""

from __future__ import annotations

import logging

import redis

AWAY = ("Redis connection timeout", "pubsub thread exiting on")
"""Texts of RQ's lines about a lost server that name no connection error."""


def only_news() -> None:
    """Drop the lines that RQ logs at each attempt to reach a lost server."""
    logging.getLogger("rq.worker").addFilter(is_news)


def is_news(line: logging.LogRecord) -> bool:
    """Whether a line says anything besides that the server is away."""
    values = line.args if isinstance(line.args, tuple) else ()
    error = line.exc_info[1] if line.exc_info else None
    away = any(isinstance(value, redis.ConnectionError | redis.TimeoutError) for value in (*values, error))
    return not (away or any(words in str(line.msg) for words in AWAY))
