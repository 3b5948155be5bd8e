"""View: a memory as text for a terminal, with every control character escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from memd.memory import doubtful, refused, suspended
from memd.memory.document import (
    Document,
    Fact,
    agent_of,
    facts_of,
    saved_at,
    summaries_of,
    user_of,
    withheld_of,
)
from memd.memory.facts import (
    backstory_of,
    category_of,
    confidence_of,
    confirmations_of,
    content_of,
    evidence_of,
    id_of,
    last_confirmed_at,
    scope_of,
    source_error,
    subject_of,
    valid_until,
)
from memd.printable import counted, printable

_LABELS = {
    "workContext": "Work",
    "personalContext": "Personal",
    "topOfMind": "Current focus",
    "recentMonths": "Recent months",
    "earlierContext": "Earlier",
    "longTermBackground": "Background",
}


def view(document: Document, used: Mapping[str, str | None] = MappingProxyType({})) -> str:
    """The memory as text: summaries, then facts, the most confident first, each with its evidence.

    `used`: when a search last found each fact, by id. It may contain square brackets: print it without markup.
    """
    lines = [*_heading(document), "", *_summaries(document), *_facts(document, used), *_withheld(document)]
    return "\n".join(lines).rstrip() + "\n"


def details(fact: Fact) -> Iterator[str]:
    """Lines for a fact's person, its scope, the error it corrects, its backstory, and its last valid day."""
    person, relationship = subject_of(fact)
    if person or relationship:
        yield f"about {printable(person)} ({printable(relationship)})"
    scope = scope_of(fact)
    if scope.kind != "user":
        yield f"only in {scope.kind} {printable(scope.id or '?')}"
    asides = (("avoid", source_error(fact)), ("backstory", backstory_of(fact)), ("valid until", valid_until(fact)))
    yield from (f"{label}: {printable(text)}" for label, text in asides if text)


def _heading(document: Document) -> Iterator[str]:
    agent, saved = agent_of(document), saved_at(document)
    yield f"Memory of {printable(user_of(document) or 'all users')}" + (f", agent {printable(agent)}" if agent else "")
    yield f"{counted(len(facts_of(document)), 'fact')}, " + (f"saved {printable(saved)}" if saved else "never saved")


def _summaries(document: Document) -> Iterator[str]:
    summaries = dict(summaries_of(document))
    if summaries:
        yield "Summaries"
        yield from (f"  {_LABELS[name]}: {printable(text)}" for name, text in summaries.items())
        yield ""


def _facts(document: Document, used: Mapping[str, str | None]) -> Iterator[str]:
    facts = sorted(facts_of(document), key=confidence_of, reverse=True)
    if facts:
        yield "Facts"
    for fact in facts:
        yield from _fact(fact)
        if last := used.get(id_of(fact)):
            yield f"      last used {last}"


def _fact(fact: Fact) -> Iterator[str]:
    category = printable(category_of(fact))
    yield f"  {printable(id_of(fact) or '?')}  {confidence_of(fact):.2f}  {category:<10}  {printable(content_of(fact))}"
    yield from ("      " + line for line in details(fact))
    if count := confirmations_of(fact):
        yield f"      confirmed {counted(count, 'time')}, last {printable(last_confirmed_at(fact))}"
    for entry in evidence_of(fact):
        place = f"thread {printable(entry.get('thread'))}, message {printable(entry.get('message'))}"
        yield f'      said: "{printable(entry.get("quote"))}" ({place})'


def _withheld(document: Document) -> Iterator[str]:
    counts = (
        ("Retirements withheld from the model", withheld_of, "facts withheld"),
        ("Facts suspended", suspended.facts_of, "facts withheld"),
        ("Doubtful facts", doubtful.facts_of, "facts doubtful"),
        ("Refused facts kept", refused.facts_of, "why USER --refused"),
    )
    lines = [f"{told}: {count} (memd {verb})" for told, of, verb in counts if (count := len(of(document)))]
    yield from ["", *lines] if lines else []
