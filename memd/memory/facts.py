"""A fact: its fields, read through the functions here; `new_facts` writes new ones.

A person may have edited the file, so a field of the wrong type reads as absent. Only `id` (facts, not archive entries)
and `content` are certain: `parsing` checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from memd.context import identity_of_id, is_identity
from memd.memory import doubtful, refused, suspended
from memd.memory.apart import facts_in
from memd.memory.document import Document, Fact, archive_of, facts_of
from memd.memory.packed import unpacked
from memd.memory.text import fold
from memd.push.times import MONTH_CHARS, month

MANUAL = "manual"
"""The source of facts that a person wrote."""

AGENT = "agent"
"""The source of notes: facts that an agent wrote by a tool."""

UNKNOWN = "unknown"
"""The source of imported facts that came without one (the established system's word)."""

DEFAULT_CATEGORY = "context"
DEFAULT_CONFIDENCE = 0.5
"""Confidence of a fact without a usable one (as the established system reads it)."""

QUOTE_GONE = "it went with something that was removed or forgotten"
"""Why a fact that messages prove (`provenBy`) has no quote, in words."""

MAX_PROOFS = 50
"""Identities of proving turns that a fact keeps besides those that its evidence quotes; the first ones go."""

ArchiveReason = Literal["replaced", "retired", "evicted", "expired", "stale", "merged", "edited"]

ScopeKind = Literal["user", "project", "session"]

Evidence = dict[str, Any]
"""One proof of a fact: `thread`, `message` (id or identity), `quote`, verbatim, `saidAt` and `order` (in the inbox)."""


class Scope(NamedTuple):
    """Where a fact holds: everywhere (`user`), in one project, or in one conversation (`session`).

    `id`: the project, or the thread; "" for `user`. A project or session fact without an id holds nowhere. Facts of
    different scopes never count as the same, replace, merge or evict each other.
    """

    kind: ScopeKind = "user"
    id: str = ""

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a fact of this scope; none for `user`."""
        return {} if self.kind == "user" else {"scope": self.kind, "scopeId": self.id}


SCOPED = "scoped"
"""The field of the facts that do not hold everywhere; see `memory.scoped`."""

USER_SCOPE = Scope()
"""The scope of a fact that names none: about the user, for good."""

_SCOPE_KINDS: dict[object, ScopeKind] = {"project": "project", "session": "session", "thread": "session"}


def _text_field(name: str) -> Callable[[dict[str, Any]], str]:
    """A reader of one field; "" when it is not text."""

    def read(fields: dict[str, Any]) -> str:
        value = fields.get(name)
        return value if isinstance(value, str) else ""

    return read


_person, _relationship = _text_field("person"), _text_field("relationship")
_scope_id = _text_field("scopeId")

content_of: Callable[[Fact], str] = itemgetter("content")
"""The fact's sentence."""

id_of = _text_field("id")
"""The id; "" for an archive entry without one."""


def category_of(fact: Fact) -> str:
    """The category; `context` when it has none."""
    value = fact.get("category")
    return value if isinstance(value, str) and value else DEFAULT_CATEGORY


def is_correction(fact: Fact) -> bool:
    """Whether it says what was wrong before (`sourceError`), in any category, or its category is `correction`."""
    return fact.get("category") == "correction" or ("sourceError" in fact and bool(source_error(fact)))


def confidence_of(fact: Fact) -> float:
    """The confidence, from 0 to 1 whatever the file says."""
    value = fact.get("confidence")
    if type(value) is float and 0 <= value <= 1:  # the fast path
        return value
    return fact["confidence"] if has_confidence(fact) else DEFAULT_CONFIDENCE


def has_confidence(fact: Fact) -> bool:
    """Whether its confidence is a number from 0 to 1."""
    value = fact.get("confidence")
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


source_of = _text_field("source")
"""The thread it comes from, or `manual`, `agent`, `unknown`; "" when it names none."""


def origin_of(fact: Fact) -> dict[str, Any]:
    """The model and prompt version that extracted it, or where it was imported from."""
    origin = unpacked(fact.get("origin"))
    return origin if isinstance(origin, dict) else {}


def scope_of(fact: Fact) -> Scope:
    """The scope, from `scope` (`thread` is another name of `session`) and `scopeId`; that of the user when absent."""
    name = fact.get("scope")
    if name is None:  # the fast path
        return USER_SCOPE
    kind = _SCOPE_KINDS.get(name) if isinstance(name, str) else None
    return Scope(kind, _scope_id(fact)) if kind else USER_SCOPE


created_by = _text_field("createdBy")
"""The user who brought a project's fact in; "" for a fact of a user's own memory."""

created_at = _text_field("createdAt")
"""When it was added (ISO 8601 text, as all times here; "" when not known)."""

updated_at = _text_field("updatedAt")
"""When a person or an agent last changed its words or category."""

last_confirmed_at = _text_field("lastConfirmedAt")
"""When the user last said it again."""

valid_until = _text_field("validUntil")
"""When it stops being true; "" when it has no such date."""

archived_at = _text_field("archivedAt")
"""When it went to the archive."""


def said_at_of(fact: Fact) -> str:
    """When the latest of its quotes was said; of a fact without such a time, when it was added."""
    value = fact.get("saidAt")
    return value if isinstance(value, str) and value else created_at(fact)


_said_on = _text_field("saidOn")
"""The day on which it was said, where it was said; "" where the UTC day of `saidAt` is the same."""


def month_of(fact: Fact) -> str:
    """The month since which a fact is known, as `2026-03`: when it was said, else stored; "" when neither is known."""
    return month(_said_on(fact) if "saidOn" in fact else said_at_of(fact)[:MONTH_CHARS])


_approved_by = _text_field("approvedBy")
"""Who approved it, of a fact that was doubtful."""


def is_archived(fact: Fact) -> bool:
    """Whether it is an archive entry, however incomplete."""
    return "archivedAt" in fact or "archiveReason" in fact


archive_reason = _text_field("archiveReason")
"""Why it went to the archive, an `ArchiveReason` unless a person wrote another one."""

archive_note = _text_field("archiveNote")
"""The model's or the agent's words on why it went."""


def archived_by_agent(entry: Fact) -> bool:
    """Whether an agent changed or retired it by a tool."""
    return entry.get("archivedBy") == AGENT


replaced_by = _text_field("replacedBy")
"""The id of the fact that took its place; "" when none did."""


def replaces(fact: Fact) -> list[str]:
    """The ids of the facts that it replaces."""
    ids = unpacked(fact.get("replaces"))
    return [fact_id for fact_id in ids if isinstance(fact_id, str)] if isinstance(ids, list) else []


def touched_at(fact: Fact) -> list[str]:
    """The times at which it was added, changed, confirmed or reviewed."""
    return [
        value
        for name in ("createdAt", "updatedAt", "lastConfirmedAt", "reviewedAt")
        if isinstance(value := fact.get(name), str)
    ]


def confirmations_of(fact: Fact) -> int:
    """How often the user said it again."""
    count = fact.get("confirmations")
    return count if type(count) is int and count > 0 else 0


def subject_of(fact: Fact) -> tuple[str, str]:
    """The person it is about and their relationship to the user; both "" for the user."""
    subject = unpacked(fact.get("subject"))
    return (_person(subject), _relationship(subject)) if isinstance(subject, dict) else ("", "")


def person_of(fact: Fact) -> str:
    """The person it is about, folded; "" for the user. Facts about different persons are never the same."""
    return fold(subject_of(fact)[0]) if "subject" in fact else ""


source_error = _text_field("sourceError")
"""What a correction corrects; shown as `(avoid: …)`."""

backstory_of = _text_field("backstory")
"""One sentence of circumstance."""


def asides_of(fact: Fact) -> dict[str, str]:
    """All texts of the fact besides its sentence and its quotes, by the path of the field."""
    asides: dict[str, Any] = {name: fact[name] for name in ("sourceError", "backstory", "archiveNote") if name in fact}
    subject = unpacked(fact.get("subject"))
    if isinstance(subject, dict):
        asides |= {f"subject.{name}": value for name, value in subject.items()}
    return {path: value for path, value in asides.items() if isinstance(value, str)}


def readable_facts(document: Document) -> list[Fact]:
    """The facts that have an id and content, also in a document that `parsing` has not checked."""
    facts = document.get("facts")
    return [
        fact
        for fact in (facts if isinstance(facts, list) else ())
        if isinstance(fact, dict)
        and isinstance(fact.get("content"), str)
        and isinstance(fact_id := fact.get("id"), str)
        and fact_id
    ]


def with_quotes(fact: Fact, change: Callable[[str], str]) -> Fact:
    """The fact with its quotes changed; evidence without a quote is left out."""
    if not isinstance(unpacked(fact.get("evidence")), list):
        return {name: value for name, value in fact.items() if name != "evidence"}
    quoted = [entry for entry in evidence_of(fact) if isinstance(entry.get("quote"), str)]
    return {**fact, "evidence": [{**entry, "quote": change(entry["quote"])} for entry in quoted]}


def evidence_of(fact: Fact) -> list[Evidence]:
    """What proves it; entries that are no objects are skipped."""
    entries = unpacked(fact.get("evidence"))
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def quotes_of(fact: Fact) -> list[str]:
    """The quotes of its evidence."""
    return [entry["quote"] for entry in evidence_of(fact) if isinstance(entry.get("quote"), str)]


def threads_of(fact: Fact) -> list[str]:
    """The threads of its evidence."""
    return [entry["thread"] for entry in evidence_of(fact) if isinstance(entry.get("thread"), str)]


def proven_by(fact: Fact) -> list[str]:
    """The identities of the turns that proved or confirmed it: those that its evidence quotes, then the others."""
    names = unpacked(fact.get("provenBy"))
    others = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return list(dict.fromkeys([*_quoted(fact), *others]))


def with_proofs(fact: Fact, proofs: Iterable[str]) -> Fact:
    """The fact with these identities in `provenBy`, the last MAX_PROOFS: its evidence names the others."""
    quoted = frozenset(_quoted(fact))
    others = [name for name in dict.fromkeys(proofs) if name not in quoted][-MAX_PROOFS:]
    rest = {name: value for name, value in fact.items() if name != "provenBy"}
    return {**rest, "provenBy": others} if others else rest


def with_lost_proofs(fact: Fact, before: Fact) -> Fact:
    """The fact with the messages in `provenBy` that it quoted before and quotes no more."""
    entries = evidence_of(fact)
    lost = [list(_identities(entry))[-1:] for entry in evidence_of(before) if entry not in entries]
    return with_proofs(fact, [*proven_by(fact), *chain.from_iterable(lost)]) if any(lost) else fact


def rests_on(fact: Fact, messages: Container[str]) -> bool:
    """Whether nothing proves it but these messages, given by their identities."""
    entries = evidence_of(fact)
    is_proven = bool(entries or _others(fact, ()))
    return is_proven and all(_is_of(entry, messages) for entry in entries) and not _others(fact, messages)


def without_proofs(fact: Fact, messages: Container[str]) -> Fact:
    """The fact without what these messages prove of it; the same object when they prove nothing."""
    evidence = [entry for entry in evidence_of(fact) if not _is_of(entry, messages)]
    others = _others(fact, messages)
    if len(evidence) == len(evidence_of(fact)) and len(others) == len(_others(fact, ())):
        return fact
    fields = {"evidence": evidence, "provenBy": others}
    rest = {name: value for name, value in fact.items() if name not in fields}
    return rest | {name: value for name, value in fields.items() if value}


def _others(fact: Fact, but: Container[str]) -> list[str]:
    """The identities in `provenBy`, without these."""
    names = fact.get("provenBy")
    return [one for one in names if isinstance(one, str) and one not in but] if isinstance(names, list) else []


def _is_of(entry: Evidence, messages: Container[str]) -> bool:
    return any(name in messages for name in _identities(entry))


def _quoted(fact: Fact) -> Iterator[str]:
    """The identities of the messages that its evidence quotes; of a message without an id it keeps the identity."""
    return (name for entry in evidence_of(fact) for name in _identities(entry))


def _identities(entry: Evidence) -> Iterator[str]:
    thread, message = entry.get("thread"), entry.get("message")
    if isinstance(thread, str) and isinstance(message, str):
        yield identity_of_id(thread, message)
        if is_identity(message):
            yield message


def quotes_any(fact: Fact, thread_id: str, names: Container[str]) -> bool:
    """Whether its evidence names a message of the thread by one of these ids or identities."""
    return any(entry.get("thread") == thread_id and str(entry.get("message")) in names for entry in evidence_of(fact))


def is_manual(fact: Fact) -> bool:
    """Whether a person wrote the fact: no update replaces, retires or evicts it."""
    return fact.get("source") == MANUAL


def is_by_person(fact: Fact) -> bool:
    """Whether a person wrote or approved it; they may permit and order what they like."""
    return is_manual(fact) or bool(_approved_by(fact))


def is_note(fact: Fact) -> bool:
    """Whether an agent wrote it and no quote proves it. (A thread may be called `agent`, too.)"""
    return fact.get("source") == AGENT and not unpacked(fact.get("evidence"))


def is_mergeable(fact: Fact) -> bool:
    """Whether the model may merge it: no correction, not manual, no note, and without an end.

    A note merged with a proven fact would borrow its evidence.
    """
    if is_correction(fact) or "validUntil" in fact:
        return False
    return not is_manual(fact) and not is_note(fact)


def rank(fact: Fact) -> tuple[float, bool, str]:
    """Sorts facts when there is no room for all: by confidence, then corrections first, then the newer."""
    return confidence_of(fact), is_correction(fact), created_at(fact)


def by_id(document: Document) -> dict[str, Fact]:
    """The facts by their ids, in order."""
    return {fact["id"]: fact for fact in facts_of(document)}


def with_id(facts: Iterable[Fact], fact_id: str) -> Fact | None:
    """The first of these facts with this id."""
    return next((fact for fact in facts if fact.get("id") == fact_id), None)


def ids_in_use(document: Document) -> set[str]:
    """The ids of all facts, archived ones and those that stand apart too: no new fact gets one of them."""
    apart = [fact for field in (suspended, doubtful, refused) for fact in field.facts_of(document)]
    apart += facts_in(document, SCOPED)
    archived = {value for entry in (*archive_of(document), *apart) if isinstance(value := entry.get("id"), str)}
    return archived | {fact["id"] for fact in facts_of(document)}


def archived(fact: Fact, reason: ArchiveReason, now: str, *, note: str = "", replaced_by: str = "") -> Fact:
    """A fact as the archive keeps it. `note`: the model's words; `replaced_by`: the id of the fact in its place."""
    entry = {**fact, "archivedAt": now, "archiveReason": reason}
    if note:
        entry["archiveNote"] = note
    if replaced_by:
        entry["replacedBy"] = replaced_by
    return entry


def archive_with(archive: Sequence[Fact], entries: Sequence[Fact], cap: int) -> list[Fact]:
    """A new archive with these entries at its end; the oldest go when there are more than `cap`."""
    return [*archive, *entries][-cap:] if cap else []
