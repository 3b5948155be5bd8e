"""Shell completion of users, ids of facts and categories. It reads files only and prints no errors."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import typer

from memd import config
from memd.config import Settings
from memd.context import Bucket
from memd.memory.document import facts_of
from memd.memory.facts import content_of, id_of
from memd.memory.store.json_store import open_store
from memd.printable import printable

MOST = 50
"""Most proposals; more would scroll off the screen."""

HINT_CHARS = 60


def propose(kind: str, ctx: typer.Context, incomplete: str) -> list[Any]:
    """The completions of `incomplete`, the text typed so far. Empty on any error."""
    try:
        return list(_PROPOSALS[kind](_settings(ctx), ctx.params, incomplete))
    except Exception:  # noqa: BLE001  (an error message would garble the line being typed)
        return []


def _settings(ctx: typer.Context) -> Settings:
    given = ctx.find_root().params
    folder = given.get("data_dir")
    return config.load(given.get("config"), flags={"data_dir": str(folder) if folder else None}).settings


def _users(settings: Settings, _: dict[str, Any], incomplete: str) -> Iterable[str]:
    found = (user for user in open_store(settings).users() if user.startswith(incomplete) and user == printable(user))
    return heapq.nsmallest(MOST, found)


def _fact_ids(settings: Settings, params: dict[str, Any], incomplete: str) -> Iterable[tuple[str, str]]:
    bucket = Bucket(params["user"], params.get("agent") or "")
    facts = facts_of(open_store(settings).peek(bucket).document)
    known = ((id_of(fact) or "", printable(content_of(fact))[:HINT_CHARS]) for fact in facts)
    return [pair for pair in known if pair[0].startswith(incomplete)][:MOST]


def _categories(settings: Settings, _: dict[str, Any], incomplete: str) -> Iterable[str]:
    return [name for name in settings.apply.categories if name.startswith(incomplete)]


_PROPOSALS: dict[str, Any] = {"user": _users, "fact": _fact_ids, "category": _categories}
