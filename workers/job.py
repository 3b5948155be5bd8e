"""The bell: the one job there is. Whatever stands in a job's hash, only the drain can come of it.

RQ imports and calls what a job names, and any account that can write `rq:*` can name anything. So this class reads
nothing of a stored job but whether it is byte for byte our bell; everything else is fixed here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus

from memd.inbox.bell import DATA, JOB_TIMEOUT_S, SHORT_TTL_S
from memd.inbox.verbs import BELLS

_MAX_DATA = 4_096


class RefusedJob(Exception):
    """A job in our queue that is not our bell; it fails like any job, and nothing it names is run."""


def refuse(*_: object, **__: object) -> None:
    """Stands in for whatever a foreign job wanted to run."""
    raise RefusedJob("not a bell of memd")


class BellJob(Job):
    """A job that is either our bell or refused; it never raises while it is loaded, and has no callbacks."""

    is_bell = False

    def restore(self, raw_data: Mapping[Any, Any]) -> Any:
        """Take from the stored hash only whether it is our bell."""
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
        if not self.is_bell:
            return refuse
        from workers.drain import drain  # noqa: PLC0415  (the scheduler rings bells and must not load the drain)

        return drain


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _inflate(data: bytes) -> bytes:
    """The stored job data, inflated up to a cap; what is not ours need not be readable."""
    if len(data) > _MAX_DATA:
        return b""
    try:
        return zlib.decompressobj().decompress(data, _MAX_DATA)
    except zlib.error:  # plain JSON, or rubbish: either is compared with our bell as it is
        return data
