"""The function that a bell names: `workers.drain.drain`."""

from memd.workers.drain import drain

__all__ = ["drain"]
