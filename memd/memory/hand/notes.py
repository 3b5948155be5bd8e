"""Notes: facts that an agent writes by a tool. Pure functions: nothing is mutated, refusals raise Rejected.

A tool's argument is a model's word, not the user's: a note has source `agent`, no evidence, less confidence than a
proven fact, and never the rank of a correction. It evicts no fact. An agent cannot change facts that a person wrote;
facts that it changes or retires go to the archive, a limited number a day
(docs/decisions/0020-a-note-is-not-the-users-word.md).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from memd.config import ApplySettings
from memd.memory import removed, scoped
from memd.memory.document import (
    SECTIONS,
    Document,
    Fact,
    archive_of,
    complete,
    facts_of,
    revised,
    revision_of,
    summary,
    with_summary,
)
from memd.memory.duplicates import Contents
from memd.memory.fact_ids import new_id
from memd.memory.facts import (
    AGENT,
    DEFAULT_CATEGORY,
    DEFAULT_CONFIDENCE,
    USER_SCOPE,
    ArchiveReason,
    Scope,
    archived,
    archived_at,
    archived_by_agent,
    category_of,
    content_of,
    ids_in_use,
    is_manual,
    is_note,
    person_of,
    scope_of,
)
from memd.memory.gates.refusal import MAX_SUMMARY_CHARS
from memd.memory.hand import steps
from memd.memory.hand.steps import Author, Edited
from memd.memory.new_facts import base_fact
from memd.memory.session_facts import renewed
from memd.memory.text import aside, one_line
from memd.push.redaction import redact
from memd.push.times import iso

SHARE = 0.2
"""Share of a memory that may be notes: most facts must rest on the user's words."""

CHANGES_A_DAY = 20
"""Facts of one memory that agents may change or retire in 24 hours: a tenth of the archive by default."""


def save(
    document: Document,
    content: str,
    category: str | None,
    now: datetime,
    settings: ApplySettings,
    scope: Scope = USER_SCOPE,
) -> Edited:
    """Add a note about the user; nothing changes when a fact says the same. Removed facts do not come back this way.

    `scope`: where it holds. One of a conversation ends as its other facts do; one of a project is the user's alone.
    Raises Rejected.
    """
    document = complete(document)
    clean = steps.checked_text(content, settings, "E_NOTE")
    chosen = _checked_category(category, settings, clean)
    same = steps.saying(document, clean)
    if same is not None:
        return Edited(document, same)
    _check_not_removed(document, clean)
    if scope != USER_SCOPE:
        return _save_scoped(document, clean, chosen, now, settings, scope)
    facts, most = facts_of(document), int(SHARE * settings.max_facts)
    if sum(map(is_note, facts)) >= most:
        steps.refuse("E_NOTES_FULL", f"agents may keep {most} notes in a memory; change or delete one", "content")
    if len(facts) >= settings.max_facts:
        steps.refuse(
            "E_MEMORY_FULL", f"the memory is full ({settings.max_facts} facts); a note evicts no fact", "content"
        )
    return steps.with_new_fact(document, clean, chosen, _agent(settings), iso(now))


def _save_scoped(
    document: Document, content: str, category: str | None, now: datetime, settings: ApplySettings, scope: Scope
) -> Edited:
    """Add a note that holds in one scope, apart from the facts that hold everywhere."""
    if scope.kind == "session" and not settings.session_facts:
        steps.refuse("E_SCOPE", "facts of one conversation are switched off (apply.session_facts)", "scope")
    facts = scoped.facts_of(document)
    of_scope = [fact for fact in facts if scope_of(fact) == scope]
    if same := Contents(of_scope).same(content, ""):
        return Edited(document, same)
    if len(of_scope) >= scoped.MAX_OF_SCOPE or len(facts) >= scoped.MAX_SCOPED:
        steps.refuse(
            "E_MEMORY_FULL", f"a {scope.kind} keeps {scoped.MAX_OF_SCOPE} facts; a note evicts none", "content"
        )
    agent = _agent(settings)
    fact_id = new_id(document, revision_of(document) + 1, content, 0, ids_in_use(document))
    fact = base_fact(fact_id, content, category or DEFAULT_CATEGORY, agent.confidence, iso(now), agent.source)
    kept = renewed([*facts, scoped.placed(fact, scope)], scope, now, now)
    return Edited(revised(scoped.with_facts(document, kept), iso(now)), fact_id)


