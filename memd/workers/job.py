"""The bell, which is the only job that workers run. Whatever function a stored job names, only the drain can run.

RQ imports and calls the function that a job names, and any account that can write `rq:*` can name anything. So this
class only checks whether a stored job is byte for byte our bell; everything else is fixed here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus

from memd.inbox.bell import DATA, JOB_TIMEOUT_S, SHORT_TTL_S
from memd.inbox.verbs import BELLS
from memd.workers.drain import drain

_MAX_DATA = 4_096


class RefusedJob(Exception):
    """A job in our queue is not our bell: it fails like any job, and the function it names does not run."""


def refuse(*_: object, **__: object) -> None:
    """Runs in place of the function that a foreign job names. Raises RefusedJob."""
    raise RefusedJob("not a bell of memd")


class BellJob(Job):
    """A job that is either our bell or refused. Loading never raises, and there are no callbacks."""

    is_bell = False

    def restore(self, raw_data: Mapping[Any, Any]) -> Any:
        """Check whether the stored hash is our bell, and read nothing else from it."""
        fields = {_text(name): value for name, value in raw_data.items()}
        if "data" not in fields:
            raise NoSuchJobError("a job without data")
        self.is_bell = _inflate(fields["data"]) == DATA
        self.data = DATA
        self.origin = BELLS
        self.description = "bell"
        self.timeout = JOB_TIMEOUT_S
        self.result_ttl = 0
        self.failure_ttl = SHORT_TTL_S
        self._status = JobStatus.QUEUED
        self._dependency_ids = []
        self.meta = {}

    @property
    def func(self) -> Callable[..., Any]:
        """The drain for our bell, a refusal for anything else."""
        return drain if self.is_bell else refuse


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _inflate(data: bytes) -> bytes:
    """The stored job data, inflated up to a cap. Data of foreign jobs is returned as it is."""
    if len(data) > _MAX_DATA:
        return b""
    try:
        return zlib.decompressobj().decompress(data, _MAX_DATA)
    except zlib.error:  # plain JSON or garbage: compared with our bell as it is
        return data
