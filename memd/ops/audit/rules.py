"""The rules: functions from a document to findings. They find old content that apply would refuse today."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter

from memd.config import ApplySettings
from memd.memory import doubtful, refused, scoped, suspended
from memd.memory.contradicting import contradictions
from memd.memory.document import SECTIONS, Document, Fact, archive_of, facts_of, summaries_of, withheld_of
from memd.memory.duplicates import Alike
from memd.memory.facts import (
    QUOTE_GONE,
    Scope,
    asides_of,
    content_of,
    evidence_of,
    id_of,
    is_by_person,
    is_correction,
    is_manual,
    is_note,
    origin_of,
    proven_by,
    quotes_of,
    scope_of,
    touched_at,
    valid_until,
)
from memd.memory.gates.instructions import is_markup, text_refusal
from memd.memory.gates.passing import is_about_the_talk
from memd.memory.gates.refusal import content_refusal
from memd.memory.gates.uploads import is_upload_event
from memd.memory.parsing import broken_fields
from memd.memory.said.turns import Said
from memd.memory.text import normal_key, one_line, same_key
from memd.memory.whom import whom_of
from memd.ops.audit.aging import lifetime
from memd.push.answers import strength_of
from memd.push.redaction import find, holds_secret, redact
from memd.push.times import moment

_BLOCK = re.compile(
    r"</?memory>|&lt;/?memory&gt;|\[[a-z]+ \| [01]\.\d\d\] |^(?:User Context|History|Facts):$"
    r"|^- (?:Work|Personal|Current Focus|Recent|Earlier|Background): ",
    re.IGNORECASE | re.MULTILINE,
)
"""Text that only the block of `memd inject` has."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should not be in a memory. `text` never contains a secret; `fact_id` is empty for a summary."""

    rule: str
    place: str
    fact_id: str
    detail: str
    text: str


@dataclass(frozen=True, slots=True)
class _Passage:
    """A text of the document: the field `field` of `owner`, which is a fact or a summary."""

    owner: str
    field: str
    fact_id: str
    text: str
    quotes: tuple[str, ...] = ()
    """What proved it first: what was said later, when the fact was known, is no part of it."""

    @property
    def place(self) -> str:
        """The path of the field."""
        return f"{self.owner}.{self.field}".rstrip(".")


Rule = Callable[[Document, datetime, ApplySettings], Iterator[Finding]]


def audit(document: Document, now: datetime, settings: ApplySettings) -> list[Finding]:
    """The findings of all rules, in the order of `RULES`."""
    return [finding for rule in RULES.values() for finding in rule(document, now, settings)]


def audit_said(said: Said) -> Iterator[Finding]:
    """Turns with a secret that today's redaction would have removed, and lines that cannot be read."""
    for number, turn in enumerate(said.turns):
        if kinds := {kind for *_, kind in find(turn.text)}:
            yield Finding("secret", f"said[{number}].text", "", " and ".join(sorted(kinds)), redact(turn.text)[0])
    if said.damaged:
        yield Finding("malformed", "said", "", f"{said.damaged} lines cannot be read; the rest is used", "")


def _junk(document: Document, _: datetime, settings: ApplySettings) -> Iterator[Finding]:
    """Facts without information about the user."""
    for place, fact in _facts(document):
        content = one_line(content_of(fact))
        reason = content_refusal(content, settings)
        if reason in ("too_short", "too_long", "upload_event"):
            yield _finding("junk", place, fact, reason)
        elif not any(map(str.isalnum, content)) or strength_of(content) is not None:
            yield _finding("junk", place, fact, "no statement")
        elif is_about_the_talk(content, quotes_of(fact)):
            yield _finding("junk", place, fact, "about the conversation")
    for passage in _summaries(document):
        if is_upload_event(passage.text):
            yield _passage_finding("junk", passage, "upload_event")


