"""Repair: a reply that is no update gets one more request, which names the error. A later claim tries once more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from memd.errors import NoUpdate
from memd.workers.steps import Work

T = TypeVar("T")


async def repaired(
    work: Work, ask: Callable[[Work], Awaitable[T]], note: Callable[[Work], Awaitable[None]] | None = None
) -> T:
    """The result of `ask`, at the second try where the first reply is no update.

    `note` keeps the count of such replies before the next call, which may be this worker's last. Raises the errors of
    both; NoUpdate when this claim's replies, or all, are used up.
    """
    if work.part.progress.is_used_up(work.names):  # a worker died before it could say so
        raise NoUpdate("bad_reply", "no reply to these messages was a valid update")
    while True:
        try:
            return await ask(work)
        except NoUpdate as error:
            again = work.part.progress.count_formless(work.names)
            if note is not None:
                await note(work)
            if not again:
                raise
            work = replace(work, repair=str(error))
