"""The class of our jobs, for `rq worker --job-class workers.job.BellJob`."""

from memd.workers.job import BellJob, RefusedJob

__all__ = ["BellJob", "RefusedJob"]
