"""memd: the memory daemon for LLM agents. `from memd import Memd` is all an app needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memd.client import AsyncMemd, Memd

__all__ = ["AsyncMemd", "Memd", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the clients on first use, so that `import memd` costs a script nothing."""
    if name in {"Memd", "AsyncMemd"}:
        from memd import client  # noqa: PLC0415  (lazy on purpose: see the docstring)

        return getattr(client, name)
    raise AttributeError(f"module 'memd' has no attribute {name!r}")
