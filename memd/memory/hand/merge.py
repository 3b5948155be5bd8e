"""Merge: what of a parcel comes into a document. Pure: the same parcel a second time changes nothing.

What the memory holds stays as it is. What says the same is known already, what the memory has moved on from
(`superseded`) or was asked to lose (`removed`) stays away, and what fails a gate or finds no room is refused, counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memd.config import ApplySettings
from memd.memory import ledger, removed
from memd.memory.apply import MAX_SUMMARY_CHARS
from memd.memory.document import SECTIONS, Document, Fact, complete, iso, moment, rank, summary
from memd.memory.facts import aside, new_id
from memd.memory.gates.orders import refused_as
from memd.memory.gates.refusal import content_refusal
from memd.memory.gates.uploads import without_upload_events
from memd.memory.hand.formats import Parcel
from memd.memory.said import MAX_QUOTE_CHARS
from memd.memory.text import fold, normal_key, one_line
from memd.push.redaction import holds_secret, redact

UNKNOWN = "unknown"
"""The source of a fact that came without one (the established system's word)."""

_OVER = frozenset({"edited", "replaced", "retired", "merged"})
"""Reasons of the archive that mean: this is not so any more."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Merged:
    """The next document, of the same revision when nothing came in; and what became of each piece.

    `known`: facts that stand there already; `summaries`: taken, where there was none; `archived`: entries of the
    archive; `refused`: by reason, summaries and archive included.
    """

    document: Document
    added: tuple[str, ...]
    known: int
    summaries: int
    archived: int
    refused: dict[str, int]


def merge(document: Document, parcel: Parcel, user_id: str, now: datetime, settings: ApplySettings) -> Merged:
    """Merge a parcel into the document of this user."""
    old = complete(document)
    merging = _Merging(old, parcel, now, settings)
    fields: dict[str, Any] = {"facts": [*old["facts"], *merging.facts()]}
    sections, summaries = merging.summaries()
    archived = merging.archived()
    fields |= sections
    if archived:
        both = sorted([*archived, *old["archive"]], key=lambda entry: str(entry.get("archivedAt", "")))
        fields["archive"] = both[-settings.archive_cap :] if settings.archive_cap else []
    if parcel.user_id == user_id:  # it comes home: what was taken in and what was removed stays so
        fields |= _ledger(old, parcel, settings.ledger_cap)
        fields |= _tombstones(old, fields["facts"], parcel)
    changed = any(old.get(name) != value for name, value in fields.items())
    if changed:
        fields |= {"revision": old["revision"] + 1, "lastUpdated": iso(now)}
    return Merged(
        {**old, **fields} if changed else old,
        tuple(merging.added),
        merging.known,
        summaries,
        len(archived),
        dict(merging.refused),
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

    def facts(self) -> list[Fact]:
        """The facts that come in, in the order of the parcel; where there is no room for all, those of highest rank."""
        keys = {_key(fact) for fact in self._old["facts"]}
        over = {_key(entry) for entry in self._old["archive"] if entry.get("archiveReason") in _OVER}
        fresh: list[Fact] = []
        for fact in self._parcel.facts:
            clean = self._clean(fact)
            if _key(clean) in keys:
                self.known += 1
            elif reason := self._refusal(fact, clean) or ("superseded" if _key(clean) in over else None):
                self.refused[reason] += 1
            else:
                keys.add(_key(clean))
                fresh.append(clean)
        room = max(0, self._settings.max_facts - len(self._old["facts"]))
        if len(fresh) > room:
            self.refused["memory_full"] += len(fresh) - room
            best = set(map(id, sorted(fresh, key=rank, reverse=True)[:room]))
            fresh = [fact for fact in fresh if id(fact) in best]
        return [self._named(place, fact) for place, fact in enumerate(fresh)]

    def summaries(self) -> tuple[dict[str, Any], int]:
        """The sections in which summaries were taken, and how many were."""
        sections: dict[str, Any] = {}
        count = 0
        for name, entry in self._parcel.summaries.items():
            text = without_upload_events(one_line(entry["summary"]))
            ours = summary(self._old, name)
            if not text or text == ours:
                continue
            reason = "summary_known" if ours else _summary_refusal(text)
            if reason:
                self.refused[reason] += 1
                continue
            section = sections.setdefault(SECTIONS[name], dict(self._old[SECTIONS[name]]))
            section[name] = {"summary": text, "updatedAt": self._time(entry.get("updatedAt"))}
            count += 1
        return sections, count

    def archived(self) -> list[Fact]:
        """The entries of the parcel's archive that ours does not have."""
        have = {_version(entry) for entry in self._old["archive"]}
        taken: list[Fact] = []
        for entry in self._parcel.archive:
            if _version(entry) in have:
                continue
            if reason := self._flaw(entry, one_line(entry["content"])):
                self.refused[f"archive_{reason}"] += 1
                continue
            have.add(_version(entry))
            taken.append(_with_safe_evidence(entry))
        return taken

    def _refusal(self, fact: Fact, clean: Fact) -> str | None:
        until = moment(fact.get("validUntil"))
        if until is not None and until < self._now:
            return "expired"
        if self._parcel.source != "memd" and clean["confidence"] < self._settings.confidence_threshold:
            return "low_confidence"
        return self._flaw(fact, clean["content"])

    def _flaw(self, fact: Fact, content: str) -> str | None:
        """Why this may not be remembered, whoever kept it."""
        if reason := content_refusal(content, self._settings) or removed.refusal(self._removed, content):
            return reason
        if any(map(holds_secret, _asides(fact))):
            return "secret"
        # What stood there before invisible characters were taken out counts as well.
        return next(filter(None, map(refused_as, (fact["content"], *_asides(fact)))), None)

    def _clean(self, fact: Fact) -> Fact:
        """The fact as the document keeps it, still with the id that it came with."""
        category = one_line(str(fact.get("category") or "")).casefold()
        source = fact.get("source")
        clean: Fact = {
            "id": fact.get("id"),
            "content": one_line(fact["content"]),
            "category": category if category in self._settings.categories else "context",
            "confidence": self._confidence(fact.get("confidence")),
            "createdAt": self._time(fact.get("createdAt")),
            "source": one_line(source) if isinstance(source, str) and source.strip() else UNKNOWN,
        }
        if self._parcel.source == "memd":
            return _with_safe_evidence({**fact, **clean})
        if moment(fact.get("updatedAt")) is not None:
            clean["updatedAt"] = self._time(fact["updatedAt"])
        if isinstance(fact.get("sourceError"), str) and (error := aside(fact["sourceError"])):
            clean["sourceError"] = error
        return {**clean, "origin": {"importedFrom": self._parcel.source, "importedAt": iso(self._now)}}

    def _confidence(self, value: object) -> float:
        """What came without a confidence was believed by whoever kept it: just enough to be stored."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            return self._settings.confidence_threshold
        return value

    def _time(self, value: object) -> str:
        found = moment(value)
        return iso(found if found is not None and found <= self._now else self._now)

    def _named(self, place: int, fact: Fact) -> Fact:
        """The fact with an id that nothing else here has; its own where it can keep it."""
        used = {entry.get("id") for entry in (*self._old["facts"], *self._old["archive"])} | set(self.added)
        own = fact["id"]
        keeps = self._parcel.source != "mem0" and isinstance(own, str) and 0 < len(own) <= 64 and own not in used
        chosen = own if keeps else new_id(self._old, self._old["revision"] + 1, fact["content"], place, used)
        self.added.append(chosen)
        return {**fact, "id": chosen}


def _key(fact: Fact) -> Key:
    """Equal keys, equal facts: the same said of the same person."""
    subject = fact.get("subject")
    person = subject.get("person") if isinstance(subject, dict) else ""
    return normal_key(fact["content"]), fold(person) if isinstance(person, str) else ""


def _version(entry: Fact) -> tuple[object, ...]:
    return str(entry.get("id")), normal_key(entry["content"]), str(entry.get("archivedAt"))


def _asides(fact: Fact) -> Iterator[str]:
    subject = fact.get("subject")
    about = subject.values() if isinstance(subject, dict) else ()
    for value in (fact.get("sourceError"), fact.get("backstory"), fact.get("archiveNote"), *about):
        if isinstance(value, str):
            yield value


def _with_safe_evidence(fact: Fact) -> Fact:
    """Quotes were said in another place under other settings: what is secret here is cut out of them."""
    pieces = fact.get("evidence")
    if not isinstance(pieces, list):
        return {name: value for name, value in fact.items() if name != "evidence"}
    quoted = [piece for piece in pieces if isinstance(piece, dict) and isinstance(piece.get("quote"), str)]
    return {**fact, "evidence": [{**one, "quote": redact(one["quote"])[0][:MAX_QUOTE_CHARS]} for one in quoted]}


def _summary_refusal(text: str) -> str | None:
    if len(text) > MAX_SUMMARY_CHARS:
        return "summary_too_long"
    reason = "secret" if holds_secret(text) else refused_as(text)
    return f"summary_{reason}" if reason else None


def _ledger(old: Document, parcel: Parcel, cap: int) -> dict[str, Any]:
    ours: ledger.Ledger = old["ledger"]
    if all(set(names) <= set(ours.get(thread, ())) for thread, names in parcel.ledger.items()):
        return {}
    both: ledger.Ledger = {}
    for part in (parcel.ledger, ours):
        for thread, names in part.items():
            both = ledger.taken(both, thread, names, cap)
    return {"ledger": both}


def _tombstones(old: Document, facts: list[Fact], parcel: Parcel) -> dict[str, Any]:
    held = removed.hashes(old) | {removed.fact_hash(fact["content"]) for fact in facts}
    new = [entry for entry in parcel.removed if entry["hash"] not in held]
    return {removed.FIELD: [*new, *old.get(removed.FIELD, ())][-removed.MAX_REMOVED :]} if new else {}
