"""The interface of an endpoint's batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from memd.extraction.batch.results import BatchResult
from memd.extraction.protocol import Request

BatchState = Literal["in_progress", "ended", "gone"]


class Batches(Protocol):
    """The batches of an endpoint: many requests sent at once, answered within a day, for half the price.

    Every method but `params` and `aclose` raises ExtractionFailed, like a call.
    """

    def params(self, request: Request) -> dict[str, Any]:
        """The body of one extraction's request in a batch."""
        ...

    async def create(self, requests: Sequence[tuple[str, dict[str, Any]]]) -> str:
        """Send (id, params) pairs as one batch; returns the id of the batch."""
        ...

    async def state(self, batch_id: str) -> BatchState:
        """The state of a batch; `gone` when the endpoint no longer has it or its results."""
        ...

    async def results(self, batch_id: str) -> list[BatchResult]:
        """The results of a batch that has ended."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Stop processing the batch."""
        ...

    async def delete(self, batch_id: str) -> None:
        """Delete a batch that has ended, with its requests and results, at the endpoint."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
