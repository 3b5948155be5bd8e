"""The class of our workers, for `rq worker --worker-class workers.worker.BellWorker`."""

from memd.workers.worker import BellWorker, run

__all__ = ["BellWorker", "run"]
