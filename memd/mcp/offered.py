"""A tool as a host is told of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from mcp_types import ToolAnnotations


class OfferedTool(NamedTuple):
    """A tool. `title`: what a host calls it before people; `hints`: whether it only reads, what it may destroy."""

    run: Callable[..., Any]
    title: str
    hints: ToolAnnotations

    @property
    def description(self) -> str:
        """What the model is told: the docstring, without the indentation that a prompt would pay for."""
        return inspect.getdoc(self.run) or ""
