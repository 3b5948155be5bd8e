"""The spans of claims, or none: while `tracing.enabled` is off, nothing of OpenTelemetry is loaded."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, Protocol, TypeVar

from memd.config import Settings
from memd.errors import ConfigError
from memd.inbox.claim import Claim
from memd.workers.outcome import Outcome

T = TypeVar("T")

NO_SDK = "tracing.enabled is on, and what it needs is not installed: pip install 'memd[tracing]'"


class ClaimSpan(Protocol):
    """The span of one claim."""

    def step(self, name: str, work: Awaitable[T]) -> Awaitable[T]:
        """One step of the claim's life, in a span of its own."""

    def end_with(self, outcome: Outcome) -> None:
        """Say how the claim ends."""


class Tracing(Protocol):
    """Makes the spans of claims."""

    def of(self, claim: Claim) -> AbstractContextManager[ClaimSpan]:
        """The span of a claim, as long as the block."""


class _NoSpan:
    def step(self, name: str, work: Awaitable[T]) -> Awaitable[T]:
        return work

    def end_with(self, outcome: Outcome) -> None:
        return


class _Untraced:
    _none = nullcontext(_NoSpan())

    def of(self, claim: Claim) -> AbstractContextManager[ClaimSpan]:
        return self._none


UNTRACED: Tracing = _Untraced()


def open_tracing(settings: Settings) -> Tracing:
    """The spans that these settings ask for. Raises ConfigError."""
    if not settings.tracing.enabled:
        return UNTRACED
    tracing: Tracing = _module("claim_spans").ClaimSpans()
    return tracing


def exporting(settings: Settings) -> AbstractContextManager[None]:
    """Export the spans of this process, as long as the block. Raises ConfigError."""
    if not settings.tracing.enabled:
        return nullcontext()
    exported: AbstractContextManager[None] = _module("span_export").exporting()
    return exported


def preload(settings: Settings) -> None:
    """Import what tracing needs, so that a worker's children share it. Raises ConfigError."""
    if settings.tracing.enabled:
        _module("claim_spans")
        _module("span_export")


def _module(name: str) -> Any:
    try:
        return import_module(f"memd.workers.{name}")
    except ImportError:
        raise ConfigError(NO_SDK) from None
