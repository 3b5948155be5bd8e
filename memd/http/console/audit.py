"""Audit: what the rules find in a memory, each finding with the changes that mend it, where there are any."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from threading import Lock

from memd.context import Bucket
from memd.errors import FactUnknown, Rejected
from memd.http.console.page import Shown, Visit, address
from memd.http.service import Service
from memd.memory import scoped
from memd.memory.document import Document
from memd.memory.facts import content_of, scope_of, with_id
from memd.memory.hand.by_hand import bucket_of
from memd.memory.hand.editing import Editing
from memd.memory.store.protocol import Loaded
from memd.ops.audit import Finding, audit_said
from memd.ops.audit import audit as audit_document

PATH = "/console/audit"
ROWS = 50
KEPT = 50
"""Memories whose findings are kept: the rules take a quarter of a second for a full one, two for all that was said."""

RULE_WORDS = {
    "junk": "Says nothing about the user",
    "duplicate": "Says what another fact says",
    "echo": "Learned from memd's own block",
    "secret": "Holds a key, a password or a number of a card",
    "stale": "Past its time, or long not confirmed",
    "contradiction": "Contradicts another fact",
    "withheld": "Its end was asked for, and a person decides",
    "unevidenced": "No quote proves it",
    "instruction": "Tells the assistant what to do",
    "markup": "Has tags or invisible characters",
    "malformed": "A field of the wrong type, read as absent",
}
"""What each rule finds."""

DETAILS: Mapping[str, str] = {
    r"exact, of (?P<other>\S+)": "The same words as {other}",
    r"normalised, of (?P<other>\S+)": "The same words as {other}, spelled differently",
    r"near, of (?P<other>\S+)": "Nearly the same words as {other}",
    r"by number, of (?P<other>\S+)": "Another number than {other}",
    r"by name, of (?P<other>\S+)": "Another name than {other}",
    r"by negation, of (?P<other>\S+)": "One of it and {other} denies the other",
    r"not confirmed since (?P<day>\S+)": "Not confirmed since {day}",
    r"valid until (?P<day>\S+)": "Valid until {day}",
    r"imported from (?P<place>.+)": "Imported from {place}, without a quote",
    r"too_short": "Too short",
    r"too_long": "Too long",
    r"upload_event": "Only tells of an uploaded file",
    r"no statement": "No statement",
    r"about the conversation": "Only about the conversation",
    r"quotes the injected block": "Quotes the injected block",
    r"only the injected block proves it": "Only the injected block proves it",
    r"no quote": "No quote",
    r"an agent's note": "An agent's note",
    r"an instruction, or hidden text": "An instruction, or hidden text",
    r"tags or invisible characters": "Tags or invisible characters",
}
"""The details of the rules, and the words for them; any other detail is shown as it is."""

MENDS = ("remove", "confirm", "restore", "drop")
"""The changes that mend: remove for good, confirm by hand, take back what was suspended, drop what is doubtful."""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding as a page shows it. `words`, `values`: its detail. `fact`: the address of its fact, if it has a page.

    `text` None: not for this login. `mends`: which of MENDS may mend it.
    """

    finding: Finding
    words: str
    values: Mapping[str, str]
    fact: str
    other: str
    text: str | None
    mends: tuple[str, ...]


def audit(visit: Visit) -> Shown:
    """The page: the findings of all rules or of one; those in what was said for who asks for them and may read it."""
    bucket, with_said = bucket_of(visit.user, visit.agent), bool(visit.value("said"))
    if with_said:
        visit.require("said")
    editing = Editing(visit.service.settings)
    loaded = editing.load(bucket)
    found = [
        finding
        for finding in _kept(visit.service).findings(visit.service, editing, bucket, loaded, with_said=with_said)
        if visit.may("person") or not finding.place.startswith("scoped[")
    ]
    rule = visit.value("rule")
    chosen = [finding for finding in found if not rule or finding.rule == rule]
    start = visit.start()
    end = start + ROWS
    place = {"user": visit.user, "agent": visit.agent, "said": "1" if with_said else ""}
    data = {
        "user": visit.user,
        "agent": visit.agent,
        "place": place,
        "with_said": with_said,
        "rows": list(rows_of(visit, loaded.document, chosen[start:end])),
        "count": len(found),
        "rules": Counter(finding.rule for finding in found).most_common(),
        "rule": rule,
        "rule_words": RULE_WORDS,
        "details": frozenset(DETAILS.values()),
        "more_href": address(PATH, **place, rule=rule, after=end) if end < len(chosen) else "",
    }
    return Shown("audit.html", data)


