"""Periods: the time that a question is about, such as "at the beginning of November" or 去年, from the words in it.

`periods/` has the patterns of each language. Without a period nothing is preferred; what is to come has none.
`edges` knows the periods that an event begins or ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from memd.config.yaml_text import read
from memd.memory.text import fold
from memd.recall.words import roots

MAX_CHARS = 2_000
"""Characters of a query in which a period is looked for: its beginning."""

MAX_ASKING = 120
"""Characters at most of a question that asks for nothing but a period."""

SLACK = timedelta(days=1)
"""How far what was said may lie beside the period: people say "yesterday" the day after."""

_WORD = re.compile(r"\w")
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_PARTS = {"early": (0, 10), "middle": (9, 21), "late": (20, 31)}
"""Days of a month, from the first to the one after the last."""


class Period(NamedTuple):
    """When it was said, in seconds since 1970; `past`: the question is about what held then, not about today; `alone`:
    it asks for whatever was said then ("what did I say last week").
    """

    since: float = 0.0
    until: float = 0.0
    past: bool = False
    alone: bool = False

    def strict(self) -> Period:
        """Without SLACK, for a question that asks for all of it."""
        slack = SLACK.total_seconds()
        return self._replace(since=self.since + slack, until=self.until - slack)

    def __contains__(self, time: object) -> bool:
        return isinstance(time, float) and self.since <= time < self.until


NO_PERIOD = Period()
"""A question about today, or about no time."""


class Language(NamedTuple):
    """The rules of one language. `tables`: what its names mean. `asking`: words that only ask. `small`, `daily`: roots
    that make no event, or one of every day. `kinds`: the phrases of the events that people name in several ways.
    """

    periods: tuple[re.Pattern[str], ...]
    tables: Mapping[str, Mapping[str, Any]]
    future: re.Pattern[str]
    past: re.Pattern[str]
    asking: re.Pattern[str]
    events: tuple[re.Pattern[str], ...]
    plans: re.Pattern[str]
    small: frozenset[str]
    daily: frozenset[str]
    kinds: Mapping[str, list[str]]


@cache
def languages() -> tuple[Language, ...]:
    """The rules of each language."""
    return tuple(_language(read(file)) for file in sorted(Path(__file__).with_suffix("").glob("*.yaml")))


def _language(tree: dict[str, Any]) -> Language:
    tables: dict[str, dict[str, Any]] = {
        name: {form: place for place, forms in enumerate(names) for form in str(forms).split("|")}
        for name, names in tree["names"].items()
    }
    for name, groups in (("unit", tree["units"]), ("part", tree["parts"])):
        tables[name] = {form: group for group, forms in groups.items() for form in forms}
    for name in ("few", "years"):
        tables[name] = tree.get(name, {})
    tables["count"] = {**{form: place + 1 for form, place in tables["number"].items()}, **tables["few"]}
    lists = {name: "|".join(map(re.escape, sorted(table, key=len, reverse=True))) for name, table in tables.items()}
    patterns = []
    for source in tree["periods"]:
        for name, alternatives in lists.items():
            source = source.replace("{" + name + "}", alternatives)  # noqa: PLW2901  (one list after the other)
        patterns.append(re.compile(source))
    return Language(
        tuple(patterns),
        tables,
        re.compile(tree["future"]),
        re.compile(tree["past"]),
        re.compile(tree["asking"]),
        tuple(map(re.compile, tree["events"])),
        re.compile(tree["plans"]),
        frozenset(root for word in tree["small"] for root in roots(word)),
        frozenset(root for word in tree["daily"] for root in roots(word)),
        tree["kinds"],
    )


def period_of(query: str, now: datetime) -> Period:
    """The period that a question names, as it is asked at `now`."""
    text = fold(query[:MAX_CHARS])
    for language in languages():
        if language.future.search(text):
            return NO_PERIOD
        for pattern in language.periods:
            if match := pattern.search(text):
                ends = _ends({name: value for name, value in match.groupdict().items() if value}, language, now)
                if ends is not None and ends[0] + SLACK < now:
                    rest = language.asking.sub("", f"{text[: match.start()]} {text[match.end() :]}")
                    alone = len(text) <= MAX_ASKING and not _WORD.search(rest)
                    return Period(ends[0].timestamp(), ends[1].timestamp(), ends[1] < now, alone)
        if language.past.search(text):
            return Period(past=True)
    return NO_PERIOD


def _ends(found: Mapping[str, str], language: Language, now: datetime) -> tuple[datetime, datetime] | None:
    """The beginning and the end of the period, with SLACK; None for a day that no calendar has."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        ends = _relative(found, language, today) or _of_calendar(found, language, today)
        return (ends[0] - SLACK, ends[1] + SLACK) if ends else None
    except (ValueError, OverflowError):  # 31 June, or before the year 1
        return None


