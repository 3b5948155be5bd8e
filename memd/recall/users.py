"""The users that have a memory, page by page. Facts and pending keys are read only for the users shown."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket, user_hash
from memd.errors import DocumentDamaged, InboxUnavailable, NotAllowed, Rejected
from memd.inbox.keys import open_keys
from memd.memory.document import facts_of
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Store, load_to_read

if TYPE_CHECKING:
    import redis

Order = Literal["id", "changed"]
MAX_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class UserRow:
    """One user. `agents`: the agents with a memory of the user.

    `facts`: in all of the user's memories; None when a document is damaged. `pending`: keys pending or claimed; None
    when the server is out of reach.
    """

    user_id: str
    agents: tuple[str, ...]
    facts: int | None
    pending: int | None
    changed_at: datetime | None


@dataclass(frozen=True, slots=True)
class UserPage:
    """One page of users; `next` is the cursor of the next one, empty on the last."""

    users: tuple[UserRow, ...]
    next: str = ""


class _Listed(NamedTuple):
    """A user with its sort key. `rank`: the negated time of change in ns, so the latest is first; 0 when by id."""

    rank: int
    user_id: str


def users_page(
    settings: Settings,
    server: Callable[[], redis.Redis],
    *,
    by: Order = "id",
    after: str = "",
    limit: int = 100,
    visible: Callable[[str], bool] = lambda _: True,
) -> UserPage:
    """One page of at most `limit` users, from the cursor `after` on. `visible`: whether a user may be shown.

    Raises Rejected, StoreUnavailable.
    """
    if by not in ("id", "changed"):
        raise Rejected("E_BY", "by must be id or changed", "by")
    if not 1 <= limit <= MAX_LIMIT:
        raise Rejected("E_LIMIT", f"limit must be from 1 to {MAX_LIMIT}", "limit", MAX_LIMIT)
    last = _cursor(after) if after else None
    store = open_store(settings)
    listed = (user for user in _listed(store, by) if (last is None or user > last) and visible(user.user_id))
    first = heapq.nsmallest(limit + 1, listed)
    shown = first[:limit]
    rows = tuple(_rows(store, server, [user.user_id for user in shown]))
    return UserPage(rows, f"{shown[-1].rank}:{shown[-1].user_id}" if len(first) > limit else "")


def _listed(store: Store, by: Order) -> Iterator[_Listed]:
    for user_id in store.users():
        yield _Listed(-store.changed_ns(user_id) if by == "changed" else 0, user_id)


def _cursor(after: str) -> _Listed:
    rank, colon, user_id = after.partition(":")
    if not colon or not user_id or not rank.removeprefix("-").isdecimal() or len(rank) > 25:
        raise Rejected("E_CURSOR", "the cursor is not from a page; pass the one of the last page", "after")
    return _Listed(int(rank), user_id)


def _rows(store: Store, server: Callable[[], redis.Redis], users: list[str]) -> Iterator[UserRow]:
    pending = _pending(server, users)
    for number, user_id in enumerate(users):
        agents = store.agents(user_id)
        changed = store.changed_ns(user_id)
        yield UserRow(
            user_id,
            tuple(agents),
            _facts(store, user_id, agents),
            pending[number] if pending else None,
            datetime.fromtimestamp(changed / 1e9, UTC) if changed else None,
        )


def _pending(server: Callable[[], redis.Redis], users: list[str]) -> list[int] | None:
    try:
        return open_keys(server(), [user_hash(user_id) for user_id in users]) if users else []
    except NotAllowed:
        raise
    except InboxUnavailable:  # the memories can still be listed
        return None


def _facts(store: Store, user_id: str, agents: list[str]) -> int | None:
    buckets = (Bucket(user_id, agent) for agent in chain((DEFAULT_AGENT,), agents))
    try:
        return sum(len(facts_of(load_to_read(store, bucket).document)) for bucket in buckets)
    except DocumentDamaged:  # `memd show` reports the place
        return None
