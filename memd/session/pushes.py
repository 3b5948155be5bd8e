"""The turns of a session in pushes of a size that the inbox takes whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memd.config import ClientSettings
from memd.push.limits import CHAR_BYTES, FIELDS_BYTES
from memd.session.chat import ChatTurn


def batches(turns: Sequence[ChatTurn], limits: ClientSettings) -> Iterator[list[ChatTurn]]:
    """The turns in their order. A batch with more than one turn is within the limits, so that none is left out."""
    batch: list[ChatTurn] = []
    size = 0
    for turn in turns:
        more = min(len(turn.text), limits.max_message_chars) * CHAR_BYTES + FIELDS_BYTES
        if batch and (size + more > limits.max_push_bytes or len(batch) >= limits.max_messages):
            yield batch
            batch, size = [], 0
        batch.append(turn)
        size += more
    if batch:
        yield batch
