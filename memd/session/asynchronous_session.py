"""The session of an app with an event loop: what reads, writes or waits runs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

from memd.asynchronous import HasSync, in_thread
from memd.session.chat import ChatTurn
from memd.session.conversation import Session
from memd.session.of_client import OpensSessions
from memd.session.parts import Part

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def here(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[HasSync[S], P], R]:
    """A method that only works in memory, on the sync object. Same parameters, same docstring."""

    @wraps(method)
    def run(self: HasSync[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(self._sync, *args, **kwargs)

    return run


class AsyncSession:
    """A session as `AsyncMemd.session` opens it: the methods of `Session`, of which those with files are awaited."""

    def __init__(self, session: Session) -> None:
        self._sync = session

    user = here(Session.user)
    assistant = here(Session.assistant)
    system = here(Session.system)
    tool_use = here(Session.tool_use)
    tool_result = here(Session.tool_result)
    add = here(Session.add)
    delete = here(Session.delete)
    clear = here(Session.clear)
    window = here(Session.window)
    add_component = here(Session.add_component)
    state = here(Session.state)

    load_if_exists = in_thread(Session.load_if_exists)
    save = in_thread(Session.save)
    compact = in_thread(Session.compact)
    reload = in_thread(Session.reload)
    checkpoint = in_thread(Session.checkpoint)
    restore = in_thread(Session.restore)
    checkpoints = in_thread(Session.checkpoints)
    prune = in_thread(Session.prune)

    @property
    def messages(self) -> tuple[ChatTurn, ...]:
        """The turns of the window, oldest first; they cannot be changed."""
        return self._sync.messages

    @property
    def waiting(self) -> int:
        """How many turns are not pushed yet."""
        return self._sync.waiting

    @property
    def business_state(self) -> str:
        """The phase of the task in the app's own words."""
        return self._sync.business_state

    @business_state.setter
    def business_state(self, words: str) -> None:
        self._sync.business_state = words

    @property
    def business_part(self) -> Part:
        """The state of the task as a part of the system prompt, for `assemble`."""
        return self._sync.business_part


async def opened(
    memd: OpensSessions, thread_id: str, user_id: str, agent_name: str, user_name: str | None
) -> AsyncSession:
    """The session that a sync client opens. Raises as `OpensSessions.session`."""
    open_it = partial(memd.session, thread_id, user_id=user_id, agent_name=agent_name, user_name=user_name)
    return AsyncSession(await asyncio.to_thread(open_it))
