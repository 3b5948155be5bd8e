"""The operations on facts, profiles, and what waits for a person's decision."""

from __future__ import annotations

from memd.http import fact_fields, facts, fields
from memd.http import openapi_schemas as schemas
from memd.http.operation import Operation


def fact_operations() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/facts", "facts", "The facts of a memory", "read", facts.facts,
            {200: schemas.LISTED_FACTS}, query=fields.FactsQuery,
            description="Oldest first; archived ones, which only another `status` than active brings, come last, the "
            "latest last. No document stores `status` and `lastUsedAt`. A list is no reading.",
        ),
        Operation(
            "GET", "/v1/facts/{fact_id}", "why", "Where a fact comes from", "read", facts.why,
            {200: schemas.WHY}, query=fact_fields.FactPlace,
            description="Its quotes, times and model, what it replaced and what replaced it, its earlier versions. "
            "Archived facts too. The turns around a quote only with the scope `said`.",
        ),
        Operation(
            "GET", "/v1/archive", "archive", "The archived facts of a memory, and why each was archived", "read",
            facts.archived, {200: schemas.ARCHIVED_FACTS}, query=fact_fields.ArchiveQuery,
            description="The latest last. replaced, merged and edited facts have another one in their place; retired, "
            "expired, stale and evicted ones have none. The archive has a cap (`apply.archive_cap`).",
        ),
        Operation(
            "POST", "/v1/notes", "addNote", "Add a fact in the name of an agent", "write", facts.add_note,
            {201: schemas.ID}, body=fields.AddNote, refusals=(409,),
            description="An agent's word: it passes the gates, evicts nothing, and counts less than the user's.",
        ),
        Operation(
            "POST", "/v1/facts", "addFact", "Add a fact by hand", "person", facts.add_fact,
            {201: schemas.ID}, body=fields.AddFact, refusals=(409,),
            description="A person's word, which only markup and secrets keep out. The model neither changes nor evicts "
            "it. A fact that already says the same becomes one added by hand.",
        ),
        Operation(
            "PATCH", "/v1/facts/{fact_id}", "editFact", "Change a fact's content, its category, or both", "person",
            facts.edit_fact, {200: schemas.ID}, body=fields.FactEdit, refusals=(409,),
            description="The archive keeps the earlier version.",
        ),
        Operation(
            "DELETE", "/v1/facts/{fact_id}", "removeFact", "Remove a fact for good", "person", facts.remove_fact,
            {204: None}, query=fields.OneMemory, refusals=(409,),
            description="No conversation brings it back; only adding it by hand does.",
        ),
        Operation(
            "GET", "/v1/profile", "profile", "The user's profile, with which every block begins", "read",
            facts.profile, {200: schemas.PROFILE}, query=fields.OneMemory,
            description="By field its value, when and by whom it was set (manual, model), and the facts it rests on.",
        ),
        Operation(
            "PUT", "/v1/profile", "setProfile", "Set a field of the profile by hand", "person", facts.set_profile,
            {200: schemas.PROFILE_FIELD}, body=fields.ProfileSet, refusals=(409,),
            description="No model overwrites it. `content` has the user's own instructions.",
        ),
        Operation(
            "DELETE", "/v1/profile", "unsetProfile", "Take a field out of the profile", "person",
            facts.unset_profile, {204: None}, query=fields.ProfileUnset, refusals=(409,),
            description="A model may fill it again.",
        ),
        Operation(
            "GET", "/v1/doubtful", "doubtful", "The facts that a person has to decide on", "read", facts.doubtful,
            {200: schemas.DOUBTFUL}, query=fields.OneMemory,
            description="For people: no prompt may have them. `doubtfulWhy` is authority, support or sensitive.",
        ),
        Operation(
            "POST", "/v1/doubtful/{fact_id}/approve", "approveFact", "Make a doubtful fact a fact of the memory",
            "person", facts.approve_fact, {200: schemas.ID}, body=fields.Approval, refusals=(409,),
            description="It keeps its evidence and its time, and replaces what it was to replace. 422 E_SUPERSEDED: "
            "something else was said later; `anyway` approves it all the same.",
        ),
        Operation(
            "POST", "/v1/doubtful/{fact_id}/drop", "dropFact", "Take a doubtful fact out for good", "person",
            facts.drop_fact, {204: None}, body=fields.Decision, refusals=(409,),
            description="No conversation brings it back.",
        ),
        Operation(
            "GET", "/v1/withheld", "withheld", "What is held back until a person decides", "person", facts.withheld,
            {200: schemas.WITHHELD}, query=fields.OneMemory,
            description="`wanted` forgotten: a suspended fact, which the user may have asked to forget; restore or "
            "remove it. Any other: the end of a fact that memd did not follow; edit or remove it, or leave it.",
        ),
        Operation(
            "POST", "/v1/withheld/{fact_id}/restore", "restoreFact", "Take a suspended fact back", "person",
            facts.restore_fact, {200: schemas.ID}, body=fact_fields.Restoration, refusals=(409,),
            description="It is injected and found again. To forget it for good, remove the fact.",
        ),
    ]  # fmt: skip
