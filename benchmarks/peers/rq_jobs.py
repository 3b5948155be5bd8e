"""RQ alone: its jobs, a debounce by hand, its scheduler."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from redis import Redis
from rq import Queue, Worker
from rq.exceptions import NoSuchJobError
from rq.job import Job

LATENESS = "bench:lateness"
KEPT = "bench:kept"
"""Facts that jobs kept, each as JSON: [user, text]."""


def nothing(payload: str) -> None:
    """An empty job."""


def debounced(queue: Queue, key: int, payload: str) -> None:
    """Delay the job of a key again: delete the waiting job, schedule a new one."""
    with suppress(NoSuchJobError):  # the first push of this key
        Job.fetch(f"key-{key}", connection=queue.connection).delete()
    queue.enqueue_in(timedelta(seconds=30), nothing, payload, job_id=f"key-{key}")


def note(due: float) -> None:
    """A job with a due time: records its lateness in seconds (negative: early)."""
    client: Any = Redis.from_url(os.environ["BENCH_URL"])
    client.rpush(LATENESS, time.time() - due)


def wait(seconds: float) -> None:
    """A job that waits as for a model."""
    time.sleep(seconds)


def extract(user_id: str, prompt: str) -> None:
    """memd's own request by the SDK, as a single job makes it: a client, a call, its facts kept in the list KEPT.

    Raises ValueError, so that the job fails, when the reply is not complete.
    """
    import anthropic

    client = anthropic.Anthropic(api_key="bench", base_url=os.environ["BENCH_MODEL"], max_retries=0)
    options = json.loads(os.environ["BENCH_OPTIONS"])
    reply = client.messages.create(**options, messages=[{"role": "user", "content": prompt}])
    if reply.stop_reason != "end_turn" or not reply.content:
        raise ValueError(f"the model's reply is not complete: {reply.stop_reason}")
    keeper: Any = Redis.from_url(os.environ["BENCH_URL"])
    for fact in json.loads(reply.content[0].text)["newFacts"]:
        keeper.rpush(KEPT, json.dumps([user_id, fact["content"]]))


def succeeded(connection: Redis) -> int:
    """Jobs that RQ's workers have completed without an error since they started."""
    return sum(worker.successful_job_count for worker in Worker.all(connection=connection))
