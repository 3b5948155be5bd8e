"""Overview: the figures of the inbox, the workers, what is paused, and what the doctor finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memd.errors import InboxUnavailable
from memd.http.console.findings import findings_of
from memd.http.console.page import Shown, Visit
from memd.inbox.hours import Hour

PENDING = "Pending at most"
SPARKS = ("Pushes", "Stored", "Dead letters", "Model calls", "Tokens")
"""Titles of the lines of the last hours."""

OLD_S = 900
"""A key that waits longer is worth a look: three times the longest wait for quiet, 300 s (`scheduler.max_wait_s`)."""


def overview(visit: Visit) -> Shown:
    """The page. Without the inbox it says so, and still shows what the doctor found."""
    found = findings_of(visit.service).latest()
    data = {"findings": found, "worst": [one for one in found or () if one.state != "ok"], "old_s": OLD_S}
    memd = visit.service.memd
    try:
        figures: dict[str, Any] = {
            "status": memd.status(),
            "cost": memd.cost(),
            "sparks": _sparks(memd.hours()),
            "away": "",
        }
    except InboxUnavailable as error:
        figures = {"status": None, "cost": None, "sparks": [], "away": error.for_clients}
    return Shown("overview.html", data | figures)


def _sparks(hours: Sequence[Hour]) -> list[tuple[str, list[int], str]]:
    """The lines of the last hours: the title, the values by hour, and the sum of those, or the present value."""
    counted = ("pushes", "stored", "dead", "model_calls", "tokens")
    lines = [(title, [getattr(hour, name) for hour in hours]) for name, title in zip(counted, SPARKS, strict=True)]
    pending = [hour.most_pending or 0 for hour in hours]
    return [
        (PENDING, pending, f"{max(pending, default=0):,}"),
        *((title, values, f"{sum(values):,}") for title, values in lines),
    ] if hours else []  # fmt: skip
