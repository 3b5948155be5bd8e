"""Extraction: from new messages and the document as it is to an update. See `protocol` for the words."""

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
"""Where a key is looked for when the settings have none. On-disk profiles of the SDK are left alone on purpose: text
goes to an account that somebody named, never to one that happened to be found."""


def chosen(settings: ExtractionSettings) -> Literal["anthropic", "rules"]:
    """Which extractor these settings mean: `auto` is anthropic when there is a key, else rules."""
    if settings.extractor != "auto":
        return settings.extractor
    has_key = settings.api_key is not None and settings.api_key.reveal().strip()
    return "anthropic" if has_key or any(os.environ.get(name, "").strip() for name in KEY_VARIABLES) else "rules"


def endpoint(settings: ExtractionSettings) -> str:
    """What stands for the endpoint and model in Redis names: calls that fail together share a breaker by it."""
    base_url = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL", "")
    return digest("endpoint", chosen(settings), base_url, settings.model, size=8)


def address(settings: ExtractionSettings) -> str:
    """What stands for the endpoint alone, whatever the model: batches are asked for where they were sent."""
    return digest("address", chosen(settings), settings.base_url or os.environ.get("ANTHROPIC_BASE_URL", ""), size=8)


def open_batches(settings: ExtractionSettings, largest: int) -> Batches | None:
    """The endpoint's batches of up to `largest` requests; None for the offline extractor. Raises ConfigError."""
    if chosen(settings) == "rules":
        return None
    from memd.extraction.batch.api import AnthropicBatches  # noqa: PLC0415 - imports the SDK

    return AnthropicBatches(settings, largest)


def open_extractor(settings: ExtractionSettings, concurrency: int = 32) -> Extractor:
    """The extractor of these settings, for up to `concurrency` calls at once. Raises ConfigError.

    The SDK (a second of CPU, 60 MB) is imported only here and only when it is used.
    """
    if chosen(settings) == "rules":
        from memd.extraction.offline.extractor import RulesExtractor  # noqa: PLC0415 - its tables are needed in workers only

        return RulesExtractor()
    from memd.extraction.anthropic import AnthropicExtractor  # noqa: PLC0415 - imports the SDK

    return AnthropicExtractor(settings, concurrency)


def preload(settings: ExtractionSettings) -> None:
    """Import what `open_extractor` will need; in a worker's parent, so that its forked children have it already.

    Raises ConfigError for what can never be sent: an address or a key that is none.
    """
    if chosen(settings) == "rules":
        import memd.extraction.offline.extractor  # noqa: PLC0415 - as above
    else:
        import memd.extraction.batch.api  # noqa: F401, PLC0415 - as above
        from memd.extraction.anthropic import check  # noqa: PLC0415 - as above

        check(settings)
