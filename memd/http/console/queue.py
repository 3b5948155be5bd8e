"""Queue: the keys that have not ended, and flushing one of them."""

from __future__ import annotations

from memd.http.console.page import Shown, Visit, address

ROWS = 50


def queue(visit: Visit) -> Shown:
    """The page: keys of one user, or of all. A page may have fewer rows than asked for."""
    if visit.must_choose:
        return Shown("queue.html", {"keys": (), "user": "", "more_href": "", "must_choose": True})
    user_id = visit.user if visit.value("user") else None
    page = visit.service.memd.pending(user_id=user_id, after=visit.value("after"), limit=ROWS)
    following = address(visit.path, user=user_id, after=page.next) if page.next else ""
    data = {"keys": page.keys, "user": user_id or "", "more_href": following, "must_choose": False}
    return Shown("queue.html", data)


def flush(visit: Visit) -> str:
    """Make one key due now, or all of a user."""
    thread = visit.value("thread") or None
    agent = visit.agent if thread else None
    result = visit.service.memd.flush(user_id=visit.user, agent_name=agent, thread_id=thread)
    count = result.counts["waiting"]
    visit.say("{count} key is due now" if count == 1 else "{count} keys are due now", count=count)
    return address("/console/queue", user=visit.value("only"))
