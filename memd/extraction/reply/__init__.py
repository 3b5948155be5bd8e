"""Reading the text of a model's reply: strict about content, forgiving about form.

`read` is pure: the same text gives the same result. What it mends has one possible meaning; what it cannot read as
exactly one update is a BadReply. Every extractor and the batches read replies here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.extraction.reply.mending import Mending
from memd.extraction.reply.one_object import Quotations, as_update, find
from memd.extraction.update import BadReply, Update

__all__ = ["BadReply", "ReadReply", "read", "read_object"]


@dataclass(frozen=True, slots=True)
class ReadReply:
    """What a reply says. `mended` counts repairs of the form by kind; `malformed` has the place of each refused item:

    a JSON path without `$.`, such as `newFacts[3].confidence`, which contains no text of the reply. `over`: the number
    of items beyond the most that an update may have.
    """

    update: Update
    mended: Mapping[str, int] = field(default_factory=dict)
    malformed: tuple[str, ...] = ()
    over: int = 0


def read(text: str, sent: Iterable[str] = (), *, partial: bool = False) -> ReadReply:
    """The one update in a text. Raises BadReply.

    `sent`: the messages that the model was asked about; an object that stands in one of them is a quotation of it.
    `partial`: the reply was truncated, and its complete items count.
    """
    mended: Counter[str] = Counter()
    reply = _reply(find(text, mended, Quotations(sent), partial=partial), mended)
    if partial and reply.update == Update():
        raise BadReply("incomplete")
    return reply


def read_object(value: Any) -> ReadReply:
    """The update that a decoded JSON value is, such as the input of a tool call. Raises BadReply."""
    mended: Counter[str] = Counter()
    update = as_update(value, mended)
    if update is None:
        raise BadReply("no_update")
    return _reply(update, mended)


def _reply(value: dict[str, Any], mended: Counter[str]) -> ReadReply:
    mending = Mending(mended)
    update = mending.update(value)
    counted = {kind: count for kind, count in sorted(mended.items()) if count}
    return ReadReply(update, counted, tuple(mending.malformed), mending.over)
