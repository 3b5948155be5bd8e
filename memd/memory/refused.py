"""Refused facts: the last that the model proposed and apply did not take (`apply.keep_refused`), for people.

They stand apart from the facts in the document's `refused`, each with `refusedWhy` and `refusedAt`. A quote that a
message holds names it; any other is only the model's. Nothing injects, searches, sends, imports or counts them.
"""

from __future__ import annotations

from collections.abc import Sequence

from memd.memory.apart import facts_in, with_facts_in
from memd.memory.document import Document, Fact

FIELD = "refused"

REASONS = {
    "not_user_scope": "it holds for one conversation or project, not for the user in general",
    "not_durable": "it is soon over",
    "about_the_talk": "it only tells what was asked or said here",
    "not_descriptive": "by the model's label it is an order or a permission",
    "instruction": "it orders or permits the assistant something",
    "markup": "it has tags, role marks or hidden text",
    "upload_event": "it only tells of an uploaded file",
    "too_short": "it is shorter than apply.fact_min_chars",
    "too_long": "it is longer than apply.fact_max_chars",
    "low_confidence": "the model's confidence is below apply.confidence_threshold",
    "bad_confidence": "its confidence is not a number from 0 to 1",
    "bad_valid_days": "its lifetime is not between a day and a century",
    "no_evidence": "the model gave no quote as proof",
    "quote_not_found": "no new message of the user holds the quote",
    "other_speaker": "only somebody else than the user said it",
    "rate": "its thread had added apply.max_new_per_thread_day facts that day",
    "repeated": "another fact of the same reply says it",
}
"""The reasons for which a refused fact is kept, in words.

Never kept: secrets, what was off the record, what a person removed, what is sensitive. Kept elsewhere: doubtful facts,
and in the archive those that came too late.
"""


def facts_of(document: Document) -> list[Fact]:
    """The refused facts, oldest first; entries without an id or a content are skipped."""
    return facts_in(document, FIELD)


def with_facts(document: Document, facts: Sequence[Fact]) -> Document:
    """The document with these refused facts."""
    return with_facts_in(document, FIELD, facts)
