"""The table of all pages and actions of the console, in the order of the menu and of a user's tabs."""

from __future__ import annotations

from memd.http.console import dead as letters
from memd.http.console.audit import audit, mend
from memd.http.console.browser import HOME
from memd.http.console.configuration import configuration
from memd.http.console.cost import cost
from memd.http.console.fact import edit, fact, remove
from memd.http.console.overview import overview
from memd.http.console.page import Action, Page
from memd.http.console.project import decide, hide, project, projects, publish, remove_member, set_role
from memd.http.console.queue import flush, queue
from memd.http.console.receipt import receipt
from memd.http.console.session import compact, remove_session, session, sessions
from memd.http.console.timeline import bring_back, timeline
from memd.http.console.user import (
    add,
    approve,
    approve_note,
    drop,
    export,
    forget,
    restore,
    set_profile,
    unset_profile,
    user,
)
from memd.http.console.users import users

PAGES: tuple[Page, ...] = (
    Page(HOME, "Overview", overview, everyone=True, live=True),
    Page(f"{HOME}/queue", "Queue", queue, live=True),
    Page(f"{HOME}/users", "Users", users),
    Page(letters.PATH, "Dead", letters.dead),
    Page(letters.LETTER, "Dead letter", letters.letter, ("said",), menu=False),
    Page(f"{HOME}/cost", "Cost", cost, everyone=True),
    Page(f"{HOME}/receipt", "Receipt", receipt, live=True),
    Page(f"{HOME}/settings", "Settings", configuration, everyone=True),
    Page(f"{HOME}/user", "Memory", user, of_user=True),
    Page(f"{HOME}/timeline", "Timeline", timeline, of_user=True),
    Page(f"{HOME}/audit", "Audit", audit, of_user=True),
    Page(f"{HOME}/projects", "Projects", projects, of_user=True),
    Page(f"{HOME}/project", "Project", project, of_user=True, menu=False),
    Page(f"{HOME}/sessions", "Sessions", sessions, ("said",), of_user=True),
    Page(f"{HOME}/session", "Session", session, ("said",), of_user=True, menu=False),
    Page(f"{HOME}/fact", "Fact", fact, of_user=True, menu=False),
    Page(f"{HOME}/export", "Export", export, ("admin",), of_user=True, menu=False),
)

ACTIONS: tuple[Action, ...] = (
    Action(f"{HOME}/queue/flush", flush, "admin"),
    Action(f"{letters.PATH}/retry", letters.retry, "admin"),
    Action(f"{letters.PATH}/drop", letters.drop, "admin"),
    Action(f"{HOME}/user/add", add, "person", of_user=True),
    Action(f"{HOME}/user/approve", approve, "person", of_user=True),
    Action(f"{HOME}/user/approve-note", approve_note, "person", of_user=True),
    Action(f"{HOME}/user/drop", drop, "person", of_user=True),
    Action(f"{HOME}/user/restore", restore, "person", of_user=True),
    Action(f"{HOME}/user/profile/set", set_profile, "person", of_user=True),
    Action(f"{HOME}/user/profile/unset", unset_profile, "person", of_user=True),
    Action(f"{HOME}/user/forget", forget, "admin", of_user=True),
    Action(f"{HOME}/timeline/restore", bring_back, "person", of_user=True),
    Action(f"{HOME}/audit/mend", mend, "person", of_user=True),
    Action(f"{HOME}/project/role", set_role, "person", of_user=True),
    Action(f"{HOME}/project/remove-member", remove_member, "person", of_user=True),
    Action(f"{HOME}/project/publish", publish, "person", of_user=True),
    Action(f"{HOME}/project/hide", hide, "person", of_user=True),
    Action(f"{HOME}/project/decide", decide, "person", of_user=True),
    Action(f"{HOME}/session/compact", compact, "admin", of_user=True),
    Action(f"{HOME}/session/remove", remove_session, "admin", of_user=True),
    Action(f"{HOME}/fact/edit", edit, "person", of_user=True),
    Action(f"{HOME}/fact/remove", remove, "person", of_user=True),
)
