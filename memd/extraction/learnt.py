"""What an endpoint was found not to take, so that memd asks it without: learnt from its replies, not configured.

A server that speaks a protocol seldom speaks all of it. The endpoint's refusal names the request field; the next
request leaves it out, in the same call. The workers keep the names in the inbox (`memd.workers.learning`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from memd.errors import NoUpdate
from memd.extraction.failures import FORMAT, FieldRefused
from memd.extraction.protocol import Usage
from memd.extraction.reply import ReadReply

T = TypeVar("T")
Call = Callable[[frozenset[str], float], Awaitable[T]]

SCHEMA = "schema"
"""The name for "it takes the schema and does not keep to it": found when a reply is no update, or had to be mended."""

FORMATS = ("output_config", "response_format")
ENFORCED = frozenset({"blocks", "duplicate_key", "filler", "repeated", "stop_reason", "thinking", "tool_call"})
"""Kinds of mending that a reply may need although the schema is enforced; any other one shows that it is not."""

LENGTHS = ("max_tokens", "max_completion_tokens")
"""The request fields that carry the schema and the limit of the reply: one protocol has one name, another has two."""


class Learnt:
    """The names of what one endpoint does not take. Shared by all calls of one event loop."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = frozenset(names)

    def add(self, *names: str) -> None:
        """Note names that the endpoint does not take."""
        self.names = self.names | frozenset(names)

    async def ask(self, fields: Iterable[str], deadline_s: float, call: Call[T]) -> T:
        """Call with the names learnt so far; again without each of `fields` that the endpoint refuses.

        `call` gets the names to leave out, and the seconds that are left. A refusal costs no tokens, so this is no
        retry. A name is noted when the endpoint says so, or fails with it and replies without it. Raises the errors
        of `call`.
        """
        loop, optional = asyncio.get_running_loop(), tuple(fields)
        ends = loop.time() + deadline_s
        tried: frozenset[str] = frozenset()
        while True:
            left_out = self.names | tried
            try:
                result = await call(left_out, max(0.0, ends - loop.time()))
            except FieldRefused as refused:
                group = FORMATS if refused.field == FORMAT else LENGTHS
                name = next((name for name in group if name in optional and name not in left_out), None)
                if name is None:
                    raise refused.final from None
                if refused.sure:
                    self.add(name)
                else:
                    tried |= {name}
            else:
                self.add(*tried)
                return result

    def noting(self, read: Callable[[], tuple[ReadReply, Usage]]) -> tuple[ReadReply, Usage]:
        """Read a reply, and note when it shows that nothing enforced the schema. Raises the errors of `read`."""
        try:
            reply, usage = read()
        except NoUpdate:
            self._nothing_enforces()
            raise
        if not reply.mended.keys() <= ENFORCED:
            self._nothing_enforces()
        return reply, usage

    def _nothing_enforces(self) -> None:
        if not schema_in_prompt(self.names):
            self.add(SCHEMA)


def schema_in_prompt(left_out: frozenset[str]) -> bool:
    """Whether the schema must stand in the prompt, because the endpoint does not enforce it."""
    return not left_out.isdisjoint({SCHEMA, *FORMATS})