def update(
    document: Document, fact_id: str, content: str, category: str | None, now: datetime, settings: ApplySettings
) -> Edited:
    """Reword a fact. It becomes a note, and the archive keeps the old version.

    Raises Rejected, FactUnknown.
    """
    document = complete(document)
    fact = _reachable(document, fact_id)
    clean = steps.checked_text(content, settings, "E_NOTE")
    chosen = _checked_category(category, settings, clean) or category_of(fact)
    if chosen == "correction":
        chosen = DEFAULT_CATEGORY
    if clean == content_of(fact) and chosen == category_of(fact):
        return Edited(document, fact_id)
    steps.check_unsaid(document, clean, fact)
    _check_not_removed(document, clean, person_of(fact))
    new = steps.without_proof(steps.reworded(fact, clean, chosen, _agent(settings), iso(now)))
    return _superseded(document, fact, new, "edited", "", now, settings)


def retire(document: Document, fact_id: str, reason: str, now: datetime, settings: ApplySettings) -> Edited:
    """Archive a fact, with the agent's reason. Raises Rejected, FactUnknown."""
    document = complete(document)
    fact = _reachable(document, fact_id)
    return _superseded(document, fact, None, "retired", redact(aside(reason))[0], now, settings)


def summarize(document: Document, name: str, text: str, now: datetime, settings: ApplySettings) -> Edited:
    """Rewrite one of the six summaries, or empty it. Raises Rejected."""
    document = complete(document)
    if name not in SECTIONS:
        steps.refuse("E_SUMMARY", f"a memory has the summaries {', '.join(SECTIONS)}", "summary")
    clean = steps.checked_text(text, settings, "E_NOTE", "summary") if one_line(text) else ""
    if len(clean) > MAX_SUMMARY_CHARS:
        steps.refuse("E_NOTE_TOO_LONG", f"a summary has at most {MAX_SUMMARY_CHARS} characters", "summary")
    if clean == summary(document, name):
        return Edited(document, "")
    return Edited(revised(with_summary(document, name, clean, iso(now)), iso(now)), "")


def _superseded(
    document: Document,
    fact: Fact,
    new: Fact | None,
    reason: ArchiveReason,
    note: str,
    now: datetime,
    settings: ApplySettings,
) -> Edited:
    """The document with `new` in place of a fact, within the day's limit. Raises Rejected."""
    most = min(CHANGES_A_DAY, settings.archive_cap)
    yesterday = iso(now - timedelta(days=1))
    lately = sum(archived_by_agent(entry) and archived_at(entry) > yesterday for entry in archive_of(document))
    if lately >= most:
        steps.refuse("E_CHANGES_A_DAY", f"agents may change or delete {most} facts of a memory in a day", "fact_id")
    entry = {**archived(fact, reason, iso(now), note=note), "archivedBy": AGENT}
    return steps.superseded(document, fact, new, entry, iso(now), settings)


def _reachable(document: Document, fact_id: str) -> Fact:
    fact = steps.existing(document, fact_id)
    if is_manual(fact):
        steps.refuse("E_FACT_BY_HAND", "a person wrote this fact; only a person may change it", "fact_id")
    return fact


def _checked_category(category: str | None, settings: ApplySettings, content: str) -> str | None:
    chosen = steps.checked_category(category, settings, content)
    if chosen == "correction":  # corrections go into the prompt first, with a budget of their own
        steps.refuse("E_CATEGORY", "only what the user said can be a correction; name another category", "category")
    return chosen


def _check_not_removed(document: Document, content: str, person: str = "") -> None:
    if removed.refusal(removed.hashes(document), content, person):
        steps.refuse("E_FACT_REMOVED", "a person removed this; only a person may add it again", "content")


def _agent(settings: ApplySettings) -> Author:
    return Author(AGENT, min(DEFAULT_CONFIDENCE, settings.confidence_threshold))
