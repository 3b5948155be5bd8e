"""What stood before the new messages: context for the model, which proves nothing.

Known messages of the claim itself, and for producers that push turn by turn the last turns of the thread in the said
layer. A bare yes is an answer only with its question as the turn directly before it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from msgspec import structs

from memd.context import Message, estimate_tokens
from memd.extraction.prompt import ASSISTANT_CHARS
from memd.memory.document import Document, ledger_of, said_file_of
from memd.memory.said.turns import Said
from memd.push.limits import shorten_redacted
from memd.push.times import iso, moment

TURNS = 4
"""Turns of the said layer that may stand before the new messages."""

TOKENS = 800
"""Estimated tokens of everything before the new messages."""

LEAST_CHARS = 100
"""A message of which fewer characters would fit is left out."""

WITHIN = timedelta(hours=24)
"""How long before the new messages an earlier turn arrived at most."""

TAIL_BYTES = 65_536
"""Bytes at the end of the said layer in which the turns are looked for: four of the longest take 48,000."""


def may_stand_before(
    document: Document, names: Sequence[str], messages: Sequence[Message], known: Collection[str]
) -> bool:
    """Whether the said layer is worth reading for these messages of a claim.

    `names`: the thread's names in the ledger. It is not for a new thread, nor when the producer sent known messages.
    """
    if not said_file_of(document).file or not messages or messages[0].identity in known:
        return False
    ledger = ledger_of(document)
    return not ledger or any(name in ledger for name in names)  # a store may keep the ledger elsewhere


def earlier(said: Said, thread: str, first: Message) -> tuple[Message, ...]:
    """The last turns of a thread, given by its name in the ledger, directly before its new message `first`.

    They end where a turn is hidden, arrived after `first`, or earlier than WITHIN before it.
    """
    arrived = moment(first.at)
    if arrived is None:  # a claim of functions that stamp no time
        return ()
    since = iso(arrived - WITHIN)
    found: list[Message] = []
    for turn in reversed(said.of_thread(thread)):
        if len(found) == TURNS or turn.id in said.hidden or not since <= turn.at <= iso(arrived):
            break
        found.append(
            Message(turn.role, turn.text, identity=turn.id, name=turn.name or None, at=turn.at, said_at=turn.said_at)
        )
    return tuple(reversed(found))


def within_tokens(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The last of these redacted messages, up to TOKENS; the first one left may be cut to head and tail."""
    left = TOKENS
    kept: list[Message] = []
    for message in reversed(messages):
        text = message.content
        if message.role == "assistant":
            text = shorten_redacted(text, ASSISTANT_CHARS)
        tokens = estimate_tokens(text)
        if tokens > left:
            text = _fitting(text, len(text) * left // tokens, left)
        if text:
            kept.append(message if text == message.content else structs.replace(message, content=text))
        left -= tokens
        if left <= 0:
            break
    return tuple(reversed(kept))


def _fitting(text: str, room: int, left: int) -> str:
    """Head and tail of a text that fit into the tokens that are left; "" when hardly any of it does."""
    while room >= LEAST_CHARS:
        cut = shorten_redacted(text, room)
        if estimate_tokens(cut) <= left:
            return cut
        room = room * 3 // 4  # the ends cost more than the middle: they are Chinese, say
    return ""
