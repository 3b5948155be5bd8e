"""The async half of a class that works in files or waits: each method runs in a thread, on the sync object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


class HasSync(Protocol[S_co]):
    """An async object that has the sync one at hand."""

    @property
    def _sync(self) -> S_co: ...


def in_thread(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[HasSync[S], P], Coroutine[Any, Any, R]]:
    """The async half of a method: runs it in a thread, on the sync object. Same parameters, same docstring.

    The context variables of the caller are set in the thread. A cancelled call ends the wait, not the work.
    """

    @wraps(method)
    async def run(self: HasSync[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self._sync, *args, **kwargs)

    return run