def _duplicate(document: Document, _: datetime, settings: ApplySettings) -> Iterator[Finding]:
    """Facts that say the same as an earlier one: in the same words, spelled differently, or nearly."""
    before: list[_Statement] = []
    for place, fact in _facts(document):
        content = content_of(fact)
        alike = Alike(content, settings.near_duplicate)
        statement = _Statement(fact, scope_of(fact), whom_of(fact), same_key(content), normal_key(content), alike)
        kinds = [(_alike(statement, other, settings.near_duplicate), other) for other in before]
        kind, other = max(kinds, key=lambda kind: _STRENGTH.index(kind[0]), default=("", statement))
        if kind:
            yield _finding("duplicate", place, fact, f"{kind}, of {id_of(other.fact)}")
        before.append(statement)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A fact with the values that are compared: scope, person, exact text, normalised text, words."""

    fact: Fact
    scope: Scope
    person: str
    same: str
    normal: str
    alike: Alike


_STRENGTH = ("", "near", "normalised", "exact")


def _alike(statement: _Statement, other: _Statement, near: float) -> str:
    if (statement.scope, statement.person) != (other.scope, other.person):
        return ""
    if statement.same == other.same:
        return "exact"
    if statement.normal == other.normal:
        return "normalised"
    if near >= 1 or not statement.alike.may_be(other.normal):
        return ""
    return "near" if statement.alike.to(content_of(other.fact), near) >= near else ""


def _echo(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Facts that memd learned from itself: they quote its `<memory>` block, or only that block proves them."""
    for place, fact in _facts(document):
        quotes = quotes_of(fact)
        if _BLOCK.search(content_of(fact)):
            yield _finding("echo", place, fact, "quotes the injected block")
        elif quotes and all(map(_BLOCK.search, quotes)):
            yield _finding("echo", place, fact, "only the injected block proves it")


