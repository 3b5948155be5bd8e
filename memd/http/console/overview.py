"""Overview: the figures of the inbox, the workers, what is paused, and what the doctor finds."""

from __future__ import annotations

from memd.errors import InboxUnavailable
from memd.http.console.findings import findings_of
from memd.http.console.page import Shown, Visit

OLD_S = 900
"""A key that waits longer is worth a look: three times the longest wait for quiet, 300 s (`scheduler.max_wait_s`)."""


def overview(visit: Visit) -> Shown:
    """The page. Without the inbox it says so, and still shows what the doctor found."""
    found = findings_of(visit.service).latest()
    data = {"findings": found, "worst": [one for one in found or () if one.state != "ok"], "old_s": OLD_S}
    memd = visit.service.memd
    try:
        return Shown("overview.html", {**data, "status": memd.status(), "cost": memd.cost(), "away": ""})
    except InboxUnavailable as error:
        return Shown("overview.html", {**data, "status": None, "cost": None, "away": error.for_clients})
