"""A user's memory: profile, summaries, facts, what a person has to decide on, the next prompt's block, a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from starlette.responses import Response

from memd.context import estimate_tokens
from memd.errors import Rejected
from memd.http.console.page import Shown, Visit, address
from memd.http.memory import exported
from memd.memory.document import Document, Fact, saved_at, summaries_of, summary_entry
from memd.memory.facts import category_of, confidence_of, content_of, with_id
from memd.memory.profiles import USER_FIELDS
from memd.memory.scoped import NOWHERE
from memd.memory.store.json_store import open_store
from memd.recall.why import WITHHELD

ROWS = 50
FOUND = 10
PATH = "/console/user"

SUMMARIES = {
    "workContext": "Work",
    "personalContext": "Personal",
    "topOfMind": "Current focus",
    "recentMonths": "Recent months",
    "earlierContext": "Earlier",
    "longTermBackground": "Background",
}


def user(visit: Visit) -> Shown:
    """The page."""
    memd, name, agent = visit.service.memd, visit.user, visit.agent
    # As over HTTP: what holds in one conversation or project only is for a person's own eyes.
    facts = memd.facts(name, agent, places=None if visit.may("person") else NOWHERE)
    chosen = visit.value("category")
    rows, more = _page(visit, [fact for fact in facts if not chosen or category_of(fact) == chosen])
    query = visit.value("q")
    document = memd.document(name, agent_name=agent)
    data = {
        "user": name,
        "agent": agent,
        "agents": open_store(visit.service.settings).agents(name),
        "saved": saved_at(document),
        "count": len(facts),
        "categories": sorted(Counter(map(category_of, facts)).items()),
        "category": chosen,
        "groups": _by_category(rows),
        "more_href": more,
        "doubtful": memd.doubtful(name, agent),
        "withheld": memd.withheld(name, agent),
        "why_withheld": WITHHELD,
        "profile": memd.profile(name, agent_name=agent),
        "fields": USER_FIELDS,
        "summaries": _summaries(document),
        "query": query,
        "found": _found(visit, query) if query else None,
        "all_categories": visit.service.settings.apply.categories,
    }
    return Shown("user.html", data | _block(visit))


def _page(visit: Visit, facts: Sequence[Fact]) -> tuple[list[Fact], str]:
    """The facts of this page, by category and then the most confident first, and the address of the next page."""
    ordered = sorted(facts, key=lambda fact: (category_of(fact), -confidence_of(fact)))
    start = visit.start()
    end = start + ROWS
    following = {"user": visit.user, "agent": visit.agent, "category": visit.value("category"), "after": end}
    return ordered[start:end], address(PATH, **following) if end < len(ordered) else ""


def _by_category(facts: Sequence[Fact]) -> list[tuple[str, list[Fact]]]:
    return [(name, list(group)) for name, group in groupby(facts, category_of)]


def _summaries(document: Document) -> list[tuple[str, str, str]]:
    """Title, text and time of each summary."""
    return [
        (SUMMARIES[name], text, str(summary_entry(document, name).get("updatedAt", "")))
        for name, text in summaries_of(document)
    ]


def _found(visit: Visit, query: str) -> list[Any]:
    """What a search finds; excerpts only for who may read what was said."""
    memd = visit.service.memd
    return memd.search(visit.user, query, agent_name=visit.agent, limit=FOUND, include_said=visit.may("said"))


def _block(visit: Visit) -> dict[str, Any]:
    """The block exactly as the next prompt gets it, for the query that the page has."""
    memd, settings = visit.service.memd, visit.service.settings.recall
    text = memd.inject(
        visit.user, agent_name=visit.agent, query=visit.value("q") or None, include_said=visit.may("said")
    )
    tokens = round(estimate_tokens(text) * settings.tokens_per_estimate)
    return {"block": text, "tokens": tokens, "most_tokens": settings.max_injection_tokens}


def export(visit: Visit) -> Response:
    """Everything kept about the user, as a file."""
    data = exported(visit.service.memd, visit.user, visit.value("agent") or None, include_said=visit.may("said"))
    headers = {"content-disposition": 'attachment; filename="memory.json"', "cache-control": "no-store"}
    return Response(data, headers=headers, media_type="application/json")


def add(visit: Visit) -> str:
    """Add a fact by hand."""
    category = visit.value("category") or None
    visit.service.memd.add_fact(visit.user, visit.value("content"), category=category, agent_name=visit.agent)
    visit.say("The fact is added")
    return _back(visit)


def approve(visit: Visit) -> str:
    """Make a doubtful fact a fact of the memory."""
    by, anyway = visit.login.token.app or "person", bool(visit.value("anyway"))
    visit.service.memd.approve_fact(visit.user, visit.value("id"), agent_name=visit.agent, by=by, anyway=anyway)
    visit.say("The fact is approved")
    return _back(visit)


def approve_note(visit: Visit) -> str:
    """Make an agent's note a person's word: a fact that is added again by hand becomes one of the hand."""
    memd, agent = visit.service.memd, visit.agent
    note = with_id(memd.facts(visit.user, agent), visit.value("id"))
    if note is None:
        raise Rejected("E_FACT_ID", "the memory has no fact with this id", "id")
    memd.add_fact(visit.user, content_of(note), category=category_of(note), agent_name=agent)
    visit.say("The note is approved")
    return _back(visit)


def drop(visit: Visit) -> str:
    """Take a doubtful fact out for good."""
    visit.service.memd.drop_fact(visit.user, visit.value("id"), agent_name=visit.agent)
    visit.say("The fact is dropped")
    return _back(visit)


def restore(visit: Visit) -> str:
    """Take a suspended fact back."""
    visit.service.memd.restore_fact(visit.user, visit.value("id"), agent_name=visit.agent)
    visit.say("The fact is back")
    return _back(visit)


def set_profile(visit: Visit) -> str:
    """Set a field of the profile by hand; a list has one item a line."""
    name, text = visit.value("field"), visit.value("value")
    field = USER_FIELDS.get(name)
    value: str | list[str] = text.splitlines() if field is not None and field.kind == "list" else text
    visit.service.memd.set_profile(visit.user, name, value, agent_name=visit.agent)
    visit.say("The profile is changed")
    return _back(visit)


def unset_profile(visit: Visit) -> str:
    """Take a field out of the profile."""
    visit.service.memd.unset_profile(visit.user, visit.value("field"), agent_name=visit.agent)
    visit.say("The profile is changed")
    return _back(visit)


def forget(visit: Visit) -> str:
    """Forget the user, whose id a person has typed."""
    if visit.value("typed") != visit.user:
        raise Rejected("E_TYPED", "what was typed is not the id of the user", "typed")
    forgotten = visit.service.memd.forget(visit.user)
    visit.say("The user is forgotten" if forgotten.complete else "The user is forgotten; a worker does the rest")
    return "/console/users"


def _back(visit: Visit) -> str:
    return address(PATH, user=visit.user, agent=visit.agent)
