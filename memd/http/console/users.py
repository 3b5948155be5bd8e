"""Users: who has a memory."""

from __future__ import annotations

from memd.http.console.page import Shown, Visit, address
from memd.recall.users import Order

ROWS = 50


def users(visit: Visit) -> Shown:
    """The page: by id, or those that changed last first. `find`: a part of the id."""
    by: Order = "changed" if visit.value("by") == "changed" else "id"
    find = visit.value("find")
    seen = visit.login.token.users
    page = visit.service.memd.users(by=by, after=visit.value("after"), limit=ROWS, find=find, visible=seen.__contains__)
    following = address(visit.path, by=by, find=find, after=page.next) if page.next else ""
    return Shown("users.html", {"rows": page.users, "by": by, "find": find, "more_href": following})