def _secret(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Keys, tokens, passwords, card numbers: in facts and their asides, in quotes, summaries and the archive."""
    for passages in _by_owner(_everything(document)):
        secrets = {passage.place: kinds for passage in passages if (kinds := _secrets(passage))}
        if secrets:
            owner = passages[0].owner
            fields = (f"{kinds} in {place.removeprefix(owner).lstrip('.') or 'it'}" for place, kinds in secrets.items())
            first = next(passage for passage in passages if passage.place in secrets)
            yield Finding("secret", owner, first.fact_id, ", ".join(fields), redact(first.text)[0])


def _secrets(passage: _Passage) -> str:
    """The kinds of secrets in a text. The mark of a removed secret is a finding only outside of quotes."""
    kinds = {kind for *_, kind in find(passage.text)}
    if not kinds and passage.field in ("", "content") and holds_secret(passage.text):
        return "mark of a removed secret"
    return " and ".join(sorted(kinds))


def _stale(document: Document, now: datetime, settings: ApplySettings) -> Iterator[Finding]:
    """Facts past their time, and facts unconfirmed for longer than those of their category stay true."""
    for place, fact in _facts(document):
        if is_manual(fact) or is_correction(fact):
            continue
        if scope_of(fact).kind == "session":  # the next commit archives it, without a question
            continue
        until = moment(valid_until(fact))
        times = [time for text in touched_at(fact) if (time := moment(text)) is not None]
        if until is not None and until < now:
            yield _finding("stale", place, fact, f"valid until {until.date()}")
        elif times and (longest := lifetime(fact, settings)) and max(times) < now - longest:
            yield _finding("stale", place, fact, f"not confirmed since {max(times).date()}")


def _contradiction(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Facts that an earlier one contradicts: another number or name, or its denial."""
    facts = facts_of(document)
    for place, other, kind in contradictions(facts):
        yield _finding("contradiction", f"facts[{place}]", facts[place], f"by {kind}, of {id_of(facts[other])}")


def _withheld(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Facts whose end was wished by an update and withheld: a person decides, or the user says it again.

    And suspended facts, which the user may have asked to forget: a person decides.
    """
    wishes = {entry.get("fact"): entry for entry in withheld_of(document)}
    for place, fact in _facts(document):
        if wish := wishes.get(id_of(fact)):
            by = f" by {wish['by']}" if wish.get("by") else ""
            yield _finding("withheld", place, fact, f"to be {wish.get('wanted')}{by}: {wish.get('why')}")
    for number, fact in enumerate(suspended.facts_of(document)):
        yield _finding("withheld", f"suspended[{number}]", fact, f"to be forgotten: {fact.get('suspendedWhy')}")


def _unevidenced(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Facts without a quote as proof; manual facts need none."""
    for place, fact in _facts(document):
        if not is_manual(fact) and not any(quote.strip() for quote in quotes_of(fact)):
            imported = origin_of(fact).get("importedFrom")
            lost = f"no quote: {QUOTE_GONE}" if proven_by(fact) else "no quote"
            plain = "an agent's note" if is_note(fact) else lost
            yield _finding("unevidenced", place, fact, f"imported from {imported}" if imported else plain)


def _instruction(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Instructions to the assistant, and hidden text, unless a person wrote or approved them."""
    for passage in _active(document, of_people=False):
        if text_refusal(passage.text, passage.quotes) == "instruction":
            yield _passage_finding("instruction", passage, "an instruction, or hidden text")


def _markup(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Tags, role marks and invisible characters."""
    for passage in _active(document):
        if is_markup(passage.text) or one_line(passage.text) != " ".join(passage.text.split()):
            yield _passage_finding("markup", passage, "tags or invisible characters")


def _malformed(document: Document, _: datetime, __: ApplySettings) -> Iterator[Finding]:
    """Fields of the wrong type, which are read as absent."""
    for sentence in broken_fields(document):
        place, verb, expected = sentence.partition(" should be ")
        yield Finding("malformed", place, "", f"{verb.strip()} {expected}", "")


RULES: dict[str, Rule] = {
    "junk": _junk,
    "duplicate": _duplicate,
    "echo": _echo,
    "secret": _secret,
    "stale": _stale,
    "contradiction": _contradiction,
    "withheld": _withheld,
    "unevidenced": _unevidenced,
    "instruction": _instruction,
    "markup": _markup,
    "malformed": _malformed,
}
"""All rules by name, in the order of the report."""


def _facts(document: Document) -> Iterator[tuple[str, Fact]]:
    lists = (("facts", facts_of(document)), ("scoped", scoped.facts_of(document)))
    return ((f"{name}[{number}]", fact) for name, facts in lists for number, fact in enumerate(facts))


def _everything(document: Document) -> Iterator[_Passage]:
    """Every text of the document, grouped by owner."""
    for place, fact in _facts(document):
        yield from _texts(place, fact)
        yield from _quotes(place, fact)
    yield from _summaries(document)
    apart = (
        ("archive", archive_of(document)),
        ("suspended", suspended.facts_of(document)),
        ("doubtful", doubtful.facts_of(document)),
        ("refused", refused.facts_of(document)),
    )
    for name, entries in apart:
        for number, entry in enumerate(entries):
            yield from _texts(f"{name}[{number}]", entry)
            yield from _quotes(f"{name}[{number}]", entry)


def _active(document: Document, *, of_people: bool = True) -> Iterator[_Passage]:
    """The texts that can get into a prompt."""
    for place, fact in _facts(document):
        if of_people or not is_by_person(fact):
            yield from _texts(place, fact)
    yield from _summaries(document)


def _by_owner(passages: Iterator[_Passage]) -> Iterator[list[_Passage]]:
    return (list(group) for _, group in groupby(passages, key=attrgetter("owner")))


def _texts(place: str, fact: Fact) -> Iterator[_Passage]:
    yield _Passage(place, "content", id_of(fact), content_of(fact), tuple(quotes_of(fact)[:1]))
    yield from (_Passage(place, field, id_of(fact), text) for field, text in asides_of(fact).items())


def _quotes(place: str, fact: Fact) -> Iterator[_Passage]:
    for number, entry in enumerate(evidence_of(fact)):
        if isinstance(entry.get("quote"), str):
            yield _Passage(place, f"evidence[{number}].quote", id_of(fact), entry["quote"])


def _summaries(document: Document) -> Iterator[_Passage]:
    for name, text in summaries_of(document):
        yield _Passage(f"{SECTIONS[name]}.{name}", "", "", text)


def _finding(rule: str, place: str, fact: Fact, detail: str) -> Finding:
    return Finding(rule, place, id_of(fact), detail, redact(content_of(fact))[0])


def _passage_finding(rule: str, passage: _Passage, detail: str) -> Finding:
    return Finding(rule, passage.place, passage.fact_id, detail, redact(passage.text)[0])
