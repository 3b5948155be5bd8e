"""Scopes: where a fact holds, and that facts of different scopes stay apart."""

from __future__ import annotations

from typing import Any

import pytest
from support.recall_support import fact

from memd.memory.facts import USER_SCOPE, Scope, scope_of


@pytest.mark.parametrize(
    ("fields", "scope"),
    [
        ({}, USER_SCOPE),
        ({"scope": "user"}, USER_SCOPE),
        ({"scope": "user", "scopeId": "t1"}, USER_SCOPE),
        ({"scope": "session", "scopeId": "t1"}, Scope("session", "t1")),
        ({"scope": "thread", "scopeId": "t1"}, Scope("session", "t1")),
        ({"scope": "project", "scopeId": "atlas"}, Scope("project", "atlas")),
        ({"scope": "session"}, Scope("session", "")),
        ({"scope": "session", "scopeId": 7}, Scope("session", "")),
        ({"scope": ["session"]}, USER_SCOPE),
        ({"scope": "world"}, USER_SCOPE),
    ],
)
def test_fact_without_a_readable_scope_is_about_the_user(fields: dict[str, Any], scope: Scope) -> None:
    """A fact names its scope and its project or thread; what it writes wrongly reads as absent."""
    assert scope_of(fact("a", "Likes tea", **fields)) == scope


@pytest.mark.parametrize("scope", [USER_SCOPE, Scope("session", "t1"), Scope("project", "atlas")])
def test_scope_writes_what_it_reads(scope: Scope) -> None:
    """A fact with the fields of a scope has that scope; facts of the user stay as they were before scopes."""
    assert scope_of({"content": "Likes tea", **scope.fields}) == scope
    assert USER_SCOPE.fields == {}
