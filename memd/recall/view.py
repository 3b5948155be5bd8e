"""View: a memory for people at a terminal. Plain text in which every character that a terminal obeys is escaped."""

from __future__ import annotations

from collections.abc import Iterator

from memd.memory import quarantine
from memd.memory.document import Document, Fact, confidence_of, summary
from memd.printable import printable

_LABELS = {
    "workContext": "Work",
    "personalContext": "Personal",
    "topOfMind": "Current focus",
    "recentMonths": "Recent months",
    "earlierContext": "Earlier",
    "longTermBackground": "Background",
}


def view(document: Document) -> str:
    """The memory as text: summaries, then facts, the most confident first, each with what proves it.

    It may hold square brackets: print it without markup.
    """
    lines = [*_heading(document), "", *_summaries(document), *_facts(document), *_withheld(document)]
    return "\n".join(lines).rstrip() + "\n"


def _heading(document: Document) -> Iterator[str]:
    owner = printable(document.get("userId") or "all users")
    agent = printable(document.get("agentName") or "")
    yield f"Memory of {owner}" + (f", agent {agent}" if agent else "")
    saved = document.get("lastUpdated")
    counted = f"{len(document.get('facts', ()))} facts"
    yield f"{counted}, saved {printable(saved)}" if saved else f"{counted}, never saved"


def _summaries(document: Document) -> Iterator[str]:
    known = [(label, text) for name, label in _LABELS.items() if (text := summary(document, name))]
    if known:
        yield "Summaries"
        yield from (f"  {label}: {printable(text)}" for label, text in known)
        yield ""


def _facts(document: Document) -> Iterator[str]:
    facts = sorted(document.get("facts", ()), key=confidence_of, reverse=True)
    if facts:
        yield "Facts"
    for fact in facts:
        yield from _fact(fact)


def _withheld(document: Document) -> Iterator[str]:
    count = len(quarantine.entries(document))
    if count:
        yield ""
        yield f"{count} wishes of the model to take facts away are withheld: memd facts withheld"


def _fact(fact: Fact) -> Iterator[str]:
    category = printable(fact.get("category", "context"))
    yield f"  {printable(fact.get('id', '?'))}  {confidence_of(fact):.2f}  {category:<10}  {printable(fact['content'])}"
    subject = fact.get("subject")
    if isinstance(subject, dict):
        yield f"      about {printable(subject.get('person'))} ({printable(subject.get('relationship'))})"
    for name, label in (("sourceError", "avoid"), ("backstory", "backstory"), ("validUntil", "valid until")):
        if fact.get(name):
            yield f"      {label}: {printable(fact[name])}"
    if fact.get("confirmations"):
        yield f"      confirmed {printable(fact['confirmations'])} times, last {printable(fact.get('lastConfirmedAt'))}"
    evidence = fact.get("evidence")
    for piece in evidence if isinstance(evidence, list) else ():
        if isinstance(piece, dict):
            place = f"thread {printable(piece.get('thread'))}, message {printable(piece.get('message'))}"
            yield f'      said: "{printable(piece.get("quote"))}" ({place})'
