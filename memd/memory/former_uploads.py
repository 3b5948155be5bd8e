"""Former uploads: what a memory holds of upload events, from older gates or other systems, goes with an update."""

from __future__ import annotations

from memd.memory.document import summaries_of
from memd.memory.draft import Draft
from memd.memory.facts import content_of, is_by_person
from memd.memory.gates.uploads import any_names_upload, is_upload_event, without_upload_events
from memd.memory.sayings import of_summary


def drop_upload_events(draft: Draft) -> None:
    """Archive facts that only say that a file was uploaded, and cut such sentences out of the summaries."""
    if any_names_upload(list(map(content_of, draft.facts.values()))):
        _drop(draft)
    for name, text in summaries_of(draft.old):
        if (clean := without_upload_events(text)) != text:
            draft.rewrite(name, clean, of_summary(draft.old, name))


def _drop(draft: Draft) -> None:
    held = [
        fact_id
        for fact_id, fact in draft.facts.items()
        if content_of(fact).strip() and is_upload_event(content_of(fact))
    ]
    for fact_id in held:
        if not is_by_person(draft.facts[fact_id]):
            draft.archive(fact_id, "expired")
