"""A user's timeline: what was learned, replaced, retired, evicted and forgotten, by day, and what was believed then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from memd.errors import Rejected
from memd.http.console.page import Shown, Visit, address
from memd.http.console.user import SUMMARIES
from memd.memory.document import Document, Fact, archive_of, facts_of, summaries_of
from memd.memory.facts import (
    USER_SCOPE,
    archive_note,
    archive_reason,
    archived_at,
    category_of,
    confidence_of,
    content_of,
    id_of,
    replaced_by,
    scope_of,
    with_id,
)
from memd.memory.whom import whose
from memd.recall.history import CHANGE_KINDS, ChangeKind, DayOfChanges, MemoryChange, history
from memd.recall.past import as_of
from memd.recall.why import REASONS

PATH = "/console/timeline"
ROWS = 50
"""Changes on one page; a day is never cut, so it may have more."""

BELIEVED = 200
"""Facts of a past memory on one page."""

WIDTH, HEIGHT = 720.0, 96.0
"""Of the plot, in its own units."""

MOST_COLUMNS = 92
"""Bars of the plot at most: days, or weeks, or 30 days each, or longer."""

GAPS = {
    "archive_full": "The archive keeps {count} facts: some that were believed then may no longer be in it.",
    "timeless": "Left out: archived facts of which nobody knows when they went ({count}).",
    "ageless": "Shown, though nobody knows since when they were believed: facts ({count}).",
    "removed": "Facts that were removed since, whose words are gone: {count}.",
    "summaries": "Summaries keep their last {count} versions; not known are those of: {names}.",
}
"""The sentence for each kind of `past.Gap`, as keys of the translations."""


class Column(NamedTuple):
    """One bar of the plot: the days that it stands for (the end excluded), and its changes by kind."""

    since: date
    until: date
    counts: tuple[int, ...]


class Rect(NamedTuple):
    """A piece of a bar, in the units of the plot; `kind`: the place of the kind in CHANGE_KINDS, from 1 on.

    `since`, `number`: what it shows.
    """

    x: float
    y: float
    width: float
    height: float
    kind: int
    since: date
    number: int


class ChangeRow(NamedTuple):
    """A change as the page shows it. `content`: empty for what was forgotten. `reason`: words, a key of the
    translations. `successor`, `successor_id`: what took its place. `archived`: names the version to bring back; empty
    where nothing can be brought back.
    """

    at: datetime
    kind: ChangeKind
    content: str = ""
    category: str = ""
    fact_id: str = ""
    reason: str = ""
    note: str = ""
    successor: str = ""
    successor_id: str = ""
    archived: str = ""

    @property
    def place(self) -> int:
        """The place of its kind, from 1 on: its colour."""
        return CHANGE_KINDS.index(self.kind) + 1


class BeliefRow(NamedTuple):
    """A fact that was believed then. `ended`: what has become of it; None while it is believed."""

    content: str
    category: str
    confidence: float
    fact_id: str
    ended: ChangeRow | None


def timeline(visit: Visit) -> Shown:
    """The page. `at` (a day) or `day` (days after the first change): the day whose memory is shown."""
    document = visit.service.memd.seen_document(visit.user, agent_name=visit.agent)
    days = history(document)
    today = datetime.now(UTC).date()
    first = min([today, *(found.day for found in days[-1:])])
    kind = visit.value("kind")
    rows, more = _rows(visit, [found for found in days if not kind or found.numbers[_checked(kind)]])
    chosen = _chosen_day(visit, first, today)
    columns = columns_of(days, first, today)
    data = {
        "user": visit.user,
        "agent": visit.agent,
        "kinds": CHANGE_KINDS,
        "kind": kind,
        "totals": {name: sum(found.numbers[name] for found in days) for name in CHANGE_KINDS},
        "days": [
            (found.day, [row_of(change) for change in found.changes if kind in ("", change.kind)]) for found in rows
        ],
        "more_href": more,
        "first": first,
        "today": today,
        "span": (today - first).days,
        "columns": columns,
        "rects": rects_of(columns),
        "plot": {"width": WIDTH, "height": HEIGHT, "mark": _place(chosen, first, today) if chosen else None},
        "can_restore": visit.may("person"),
        "chosen": chosen,
        "past": _past(visit, document, days, chosen) if chosen else None,
    }
    return Shown("timeline.html", data)


def bring_back(visit: Visit) -> str:
    """Bring an archived fact back by hand: what took its place says it again, else it is added anew."""
    memd, user, agent = visit.service.memd, visit.user, visit.agent
    document = memd.seen_document(user, agent_name=agent)
    fact_id, at = visit.value("id"), visit.value("archived")
    found = (entry for entry in archive_of(document) if (id_of(entry), archived_at(entry)) == (fact_id, at))
    entry = next(found, None)
    if entry is None or not restorable(entry):
        raise Rejected("E_FACT_ID", "the archive has no such fact that could be brought back", "id")
    successor = _living_successor(document, entry)
    if successor is None:
        memd.add_fact(user, content_of(entry), category=category_of(entry), agent_name=agent)
    else:
        memd.edit_fact(user, id_of(successor), content=content_of(entry), category=category_of(entry), agent_name=agent)
    visit.say("The fact is back, as a person's word")
    return address(PATH, user=user, agent=agent)


def restorable(entry: Fact) -> bool:
    """Whether an archived fact can be brought back by hand, which keeps its words and its category, nothing else."""
    return bool(id_of(entry)) and scope_of(entry) == USER_SCOPE and not whose(entry)


def _living_successor(document: Document, entry: Fact) -> Fact | None:
    """The fact that stands in the place of an archived one today. One that was merged has no place of its own."""
    if archive_reason(entry) not in ("replaced", "edited"):
        return None
    versions = {id_of(one): one for one in archive_of(document)}
    name, seen = replaced_by(entry) or id_of(entry), set[str]()
    while name and name not in seen:
        seen.add(name)
        living = with_id(facts_of(document), name)
        if living is not None:
            return living
        name = replaced_by(versions[name]) if name in versions else ""
    return None


def row_of(change: MemoryChange) -> ChangeRow:
    """A change as the page shows it."""
    fact, successor = change.fact, change.successor
    if fact is None:
        return ChangeRow(change.at, change.kind)
    row = ChangeRow(change.at, change.kind, content_of(fact), category_of(fact), id_of(fact))
    if change.kind == "learned":
        return row
    reason = archive_reason(fact)
    return row._replace(
        reason=REASONS.get(reason, reason),
        note=archive_note(fact),
        successor=content_of(successor) if successor else "",
        successor_id=id_of(successor) if successor else "",
        archived=archived_at(fact) if restorable(fact) else "",
    )


def columns_of(days: Sequence[DayOfChanges], first: date, today: date) -> list[Column]:
    """The bars of the plot, from the first day to today."""
    span = (today - first).days + 1
    width = next((days for days in (1, 7, 30) if span <= MOST_COLUMNS * days), -(-span // MOST_COLUMNS))
    counts = [[0] * len(CHANGE_KINDS) for _ in range(-(-span // width))]
    for found in days:
        if first <= found.day <= today:
            row = counts[(found.day - first).days // width]
            for place, kind in enumerate(CHANGE_KINDS):
                row[place] += found.numbers[kind]
    begins = [first + timedelta(days=width * place) for place in range(len(counts))]
    return [Column(begin, begin + timedelta(days=width), tuple(row)) for begin, row in zip(begins, counts, strict=True)]


def rects_of(columns: Sequence[Column]) -> list[Rect]:
    """The pieces of the bars, those that are empty left out."""
    most = max((sum(column.counts) for column in columns), default=0)
    step = WIDTH / max(1, len(columns))
    found: list[Rect] = []
    for place, column in enumerate(columns):
        top = HEIGHT
        for kind, count in enumerate(column.counts, 1):
            height = count / most * (HEIGHT - 2) if most else 0.0
            top -= height
            if count:
                bar = min(step * 0.8, 24.0)
                x = place * step + (step - bar) / 2
                found.append(
                    Rect(round(x, 2), round(top, 2), round(bar, 2), round(height, 2), kind, column.since, count)
                )
    return found


def _rows(visit: Visit, days: Sequence[DayOfChanges]) -> tuple[list[DayOfChanges], str]:
    """The days of this page, and the address of the next one. `before`: only what was earlier."""
    before = _day(visit.value("before"))
    rest = [found for found in days if before is None or found.day < before]
    shown: list[DayOfChanges] = []
    for found in rest:
        if sum(len(day.changes) for day in shown) >= ROWS:
            following = {"user": visit.user, "agent": visit.agent, "kind": visit.value("kind")}
            return shown, address(PATH, **following, before=shown[-1].day.isoformat())
        shown.append(found)
    return shown, ""


def _past(visit: Visit, document: Document, days: Sequence[DayOfChanges], chosen: date) -> dict[str, Any]:
    """What was believed at the end of a day (UTC), and what has become of it."""
    now = datetime.now(UTC)
    at = min(now, datetime.combine(chosen, time(), UTC) + timedelta(days=1))
    past = as_of(document, at, visit.service.settings.apply.archive_cap)
    ended = _ended(days, at)
    beliefs = [
        BeliefRow(
            content_of(fact),
            category_of(fact),
            confidence_of(fact),
            id_of(fact),
            ended.get((id_of(fact), content_of(fact))),
        )
        for fact in facts_of(past.document)
    ]
    beliefs.sort(key=lambda belief: (belief.category, -belief.confidence))
    start = visit.start()
    following = {"user": visit.user, "agent": visit.agent, "at": chosen.isoformat(), "after": start + BELIEVED}
    changed = [found.day for found in days]
    return {
        "count": len(beliefs),
        "gone": sum(belief.ended is not None for belief in beliefs),
        "groups": [
            (name, list(group))
            for name, group in groupby(beliefs[start : start + BELIEVED], lambda belief: belief.category)
        ],
        "more_href": address(PATH, **following) if start + BELIEVED < len(beliefs) else "",
        "summaries": [(SUMMARIES[name], text) for name, text in summaries_of(past.document)],
        "gaps": [(GAPS[gap.kind], gap.count, [SUMMARIES[name] for name in gap.names]) for gap in past.gaps],
        "earlier": max((day for day in changed if day < chosen), default=None),
        "later": min((day for day in changed if day > chosen), default=None),
    }


def _ended(days: Sequence[DayOfChanges], at: datetime) -> dict[tuple[str, str], ChangeRow]:
    """The first change after a moment that ended each fact, by id and words."""
    return {
        (id_of(change.fact), content_of(change.fact)): row_of(change)
        for found in days
        for change in found.changes
        if change.fact is not None and change.kind != "learned" and change.at > at
    }


def _chosen_day(visit: Visit, first: date, today: date) -> date | None:
    """The day that the address names, in the bounds of the timeline; None where it names none."""
    chosen = _day(visit.value("at"))
    if chosen is None and visit.value("day").isdecimal():
        chosen = first + timedelta(days=min(visit.start("day"), (today - first).days))
    return None if chosen is None else max(first, min(chosen, today))


def _place(day: date, first: date, today: date) -> float:
    """Where the middle of a day stands in the plot."""
    columns = columns_of((), first, today)
    width = (columns[0].until - columns[0].since).days
    return round(((day - first).days + 0.5) / (len(columns) * width) * WIDTH, 2)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:  # an address that somebody wrote
        return None


def _checked(kind: str) -> ChangeKind:
    for known in CHANGE_KINDS:
        if known == kind:
            return known
    raise Rejected("E_KIND", f"kind must be one of {', '.join(CHANGE_KINDS)}", "kind")
