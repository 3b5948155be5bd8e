"""The bell: the one job that RQ carries, "there is work". It names its function by text and says nothing else.

The scheduler puts bells into the queue, `memd.workers.job` loads them. Name, argument and limits of the
job are fixed here, as RQ stores them in Redis.
"""

from __future__ import annotations

from redis import Redis
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from memd.context import FUNCTIONS_VERSION
from memd.inbox.verbs import BELLS

FUNCTION = "workers.drain.drain"
ARGUMENT = str(FUNCTIONS_VERSION)
DATA: bytes = JSONSerializer.dumps((FUNCTION, None, (ARGUMENT,), {}))  # type: ignore[no-untyped-call]  # RQ's gap
"""What RQ stores of a bell: the function, no instance, and its arguments."""

JOB_TIMEOUT_S = 300
"""Longer than a drain's slice plus the model's deadline; RQ ends a drain that hangs past it."""

SHORT_TTL_S = 60
"""How long RQ keeps a bell that failed."""


def bell_queue(connection: Redis, job_class: type[Job] = Job) -> Queue:
    """RQ's queue of bells. The connection must be RQ's own, because RQ changes its time-outs."""
    return Queue(BELLS, connection=connection, job_class=job_class, serializer=JSONSerializer)


def ring(queue: Queue) -> None:
    """Put one bell into the queue."""
    queue.enqueue_call(
        FUNCTION,
        args=(ARGUMENT,),
        timeout=JOB_TIMEOUT_S,
        result_ttl=0,
        failure_ttl=SHORT_TTL_S,
        description="bell",
    )