def rows_of(visit: Visit, document: Document, findings: Sequence[Finding]) -> Iterator[FindingRow]:
    """The findings with their words, their facts and what mends them."""
    for finding in findings:
        words, values = _in_words(finding.detail)
        hidden = finding.place.startswith("refused") and not visit.may("said")
        yield FindingRow(
            finding,
            words,
            values,
            _address(visit, document, finding),
            address("/console/fact", user=visit.user, agent=visit.agent, id=values.get("other", ""))
            if "other" in values
            else "",
            None if hidden else finding.text,
            mends_of(finding) if visit.may("person") else (),
        )


def mends_of(finding: Finding) -> tuple[str, ...]:
    """Which changes may mend a finding. Removing one of two facts that say the same would remove both."""
    part = finding.place.partition("[")[0]
    if not finding.fact_id:
        return ()
    if part == "suspended":
        return ("restore", "remove")
    if part == "doubtful":
        return ("drop",)
    if part not in ("facts", "scoped"):
        return ("remove",)
    if finding.rule == "duplicate":
        return ("remove",) if finding.detail.startswith("near") else ()
    return ("confirm", "remove") if finding.rule in ("stale", "unevidenced", "instruction") else ("remove",)


def mend(visit: Visit) -> str:
    """Mend a finding in the way that the form names."""
    memd, user_id, agent, fact_id = visit.service.memd, visit.user, visit.agent, visit.value("id")
    match visit.value("how"):
        case "remove":
            memd.remove_fact(user_id, fact_id, agent_name=agent)
            visit.say("The fact is removed")
        case "confirm":
            fact = with_id(memd.facts(user_id, agent), fact_id)
            if fact is None:
                raise FactUnknown("E_FACT_ID", "the memory has no fact with this id", "id")
            memd.edit_fact(user_id, fact_id, content=content_of(fact), agent_name=agent)
            visit.say("The fact is confirmed, and counts as written by hand now")
        case "restore":
            memd.restore_fact(user_id, fact_id, agent_name=agent)
            visit.say("The fact is back")
        case "drop":
            memd.drop_fact(user_id, fact_id, agent_name=agent)
            visit.say("The fact is dropped")
        case _:
            raise Rejected("E_HOW", f"how is one of {', '.join(MENDS)}", "how")
    return address(PATH, user=user_id, agent=agent, rule=visit.value("rule"), said=visit.value("said"))


class KeptFindings:
    """The findings of the memories that were looked at last, for as long as their documents do not change."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: OrderedDict[tuple[str, ...], list[Finding]] = OrderedDict()

    def findings(
        self, service: Service, editing: Editing, bucket: Bucket, loaded: Loaded, *, with_said: bool
    ) -> list[Finding]:
        """The findings in a memory as loaded, and in what was said: of today, as some rules look at the day."""
        now = datetime.now(UTC)
        key = (bucket.user_id, bucket.agent_name, str(loaded.content_hash), str(now.date()), str(with_said))
        with self._lock:
            if key in self._found:
                return self._found[key]
        found = audit_document(loaded.document, now, service.settings.apply)
        if with_said:
            found += audit_said(editing.said(bucket, loaded.document))
        with self._lock:
            self._found[key] = found
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
        return found


@cache
def _kept(_: Service) -> KeptFindings:
    return KeptFindings()


def _in_words(detail: str) -> tuple[str, dict[str, str]]:
    for pattern, words in DETAILS.items():
        if match := re.fullmatch(pattern, detail):
            return words, match.groupdict()
    return detail, {}


def _address(visit: Visit, document: Document, finding: Finding) -> str:
    """The address of the finding's fact; empty for one that has no page."""
    part = finding.place.partition("[")[0]
    place = {"user": visit.user, "agent": visit.agent, "id": finding.fact_id}
    if part in ("facts", "archive"):
        return address("/console/fact", **place)
    if part == "scoped" and (fact := with_id(scoped.facts_of(document), finding.fact_id)):
        scope = scope_of(fact)
        name = "thread" if scope.kind == "session" else "project"
        return address("/console/fact", **place, **{name: scope.id})
    return ""
