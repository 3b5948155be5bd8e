"""Workers as the inbox knows them: by name in their claims, and in RQ's register.

A name belongs to one process on one host and is never used again, so the claims of a dead worker are known by it. A
supervisor gives each worker a token when it starts it, and so knows its name.
"""

from __future__ import annotations

import os
import socket

import redis

from memd.context import FUNCTIONS_VERSION
from memd.inbox.connection import Call, execute, send
from memd.inbox.decoding import text
from memd.inbox.verbs import BELLS, P, death_record

TOKEN_VARIABLE = "_MEMD_WORKER_TOKEN"  # noqa: S105  (a name; MEMD_* would be read as a setting)

REGISTER = f"rq:workers:{BELLS}"
RQ_KEY = "rq:worker:"


def new_token() -> str:
    """A token that no other worker has."""
    return os.urandom(6).hex()


def worker_name(pid: int, token: str) -> str:
    """The name of a worker process of this host, as its claims carry it."""
    return f"{socket.gethostname()}:{pid}:{token}"


def own_name() -> str:
    """The name of this worker process. Its forked children work under it as well."""
    return worker_name(os.getpid(), os.environ.get(TOKEN_VARIABLE) or new_token())


def registration(name: str) -> str:
    """A name for RQ. A worker registers anew after each outage, so each registration has a name of its own."""
    return f"memd-{name.replace(':', '-')}-{os.urandom(3).hex()}"


def died(name: str) -> Call[int]:
    """The worker is dead for certain: its claims go back at once, marked as suspects. Returns how many."""
    code, sentence, record = death_record()
    return Call(("FCALL", f"memd_died_{FUNCTIONS_VERSION}", 1, P, name, code, sentence, record), int)


def bury_worker(client: redis.Redis, name: str) -> int:
    """Release the claims of a dead worker and remove it from RQ's register. Returns how many claims went back.

    Raises as `connection.send` does. Repeating it does no harm.
    """
    released = send(client, died(name))
    pipeline = client.pipeline(transaction=False)
    for key in registered(client, name):
        pipeline.srem(REGISTER, key)
        pipeline.srem("rq:workers", key)
        pipeline.delete(key)
    execute(pipeline)
    return released


def registered(client: redis.Redis, name: str) -> list[str]:
    """RQ's keys of the registrations of one worker, expired ones included."""
    pipeline = client.pipeline(transaction=False)
    pipeline.smembers(REGISTER)
    prefix = f"{RQ_KEY}memd-{name.replace(':', '-')}-"
    return [key for key in map(text, execute(pipeline)[0]) if key.startswith(prefix)]
