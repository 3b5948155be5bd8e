"""Imports: applies a parcel to a document. Pure: the same parcel a second time changes nothing.

The facts of the memory stay unchanged. A fact that says the same counts as known; a fact that the memory has replaced
(`superseded`) or that a person removed (`removed`) stays out; a fact that fails a gate is refused and counted. More
facts than the memory has room for are refused together, unless the caller wants the best of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memd.config import MOST_FACTS, ApplySettings
from memd.errors import Rejected
from memd.memory import doubtful, ledger, removed, scoped
from memd.memory.categories import category_or_default
from memd.memory.document import (
    Document,
    Fact,
    archive_of,
    complete,
    facts_of,
    ledger_of,
    revised,
    revision_of,
    summary,
    with_summary,
)
from memd.memory.duplicates import key_of
from memd.memory.fact_ids import new_id
from memd.memory.facts import (
    SCOPED,
    UNKNOWN,
    archive_reason,
    archived_at,
    asides_of,
    category_of,
    confidence_of,
    content_of,
    created_at,
    has_confidence,
    id_of,
    ids_in_use,
    is_by_person,
    person_of,
    quotes_of,
    rank,
    scope_of,
    source_error,
    source_of,
    updated_at,
    valid_until,
    with_quotes,
)
from memd.memory.gates.refusal import hand_refusal, sentence_refusal, summary_refusal
from memd.memory.gates.uploads import without_upload_events
from memd.memory.hand.formats import Parcel
from memd.memory.listing import as_stored
from memd.memory.new_facts import base_fact
from memd.memory.quotes import MAX_QUOTE_CHARS
from memd.memory.said.changes import SaidChange
from memd.memory.text import aside, one_line
from memd.push.redaction import redact
from memd.push.times import iso, moment

_OVER = frozenset({"edited", "replaced", "retired", "merged"})
"""Archive reasons of facts that no longer hold."""


@dataclass(frozen=True, slots=True)
class MergedDocument:
    """The next document, of the same revision when nothing was imported, and the result for each item.

    `known`: facts that the memory had already; `summaries`: summaries imported into empty places; `archived`: imported
    archive entries; `refused`: by reason, with summaries and archive entries.
    """

    document: Document
    added: tuple[str, ...]
    known: int
    summaries: int
    archived: int
    refused: dict[str, int]
    said: SaidChange | None = None
    turns: int = 0


def merge(
    document: Document, parcel: Parcel, user_id: str, now: datetime, settings: ApplySettings, *, best: bool = False
) -> MergedDocument:
    """Merge a parcel into the document of this user.

    `best`: of more facts than there is room for, take the best. Without it they raise Rejected.
    """
    old = complete(document)
    merging = _Merging(old, parcel, now, settings)
    facts = [*facts_of(old), *merging.facts(best=best)]
    merged, summaries = merging.with_summaries()
    fields: dict[str, Any] = {"facts": facts}
    entries = merging.archived()
    if entries:
        both = sorted([*entries, *archive_of(old)], key=archived_at)
        fields["archive"] = both[-settings.archive_cap :] if settings.archive_cap else []
    if parcel.user_id == user_id:  # the user's own export: import its ledger and tombstones too
        fields["ledger"] = ledger.joined(parcel.ledger, ledger_of(old), settings.ledger_cap)
        if tombstones := removed.imported(old, facts, parcel.removed):
            fields["removed"] = tombstones
    doubted = merging.doubtful(facts)
    if doubted != doubtful.facts_of(old):
        fields[doubtful.FIELD] = doubted
    if apart := merging.scoped():
        fields[SCOPED] = apart
    changed = merged is not old or any(old.get(name) != value for name, value in fields.items())
    return MergedDocument(
        revised(merged, iso(now), **fields) if changed else old,
        tuple(merging.added),
        merging.known,
        summaries,
        len(entries),
        dict(+merging.refused),
    )


class _Merging:
    """One parcel on its way into one document."""

    def __init__(self, old: Document, parcel: Parcel, now: datetime, settings: ApplySettings) -> None:
        self._old = old
        self._parcel = parcel
        self._now = now
        self._settings = settings
        self._removed = removed.hashes(old)
        self.added: list[str] = []
        self.known = 0
        self.refused: Counter[str] = Counter(parcel.refused)

    def facts(self, *, best: bool) -> list[Fact]:
        """The facts to import, in the order of the parcel; without room for all, those of highest rank if `best`."""
        keys = set(map(key_of, facts_of(self._old)))
        over = {key_of(entry) for entry in archive_of(self._old) if archive_reason(entry) in _OVER}
        fresh: list[Fact] = []
        for fact in self._parcel.facts:
            clean = self._clean(fact)
            key = key_of(clean)
            if key in keys:
                self.known += 1
            elif reason := self._refusal(fact, clean) or ("superseded" if key in over else None):
                self.refused[reason] += 1
            else:
                keys.add(key)
                fresh.append(clean)
        have, most = len(facts_of(self._old)), self._settings.max_facts
        room = max(0, most - have)
        if len(fresh) > room and not best:
            raise Rejected(
                "E_IMPORT_FULL",
                f"the memory has {have} facts and would get {len(fresh)} more, but apply.max_facts is {most}: raise it "
                f"(at most {MOST_FACTS}), or import only the best (--best)",
                "facts",
                most,
            )
        if len(fresh) > room:
            self.refused["memory_full"] += len(fresh) - room
            chosen = set(map(id, sorted(fresh, key=rank, reverse=True)[:room]))
            fresh = [fact for fact in fresh if id(fact) in chosen]
        return [self._named(place, fact) for place, fact in enumerate(fresh)]

    def with_summaries(self) -> tuple[Document, int]:
        """The document with the parcel's summaries in its empty places, and their number."""
        document, count = self._old, 0
        for name, entry in self._parcel.summaries.items():
            text = without_upload_events(one_line(entry["summary"]))
            ours = summary(self._old, name)
            if not text or text == ours:
                continue
            if reason := "known" if ours else summary_refusal(entry["summary"], text):
                self.refused[f"summary_{reason}"] += 1
                continue
            document = with_summary(document, name, text, self._past(entry.get("updatedAt")))
            count += 1
        return document, count

    def archived(self) -> list[Fact]:
        """The entries of the parcel's archive that ours does not have."""
        have = set(map(_version, archive_of(self._old)))
        taken: list[Fact] = []
        for entry in map(as_stored, self._parcel.archive):
            version = _version(entry)
            if version in have:
                continue
            if reason := self._flaw(entry, one_line(content_of(entry)), person_of(entry)):
                self.refused[f"archive_{reason}"] += 1
                continue
            have.add(version)
            taken.append(_with_safe_evidence(entry))
        return taken

    def doubtful(self, facts: Sequence[Fact]) -> list[Fact]:
        """The doubtful facts of both, without those that `facts`, the merged ones, have already."""
        ours = doubtful.facts_of(self._old)
        keys = set(map(key_of, (*facts, *ours)))
        taken: list[Fact] = []
        for fact in self._parcel.doubtful:
            clean = self._clean(fact)
            if key_of(clean) in keys:
                self.known += 1
            elif reason := self._flaw(fact, content_of(clean), person_of(clean)):
                self.refused[f"doubtful_{reason}"] += 1
            else:
                keys.add(key_of(clean))
                named = self._with_id(len(taken), clean, self._ids_in_use(taken))
                taken.append({**named, "doubtfulAt": self._past(fact.get("doubtfulAt"))})
        if taken:
            ours = sorted([*taken, *ours], key=lambda fact: str(fact.get("doubtfulAt")))
        return doubtful.latest(ours, self._now) if taken else ours

    def scoped(self) -> list[Fact]:
        """The scoped facts of both, each scope apart; empty when none is imported."""
        ours = scoped.facts_of(self._old)
        keys = {(scope_of(fact), key_of(fact)) for fact in ours}
        taken: list[Fact] = []
        for fact in self._parcel.scoped:
            clean = self._clean(fact)
            key = scope_of(clean), key_of(clean)
            if key in keys:
                self.known += 1
            elif reason := self._refusal(fact, clean):
                self.refused[f"scoped_{reason}"] += 1
            else:
                keys.add(key)
                taken.append(self._with_id(len(taken), clean, self._ids_in_use(taken)))
        if not taken:
            return []
        kept, many = scoped.latest([*taken, *ours])
        self.refused["memory_full"] += len(many)
        left = set(map(id_of, kept))
        self.added += [id_of(fact) for fact in taken if id_of(fact) in left]
        return kept

    def _refusal(self, fact: Fact, clean: Fact) -> str | None:
        until = moment(valid_until(fact))
        if until is not None and until < self._now:
            return "expired"
        if self._parcel.source != "memd" and confidence_of(clean) < self._settings.confidence_threshold:
            return "low_confidence"
        return self._flaw(fact, content_of(clean), person_of(clean))

    def _flaw(self, fact: Fact, content: str, person: str) -> str | None:
        """The gate that refuses a fact or an archive entry; None when it passes."""
        asides = tuple(asides_of(fact).values())
        of_person = self._parcel.source == "memd" and (is_by_person(fact) or "doubtfulWhy" in fact)
        given = content_of(fact), content, self._settings, asides
        gate = hand_refusal(*given) if of_person else sentence_refusal(*given, quotes_of(fact)[:1])
        return gate or removed.refusal(self._removed, content, person)

    def _clean(self, fact: Fact) -> Fact:
        """The fact in the form of the document, still with its imported id."""
        # The other memory kept this fact without a confidence: give it just enough to be stored.
        confidence = confidence_of(fact) if has_confidence(fact) else self._settings.confidence_threshold
        clean = base_fact(
            id_of(fact),
            one_line(content_of(fact)),
            category_or_default(category_of(fact), self._settings.categories, content_of(fact), person_of(fact)),
            confidence,
            self._past(created_at(fact)),
            one_line(source_of(fact)) or UNKNOWN,
        )
        if self._parcel.source == "memd":
            return _with_safe_evidence({**as_stored(fact), **clean})
        if moment(updated_at(fact)) is not None:
            clean["updatedAt"] = self._past(updated_at(fact))
        if error := aside(source_error(fact)):
            clean["sourceError"] = error
        return {**clean, "origin": {"importedFrom": self._parcel.source, "importedAt": iso(self._now)}}

    def _past(self, value: object) -> str:
        """A time in the document's format; the current time when it is unknown or in the future."""
        time = moment(value)
        return iso(time if time is not None and time <= self._now else self._now)

    def _named(self, place: int, fact: Fact) -> Fact:
        """The fact with a unique id, which is noted as added."""
        named = self._with_id(place, fact, self._ids_in_use(()))
        self.added.append(id_of(named))
        return named

    def _ids_in_use(self, others: Sequence[Fact]) -> set[str]:
        return ids_in_use(self._old) | set(self.added) | set(map(id_of, others))

    def _with_id(self, place: int, fact: Fact, used: set[str]) -> Fact:
        """The fact with a unique id: its own id if that is free."""
        own = id_of(fact)
        keeps = self._parcel.keeps_ids and 0 < len(own) <= 64 and own not in used
        fact_id = own if keeps else new_id(self._old, revision_of(self._old) + 1, content_of(fact), place, used)
        return {**fact, "id": fact_id}


def _version(entry: Fact) -> tuple[object, ...]:
    return id_of(entry), key_of(entry), archived_at(entry)


def _with_safe_evidence(fact: Fact) -> Fact:
    """The fact without the secrets in its quotes, which were stored under other settings."""
    return with_quotes(fact, lambda quote: redact(quote)[0][:MAX_QUOTE_CHARS])
