"""One user message whose reply, or whose text, is too long: the text is asked about in pieces.

All pieces become one update, which is committed once, with the identity of the whole message. The requests number the
messages as the whole one does, and each sees the summaries that the pieces before it have rewritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, TypeVar

from msgspec import structs

from memd.context import Message
from memd.errors import ContentTooLong, Truncated
from memd.extraction.paragraphs import middle
from memd.extraction.prompt import PROMPT_VERSION
from memd.extraction.protocol import Extraction, Maintenance, Usage
from memd.extraction.update import Update
from memd.memory.document import with_summary
from memd.push.times import iso
from memd.workers.steps import Answered, Work

MAX_PIECES = 64
"""Most pieces of one message. They halve the text, so 64 is six halvings of all of it."""

CONTEXT_CHARS = 600
"""Characters of the text before a piece that its request shows for context."""

T = TypeVar("T")


def can_be_split(messages: Sequence[Message], failure: ContentTooLong) -> bool:
    """Whether pieces can help after this failure: there is a place to split at, or there are complete items."""
    [said] = [message.content for message in messages if message.role == "user"]
    return _complete(failure) is not None or middle(said, 0, len(said)) is not None


async def ask_in_pieces(work: Work, ask: Callable[[Work], Awaitable[Answered | T]], model: str) -> Answered | T:
    """The extraction of a message that failed as a whole, or the outcome of the first piece that has none.

    A truncated reply's complete items count only where the text cannot be split any more; `model` returned them.
    Raises ExtractionFailed.
    """
    [place] = [index for index, message in enumerate(work.new) if message.role == "user"]
    said = work.new[place].content
    progress = work.part.progress
    progress.begin_pieces(work.new)
    done: list[Extraction] = []
    todo: list[tuple[int, int, ContentTooLong | None]] = [(0, len(said), work.part.failure)]
    while todo:
        start, end, failure = todo.pop()
        if failure is None:
            piece = _piece(work, place, start, end, done)
            try:
                step = await ask(piece)
            except ContentTooLong as error:
                failure = error
                progress.keep_piece(piece.new, None)
            else:
                if not isinstance(step, Answered):
                    return step
                done.append(step.extraction)
                progress.keep_piece(piece.new, step.extraction)
                continue
        cut = middle(said, start, end)
        if cut is not None and len(done) + len(todo) + 2 <= MAX_PIECES:
            todo += [(cut, end, None), (start, cut, None)]
        elif (complete := _complete(failure)) is not None:
            done.append(Extraction(complete, Usage(), model, PROMPT_VERSION, over=_over(failure)))
        else:
            raise failure
    return Answered(work, joined(done))


def _complete(failure: ContentTooLong) -> Update | None:
    """The complete items of a truncated reply; None when there are none."""
    update = failure.complete if isinstance(failure, Truncated) else None
    return update if isinstance(update, Update) and update != Update() else None


def _over(failure: ContentTooLong) -> int:
    return failure.over if isinstance(failure, Truncated) else 0


def joined(done: Sequence[Extraction]) -> Extraction:
    """The extractions of all pieces as one, in their order. Of what two pieces say about one fact, the first counts."""
    fields: dict[str, Any] = {}
    for name in Update.__struct_fields__:
        values = [getattr(extraction.update, name) for extraction in done]
        if isinstance(values[0], tuple):
            fields[name] = _once_each(item for value in values for item in value)
        else:
            fields[name] = {key: text for value in values for key, text in value.items()}
    mended = reduce(add, (Counter(extraction.mended) for extraction in done))
    malformed = tuple(place for extraction in done for place in extraction.malformed)
    over = sum(extraction.over for extraction in done)
    return replace(done[-1], update=Update(**fields), mended=mended, malformed=malformed, over=over)


def _once_each(items: Any) -> tuple[Any, ...]:
    """The items, with each fact's id only once."""
    seen: dict[Any, Any] = {}
    for item in items:
        seen.setdefault(getattr(item, "id", object()), item)
    return tuple(seen.values())


def _piece(work: Work, place: int, start: int, end: int, done: Sequence[Extraction]) -> Work:
    """The work on one piece of the user's text. Questions about the document itself are asked only once."""
    message = work.new[place]
    said = message.content
    earlier = said[max(0, start - CONTEXT_CHARS) : start].strip()
    document, now = work.loaded.document, iso(work.part.claim.now)
    for extraction in done:
        for name, text in extraction.update.summaries.items():
            document = with_summary(document, name, text, now)
    return replace(
        work,
        new=(*work.new[:place], structs.replace(message, content=said[start:end].strip()), *work.new[place + 1 :]),
        before=(*work.before, Message("user", earlier)) if earlier else work.before,
        loaded=replace(work.loaded, document=document),
        maintenance=work.maintenance if not done else Maintenance(),
        place=f"@{start}-{end}",
    )
