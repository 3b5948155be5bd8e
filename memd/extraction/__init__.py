"""Extraction: new messages and the current document become an update. See `protocol` for the types."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memd.config import ExtractionSettings, dotted
from memd.context import digest
from memd.errors import ConfigError, ExtractionFailed
from memd.extraction import failures
from memd.extraction.learnt import Learnt
from memd.extraction.protocol import Extraction, Extractor, Request, Usage, Writer, WrittenText

if TYPE_CHECKING:
    from memd.extraction.batch.protocol import Batches

__all__ = [
    "Extraction",
    "Extractor",
    "Learnt",
    "Request",
    "Usage",
    "Writer",
    "WrittenText",
    "check_loadable",
    "chosen",
    "open_batches",
    "open_extractor",
    "open_writer",
    "preload",
    "probe",
]

KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""The environment variables with which `auto` is anthropic. Profiles of the SDK on disk are ignored on purpose:
conversations are only sent to an account that the operator named. OPENAI_API_KEY alone chooses nothing: the model's
name has no default there."""

ADDRESS_VARIABLES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}


def chosen(settings: ExtractionSettings) -> str:
    """The extractor that these settings select: anthropic, openai, rules, or the dotted path of one's own.

    `auto` is anthropic when there is a key, else rules.
    """
    if settings.class_ is not None:
        return settings.class_
    if settings.extractor != "auto":
        return settings.extractor
    has_key = settings.api_key is not None and settings.api_key.reveal().strip()
    return "anthropic" if has_key or any(os.environ.get(name, "").strip() for name in KEY_VARIABLES) else "rules"


def endpoint(settings: ExtractionSettings) -> str:
    """The name of the endpoint and model in Redis keys: calls that fail together share a circuit breaker."""
    return digest("endpoint", chosen(settings), _base_url(settings), settings.model, size=8)


def address(settings: ExtractionSettings) -> str:
    """The name of the endpoint alone in Redis keys: a batch is collected from the endpoint it was sent to."""
    return digest("address", chosen(settings), _base_url(settings), size=8)


def _base_url(settings: ExtractionSettings) -> str:
    return settings.base_url or os.environ.get(ADDRESS_VARIABLES.get(chosen(settings), "ANTHROPIC_BASE_URL"), "")


def open_batches(settings: ExtractionSettings, largest: int, learnt: Learnt | None = None) -> Batches | None:
    """The batches of the endpoint, with up to `largest` requests each; None for an extractor without them.

    Raises ConfigError.
    """
    if chosen(settings) != "anthropic":
        return None
    from memd.extraction.batch.api import AnthropicBatches  # noqa: PLC0415 - imports httpx2

    return AnthropicBatches(settings, largest, learnt or Learnt())


def open_extractor(settings: ExtractionSettings, concurrency: int = 32, learnt: Learnt | None = None) -> Extractor:
    """The extractor that these settings select, for up to `concurrency` calls at once. Raises ConfigError.

    `learnt`: what its endpoint was found not to take, shared with the caller. Imports HTTP (a tenth of a second of
    CPU, 12 MB) or OpenAI's SDK (a second, 60 MB) only when that extractor needs it.
    """
    if settings.class_ is not None:
        return _own(settings, concurrency)
    if chosen(settings) == "rules":
        from memd.extraction.offline.extractor import RulesExtractor  # noqa: PLC0415 - only workers need its tables

        return RulesExtractor()
    extractor: Extractor = _protocol(settings).open_extractor(settings, concurrency, learnt or Learnt())
    return extractor


def open_writer(settings: ExtractionSettings, learnt: Learnt | None = None) -> Writer | None:
    """What writes texts with the model of these settings, for one call at a time; None where there is no model.

    An extractor of one's own writes if it has the methods of a Writer. Imports as above. Raises ConfigError, and
    ModelUnavailable without a key.
    """
    if settings.class_ is not None:
        own = _own(settings, 1)
        return own if isinstance(own, Writer) else None
    if chosen(settings) == "rules":
        return None
    writer: Writer = _protocol(settings).open_writer(settings, learnt or Learnt())
    return writer


def _own(settings: ExtractionSettings, concurrency: int) -> Extractor:
    """The extractor that `extraction.class` names: its class is called with the settings and the concurrency."""
    extractor = dotted.make("extraction.class", settings.class_ or "", settings, concurrency)
    if not isinstance(extractor, Extractor):
        raise ConfigError("setting extraction.class: the class named there is not an extractor")
    return extractor


def _protocol(settings: ExtractionSettings) -> Any:
    """The module that speaks the endpoint's protocol. Raises ConfigError when its SDK is not installed."""
    if chosen(settings) == "openai":
        from memd.extraction import openai  # noqa: PLC0415 - imports the SDK

        return openai
    from memd.extraction import anthropic  # noqa: PLC0415 - imports httpx2

    return anthropic


async def probe(settings: ExtractionSettings, deadline_s: float) -> ExtractionFailed | None:
    """Ask the endpoint of a model to describe the model. Returns the failure, or None. Costs no tokens.

    Raises ConfigError.
    """
    protocol = _protocol(settings)
    clients = protocol.open_clients(settings, 1)
    if clients is None:
        return failures.unreached("no_key")
    try:
        await protocol.describe(clients, settings.model, deadline_s)
    except ExtractionFailed as failure:
        return failure
    finally:
        await clients.aclose()
    return None


def check_loadable(settings: ExtractionSettings) -> None:
    """Refuse an extractor that no worker could load, without importing what it calls with. Raises ConfigError."""
    if settings.class_ is not None:
        _own(settings, concurrency=1)
    elif chosen(settings) == "openai" and find_spec("openai") is None:
        raise ConfigError(failures.NO_OPENAI_SDK)


def preload(settings: ExtractionSettings) -> None:
    """Import the extractor's modules, and read what it trusts. A worker's children share what it has before it forks.

    Raises ConfigError for an address or key that no request can carry, and for an extractor that cannot be loaded.
    """
    match chosen(settings):
        case "anthropic":  # opens no connections, unlike the extractor
            open_batches(settings, largest=1)
        case "openai":
            _protocol(settings).check(settings)
        case _:
            open_extractor(settings)
            return
    from memd.extraction import transport  # noqa: PLC0415 - imports httpx2, as the extractor does

    transport.tls()
