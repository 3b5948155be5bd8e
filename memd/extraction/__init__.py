"""Extraction: new messages and the current document become an update. See `protocol` for the types."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from memd.config import ExtractionSettings
from memd.context import digest
from memd.extraction.protocol import Extraction, Extractor, Request, Usage

if TYPE_CHECKING:
    from memd.extraction.batch.protocol import Batches

__all__ = [
    "Extraction",
    "Extractor",
    "Request",
    "Usage",
    "chosen",
    "open_batches",
    "open_extractor",
    "preload",
]

KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""The environment variables used when the settings contain no key. Profiles of the SDK on disk are ignored on purpose:
conversations are only sent to an account that the operator named."""


def chosen(settings: ExtractionSettings) -> Literal["anthropic", "rules"]:
    """The extractor that these settings select: `auto` is anthropic when there is a key, else rules."""
    if settings.extractor != "auto":
        return settings.extractor
    has_key = settings.api_key is not None and settings.api_key.reveal().strip()
    return "anthropic" if has_key or any(os.environ.get(name, "").strip() for name in KEY_VARIABLES) else "rules"


def endpoint(settings: ExtractionSettings) -> str:
    """The name of the endpoint and model in Redis keys: calls that fail together share a circuit breaker."""
    base_url = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL", "")
    return digest("endpoint", chosen(settings), base_url, settings.model, size=8)


def address(settings: ExtractionSettings) -> str:
    """The name of the endpoint alone in Redis keys: a batch is collected from the endpoint it was sent to."""
    return digest("address", chosen(settings), settings.base_url or os.environ.get("ANTHROPIC_BASE_URL", ""), size=8)


def open_batches(settings: ExtractionSettings, largest: int) -> Batches | None:
    """The batches of the endpoint, with up to `largest` requests each; None for the offline extractor.

    Raises ConfigError.
    """
    if chosen(settings) == "rules":
        return None
    from memd.extraction.batch.api import AnthropicBatches  # noqa: PLC0415 - imports the SDK

    return AnthropicBatches(settings, largest)


def open_extractor(settings: ExtractionSettings, concurrency: int = 32) -> Extractor:
    """The extractor that these settings select, for up to `concurrency` calls at once. Raises ConfigError.

    Imports the SDK (a second of CPU, 60 MB) only when that extractor needs it.
    """
    if chosen(settings) == "rules":
        from memd.extraction.offline.extractor import RulesExtractor  # noqa: PLC0415 - only workers need its tables

        return RulesExtractor()
    from memd.extraction.anthropic import AnthropicExtractor  # noqa: PLC0415 - imports the SDK

    return AnthropicExtractor(settings, concurrency)


def preload(settings: ExtractionSettings) -> None:
    """Import the extractor's modules. A worker calls it before it forks, so that its children share them.

    Raises ConfigError for an address or key that no request can carry.
    """
    if chosen(settings) == "rules":
        open_extractor(settings)
    else:  # opens no connections, unlike the extractor
        open_batches(settings, largest=1)
