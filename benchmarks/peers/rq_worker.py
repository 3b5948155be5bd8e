"""RQ's forking worker with the SDK imported before the first fork, as RQ's documentation advises for heavy modules.

With `-n` RQ's own pool of so many workers, which are forked from this process and share what it has imported.
"""

from __future__ import annotations

import argparse

import anthropic  # noqa: F401  (imported for the children)
from redis import Redis
from rq import Queue, Worker
from rq.worker_pool import WorkerPool


def main() -> None:
    """`python -m benchmarks.peers.rq_worker -u URL [-n WORKERS] QUEUE`"""
    parser = argparse.ArgumentParser()
    parser.add_argument("-u")
    parser.add_argument("-n", type=int, default=0)
    parser.add_argument("queue")
    options = parser.parse_args()
    connection = Redis.from_url(options.u)
    if options.n:
        WorkerPool([options.queue], connection, num_workers=options.n).start(logging_level="WARNING")
        return
    Worker([Queue(options.queue, connection=connection)], connection=connection).work(logging_level="WARNING")


if __name__ == "__main__":
    main()
