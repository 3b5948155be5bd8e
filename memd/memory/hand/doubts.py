"""Doubts: a person approves or drops a doubtful fact. Pure functions: nothing is mutated, refusals raise Rejected.

An approved fact comes in as it would have when it was said: it keeps its evidence and its time, replaces what it was to
replace, and the model may change it later. Nothing else brings a dropped one back.
"""

from __future__ import annotations

from datetime import datetime

from memd.config import ApplySettings
from memd.memory import doubtful, late, removed
from memd.memory.document import Document, Fact, archive_of, complete, facts_of, revised
from memd.memory.draft import Draft
from memd.memory.duplicates import Contents
from memd.memory.facts import (
    USER_SCOPE,
    archive_with,
    content_of,
    is_manual,
    proven_by,
    replaces,
    scope_of,
    valid_until,
    with_id,
)
from memd.memory.hand import steps
from memd.memory.hand.steps import Edited
from memd.memory.new_facts import Origin
from memd.memory.purge import Words, without_told
from memd.memory.retiring import Ending
from memd.memory.sayings import earlier, of_fact
from memd.memory.scoped import MAX_OF_SCOPE, of_scope, with_facts_of
from memd.push.times import iso


def approve(
    document: Document, fact_id: str, now: datetime, settings: ApplySettings, *, by: str, anyway: bool = False
) -> Edited:
    """Make a doubtful fact a fact of the memory. `by`: who approves it; `anyway`: although it was superseded.

    Facts that a person wrote are not replaced. Raises Rejected (`E_SUPERSEDED`: something else was said later, or its
    time is over), FactUnknown.
    """
    document = complete(document)
    fact = _doubtful(document, fact_id, now)
    steps.checked_by_hand(content_of(fact), settings)
    steps.check_unsaid(document, content_of(fact), fact)
    scope = scope_of(fact)
    if len(of_scope(document, scope)) >= (settings.max_facts if scope == USER_SCOPE else MAX_OF_SCOPE):
        steps.refuse("E_MEMORY_FULL", f"the memory is full ({settings.max_facts} facts); remove one", "fact_id")
    draft = Draft({**document, "facts": of_scope(document, scope)}, Origin("", now, "", ""), settings)
    if not anyway and (why := _superseded(draft, fact)):
        steps.refuse("E_SUPERSEDED", f"{why}; it can be approved anyway", "fact_id")
    said, gone = of_fact(fact), []
    for old_id in replaces(fact):
        old = draft.facts.get(old_id)
        if old is not None and not is_manual(old) and not earlier(said, of_fact(old)):
            draft.end(Ending(old_id, "replaced", replaced_by=fact_id, over=said, proofs=proven_by(fact)))
            gone.append(old_id)
    new = {name: value for name, value in doubtful.cleared(fact).items() if name != "replaces"}
    draft.put({**new, **({"replaces": gone} if gone else {}), "approvedBy": by})
    archive = archive_with(archive_of(document), draft.archived, settings.archive_cap)
    left = with_facts_of(revised(document, iso(now), archive=archive), scope, list(draft.facts.values()))
    return Edited(_without(left, fact), fact_id)


def drop(document: Document, fact_id: str, now: datetime) -> Edited:
    """Take a doubtful fact out for good: a tombstone keeps it from coming back. Raises Rejected, FactUnknown.

    What the user said was not wrong, only what was made of it: facts that rest on the same quote keep it.
    """
    document = complete(document)
    fact = _doubtful(document, fact_id, now)
    left = _without(revised(document, iso(now)), fact)
    left = {**left, "removed": removed.buried(left, [fact], iso(now))}
    return Edited(without_told(left, Words([fact], facts_of(left)), iso(now)), fact_id)


def _doubtful(document: Document, fact_id: str, now: datetime) -> Fact:
    steps.check_id(fact_id)
    fact = with_id(doubtful.facts_of(document, now), fact_id)
    if fact is None:
        raise steps.unknown_fact()
    return fact


def _without(document: Document, fact: Fact) -> Document:
    return doubtful.with_facts(document, [other for other in doubtful.facts_of(document) if other is not fact])


def _superseded(draft: Draft, fact: Fact) -> str:
    """Why the fact no longer holds, as the start of a sentence; "" when nothing speaks against it."""
    said = of_fact(fact)
    contents = Contents(draft.facts.values(), draft.settings.near_duplicate)
    if later := late.successor(draft, contents, fact, said, replaces(fact)):
        return f"{later} was said later"
    if late.is_over(draft, fact, said):
        return "the user said later that it is over"
    return "its time is over" if "" < valid_until(fact) < draft.now else ""
