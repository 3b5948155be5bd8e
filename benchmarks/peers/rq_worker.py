"""RQ's forking worker with the SDK imported before the first fork, as RQ's documentation advises for heavy modules."""

from __future__ import annotations

import argparse

import anthropic  # noqa: F401  (imported for the children)
from redis import Redis
from rq import Queue, Worker


def main() -> None:
    """`python -m benchmarks.peers.rq_worker -u URL QUEUE`"""
    parser = argparse.ArgumentParser()
    parser.add_argument("-u")
    parser.add_argument("queue")
    options = parser.parse_args()
    connection = Redis.from_url(options.u)
    Worker([Queue(options.queue, connection=connection)], connection=connection).work(logging_level="WARNING")


if __name__ == "__main__":
    main()
