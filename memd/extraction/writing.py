"""Text that the configured model writes freely, without a schema, such as the summary of a session.

It goes to the same endpoint as an extraction, with the same client, options, deadline and failures.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from memd.errors import ContentRefused, Truncated
from memd.extraction import envelope, failures, openai_envelope
from memd.extraction.learnt import Learnt
from memd.extraction.protocol import WrittenText


class _Closing(Protocol):
    """The clients of an SDK."""

    async def aclose(self) -> None: ...


Send = Callable[[str, str, frozenset[str], float], Awaitable[tuple[bytes, str]]]
"""Sends instructions and prompt, with names to leave out and the seconds left: body and content type of the reply."""


class ModelWriter:
    """Texts by a model behind one of the two protocols."""

    def __init__(self, clients: _Closing, send: Send, optional: Sequence[str], learnt: Learnt) -> None:
        """`optional`: the request fields that the endpoint may refuse."""
        self._clients, self._send, self._optional, self._learnt = clients, send, optional, learnt

    async def write(self, instructions: str, prompt: str, deadline_s: float) -> WrittenText:
        """One call to the model, and one without each field that it refuses."""

        async def call(left_out: frozenset[str], left_s: float) -> tuple[bytes, str]:
            return await self._send(instructions, prompt, left_out, left_s)

        body = envelope.parse(*await self._learnt.ask(self._optional, deadline_s, call))
        return read_text(openai_envelope.as_message(body) if "choices" in body else body)

    async def aclose(self) -> None:
        await self._clients.aclose()


def read_text(body: Mapping[str, Any]) -> WrittenText:
    """The text of a response of the Messages API. Raises ExtractionFailed, with `usage` if the endpoint counted it."""
    content = body.get("content")
    if not isinstance(content, list):
        raise failures.unavailable("not_the_api")
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type", "text") == "text"]
    text = "".join(text for text in texts if isinstance(text, str)).strip()
    usage, failure = envelope.usage(body.get("usage")), failures.from_stop_reason(body.get("stop_reason"))
    is_cut = isinstance(failure, Truncated)
    if text and (failure is None or is_cut):
        return WrittenText(text, usage, is_cut)
    failure = failure or ContentRefused("bad_reply", "the answer has no text")
    failure.usage = usage
    raise failure
