"""Undoes the prompt's escaping in a reply: the model copies `&lt;` and `&amp;`, and a quote must be what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from memd.context import Message
from memd.extraction.prompt import unescape
from memd.extraction.reply import ReadReply
from memd.extraction.update import Evidence, NewFact


def unescaped(reply: ReadReply, sent: Sequence[Message]) -> ReadReply:
    """The reply to these messages without escapes, and without empty summaries."""
    update = reply.update
    return replace(
        reply,
        update=structs.replace(
            update,
            summaries={name: unescape(text) for name, text in update.summaries.items() if text.strip()},
            new_facts=tuple(_fact(fact, sent) for fact in update.new_facts),
            confirmed_facts=tuple(
                structs.replace(one, quote=_quote(one.quote, sent)) for one in update.confirmed_facts
            ),
            retired_facts=tuple(structs.replace(one, quote=_quote(one.quote, sent)) for one in update.retired_facts),
            forgotten_facts=tuple(
                structs.replace(one, quote=_quote(one.quote, sent)) for one in update.forgotten_facts
            ),
            profile=tuple(structs.replace(one, value=unescape(one.value)) for one in update.profile),
            merged_facts=tuple(structs.replace(one, content=unescape(one.content)) for one in update.merged_facts),
        ),
    )


def _fact(fact: NewFact, sent: Sequence[Message]) -> NewFact:
    evidence = tuple(
        Evidence(quoted.message, _quote(quoted.quote, sent[quoted.message : quoted.message + 1]))
        for quoted in fact.evidence
    )
    return structs.replace(
        fact,
        content=unescape(fact.content),
        evidence=evidence,
        source_error=unescape(fact.source_error) if fact.source_error else None,
        backstory=unescape(fact.backstory) if fact.backstory else None,
    )


def _quote(quote: str, messages: Sequence[Message]) -> str:
    """The quote as one of the messages contains it: unchanged if it occurs there, else unescaped."""
    if "&" not in quote or any(quote in message.content for message in messages):
        return quote
    return unescape(quote)
