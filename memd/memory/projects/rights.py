"""Rights: who may do what with a project's memory. One pure function, asked at every door that knows who asks.

A role belongs to a member of one project. Two more standings need no entry: `app`, any token of the app that the
project belongs to, and `stranger`, everybody else.
"""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["owner", "admin", "editor", "viewer"]
Standing = Literal["owner", "admin", "editor", "viewer", "app", "stranger"]

Verb = Literal[
    "read", "create", "edit", "delete", "publish", "hide", "decide", "profile", "export", "see_members", "members",
    "close",
]  # fmt: skip
"""What can be asked for. `publish` and `hide` make a fact seen by the members, or by its creator alone; `decide`
settles a dispute; `profile` changes the project's; `members` adds, removes and changes members; `close` ends it."""

Visibility = Literal["public", "members", "owner_only"]

ROLES: tuple[Role, ...] = get_args(Role)
VERBS: tuple[Verb, ...] = get_args(Verb)
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
STANDINGS: tuple[Standing, ...] = get_args(Standing)

_WRITERS = frozenset({"owner", "admin", "editor"})
_HEADS = frozenset({"owner", "admin"})
_OF_FACTS = frozenset({"read", "edit", "delete", "publish", "hide", "export"})
"""The verbs that are about one fact, so that its visibility and creator matter."""


def may(standing: Standing, verb: Verb, visibility: Visibility = "members", *, own: bool = False) -> bool:
    """Whether somebody may do this.

    `visibility`, `own`: of the fact that the verb is about, and whether the asker created it; without meaning for the
    verbs that are about the whole project. What its creator alone may see is nobody else's, whatever their role.
    """
    if visibility == "owner_only" and not own and verb in _OF_FACTS:
        return False
    match verb:
        case "read" | "export":
            return _is_member(standing) or (standing == "app" and visibility == "public" and verb == "read")
        case "see_members":
            return _is_member(standing)
        case "create":
            return standing in _WRITERS
        case "edit" | "delete":
            if visibility == "owner_only":
                return own and _is_member(standing)
            return standing in _HEADS or (standing == "editor" and own)
        case "publish" | "hide":
            return own and standing in _WRITERS
        case "decide" | "profile" | "members":
            return standing in _HEADS
        case "close":
            return standing == "owner"


def _is_member(standing: Standing) -> bool:
    return standing in ROLES
