"""Times: when a message was said, by its producer's `created_at` or by its arrival."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache

from memd.push.strict_json import refuse

AHEAD = timedelta(seconds=60)
"""How far a producer's clock may be ahead: a later `created_at` is no time at which anything was said."""

_CREATED_AT = re.compile(r"[0-9][0-9T:. +Zz-]{3,63}")
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?")
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
MONTH_CHARS = 7
"""Characters of a time that tell its month."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = int((datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds()) * 1_000_000
_END_US = (int((datetime.max.replace(tzinfo=UTC, microsecond=0) - _EPOCH).total_seconds()) + 1) * 1_000_000
_MICROSECONDS = (1_000_000.0, 1_000.0, 1.0, 0.001)
"""In a second, a millisecond, a microsecond and a nanosecond."""

CREATED_AT_MIN, CREATED_AT_MAX = _FIRST_US * 1_000.0, math.nextafter(_END_US * 1_000.0, 0.0)
"""The numbers that are a time: nanoseconds, the smallest unit, from the year 1 to the year 9999."""


def read_created_at(value: object) -> str | None:
    """The time of a message as text: ISO 8601 as it came; a number as ISO 8601 in UTC. Raises Rejected.

    A number counts seconds since 1970; one beyond the year 9999 counts milli-, micro- or nanoseconds. Numbers as text
    are what older versions put into the inbox.
    """
    if value is None or (isinstance(value, str) and _CREATED_AT.fullmatch(value)):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    time = _iso(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if time is None:
        refuse("E_CREATED_AT", "created_at must be an ISO 8601 time or a number of seconds", "created_at")
    return time


def said_at(created_at: str | None, arrival: datetime) -> datetime:
    """When a message was said: its `created_at` if that is a time and at most AHEAD later than the arrival, else the
    arrival. A time without a zone is UTC.
    """
    time = moment(created_at)
    return time if time is not None and time - arrival <= AHEAD else arrival


def day_said(created_at: str | None, said_at: str, zone: tzinfo) -> date | None:
    """The day on which a message was said, where it was said; None when the time is not known.

    A `created_at` with an offset of its own tells the place; one in UTC only tells the time, and `zone` the day.
    """
    said = moment(said_at) or moment(created_at)
    if said is None:
        return None
    claimed = moment(created_at)
    is_of_producer = claimed is not None and abs(claimed - said) < timedelta(seconds=1)  # else the arrival
    return _day_in(said, (_offset(created_at) if is_of_producer else None) or zone)


def today_of(created_at: str | None, now: datetime, zone: tzinfo) -> date:
    """The day that it is at `now`, where a message was said."""
    return _day_in(now, _offset(created_at) or zone)


def _offset(created_at: str | None) -> tzinfo | None:
    """The offset that a time names, if any but that of UTC."""
    if created_at is None or moment(created_at) is None:
        return None
    time = datetime.fromisoformat(created_at)
    return time.tzinfo if time.utcoffset() else None


def _day_in(time: datetime, zone: tzinfo) -> date:
    try:
        return time.astimezone(zone).date()
    except OverflowError:  # a zone moves the first and the last day of the calendar beyond it
        return time.date()


def iso(time: datetime) -> str:
    """A time as documents write it: UTC, milliseconds, Z."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(value: object) -> datetime | None:
    """The time that a text names, read as UTC when it names no zone; None when it is no ISO 8601 time."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # not a time, or one that its zone moves beyond the calendar
        return None


@lru_cache(maxsize=512)
def month(time: str) -> str:
    """The month of an ISO 8601 time, as `2026-03`; "" of a text that is none."""
    found = _MONTH.match(time)
    return found[0] if found else ""


def _iso(number: float) -> str | None:
    """A number as ISO 8601; None for one that is no time in any of the units, NaN among them."""
    for microseconds in _MICROSECONDS:
        if _FIRST_US <= (moment := number * microseconds) < _END_US:
            return (_EPOCH + timedelta(microseconds=round(moment))).isoformat().replace("+00:00", "Z")
    return None