def _relative(found: Mapping[str, str], language: Language, today: datetime) -> tuple[datetime, datetime] | None:
    for back in range(3):
        if f"days{back}" in found:
            return _span(today - timedelta(days=back), 1)
    if "weekday" in found or "weekday_before" in found:
        # 上周三 is the Wednesday of the week before, "on Wednesday" the last one.
        day = language.tables["weekday"][found.get("weekday") or found["weekday_before"]]
        back = (today.weekday() - day) % 7 or 7
        return _span(today - timedelta(days=back if "weekday" in found else today.weekday() + 7 - day), 1)
    if "unit" not in found:
        return None
    unit = _DAYS[language.tables["unit"][found["unit"]]]
    if "count" in found:
        days = _number(found["count"], language) * unit
        return today - timedelta(days=days), today + timedelta(days=1)
    if "ago" in found:
        middle = today - timedelta(days=_number(found["ago"], language) * unit)
        return middle - timedelta(days=unit // 2), middle + timedelta(days=unit // 2 + 1)
    return _unit(unit, 1 if "back1" in found else 0, today)


def _unit(days: int, back: int, today: datetime) -> tuple[datetime, datetime]:
    """This week, month or year, or the one before."""
    if days == _DAYS["week"]:
        return _span(today - timedelta(days=today.weekday() + 7 * back), 7)
    if days == _DAYS["month"]:
        return _months(today.year, today.month - back, 1)
    return _months(today.year - back, 1, 12)


def _of_calendar(found: Mapping[str, str], language: Language, today: datetime) -> tuple[datetime, datetime] | None:
    year = int(found["year"]) if "year" in found else None
    if "years" in found:
        year = today.year - language.tables["years"][found["years"]]
    if "season" in found:
        first = 3 + 3 * language.tables["season"][found["season"]]
        at = year if year is not None else today.year - (_months(today.year, first, 3)[1] > today)
        return _months(at, first, 3)
    month = int(found["monthno"]) if "monthno" in found else 0
    if "month" in found:
        month = language.tables["month"][found["month"]] + 1
    if not month:
        return _months(year, 1, 12) if year is not None else None
    at = year if year is not None else today.year - (month > today.month)
    begin, end = _months(at, month, 1)
    if "day" in found:
        return _span(begin.replace(day=int(found["day"])), 1)
    if "part" in found:
        first, last = _PARTS[language.tables["part"][found["part"]]]
        return begin + timedelta(days=first), min(end, begin + timedelta(days=last))
    return begin, end


def _months(year: int, month: int, count: int) -> tuple[datetime, datetime]:
    """So many months from this one on; month 0 is the December before."""
    first, last = (year * 12 + month - 1 + more for more in (0, count))
    begin, end = (datetime(at // 12, at % 12 + 1, 1, tzinfo=UTC) for at in (first, last))
    return begin, end


def _span(begin: datetime, days: int) -> tuple[datetime, datetime]:
    return begin, begin + timedelta(days=days)


def _number(text: str, language: Language) -> int:
    return int(text) if text.isdigit() else int(language.tables["count"][text])
