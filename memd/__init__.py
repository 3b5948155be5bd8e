"""memd: the memory daemon for LLM agents. An app needs only `from memd import Memd`."""

from __future__ import annotations

TYPE_CHECKING = False
"""Not imported: `python -m memd` executes this file with the current folder still first on the path."""

if TYPE_CHECKING:
    from typing import Any

    from memd.client import AsyncMemd, Memd

__all__ = ["AsyncMemd", "Memd", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the clients on first use: `import memd` itself is free, and `memd --help` needs no client."""
    if name in {"Memd", "AsyncMemd"}:
        from memd import client  # noqa: PLC0415  (lazy on purpose: 100 ms, see the docstring)

        return getattr(client, name)
    raise AttributeError(f"module 'memd' has no attribute {name!r}")
