"""memd's errors as those of the SDK."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ToolError

from memd.errors import InboxUnavailable, MemdError


@contextmanager
def tool_errors() -> Iterator[None]:
    """Turn memd's errors into the SDK's, with code, field and limit for the model to read."""
    try:
        yield
    except InboxUnavailable as error:  # the model has no use for the server's address
        raise ToolError(error.for_clients) from None
    except MemdError as error:
        raise ToolError(str(error)) from None
