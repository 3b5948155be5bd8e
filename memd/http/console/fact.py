"""One fact: where it comes from, its proof in what was said, its earlier versions; changing and removing it."""

from __future__ import annotations

from memd.http.console.page import Shown, Visit, address
from memd.http.facts import without_turns
from memd.recall.why import REASONS, WITHHELD

PATH = "/console/fact"


def fact(visit: Visit) -> Shown:
    """The page. The turns around a quote are shown to who may read what was said, and a fact of one conversation or
    project to a person."""
    named = {"thread_id": visit.value("thread") or None, "project_id": visit.value("project") or None}
    place = named if visit.may("person") else {}
    account = visit.service.memd.why(visit.user, visit.value("id"), agent_name=visit.agent, **place)
    if not visit.may("said"):
        account = without_turns(account)
    return Shown(
        "fact.html",
        {
            "user": visit.user,
            "agent": visit.agent,
            "fact": account,
            "reasons": REASONS,
            "withheld": WITHHELD,
            "all_categories": visit.service.settings.apply.categories,
        },
    )


def edit(visit: Visit) -> str:
    """Change a fact's words, its category, or both."""
    fact_id = visit.value("id")
    content, category = visit.value("content") or None, visit.value("category") or None
    visit.service.memd.edit_fact(visit.user, fact_id, content=content, category=category, agent_name=visit.agent)
    visit.say("The fact is changed")
    return address(PATH, user=visit.user, agent=visit.agent, id=fact_id)


def remove(visit: Visit) -> str:
    """Remove a fact for good."""
    visit.service.memd.remove_fact(visit.user, visit.value("id"), agent_name=visit.agent)
    visit.say("The fact is removed")
    return address("/console/user", user=visit.user, agent=visit.agent)
