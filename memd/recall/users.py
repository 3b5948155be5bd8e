"""The users that have a memory, page by page. Facts and pending keys are read only for the users shown."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket, user_hash
from memd.errors import InboxUnavailable, NotAllowed, Rejected
from memd.inbox.keys import open_keys
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Store

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


_Listed = tuple[int, str]
"""A user behind its rank: the negated time of change in ns, so the latest is first; 0 when by id."""


class UserList:
    """The users of a store, for a process that lists them more than once. Thread-safe."""

    def __init__(self, settings: Settings, server: Callable[[], redis.Redis]) -> None:
        self._store = open_store(settings)
        self._server = server

    def page(
        self,
        *,
        by: Order = "id",
        after: str = "",
        limit: int = 100,
        find: str = "",
        visible: Callable[[str], bool] = lambda _: True,
    ) -> UserPage:
        """One page of at most `limit` users, from the cursor `after` on. `visible`: whether a user may be shown.

        `find`: only users whose id has this text in it, in any case. Raises Rejected, StoreUnavailable.
        """
        if by not in ("id", "changed"):
            raise Rejected("E_BY", "by must be id or changed", "by")
        if not 1 <= limit <= MAX_LIMIT:
            raise Rejected("E_LIMIT", f"limit must be from 1 to {MAX_LIMIT}", "limit", MAX_LIMIT)
        last = _cursor(after) if after else None
        listed: Iterable[_Listed] = _listed(self._store, by)
        if last is not None:
            listed = (user for user in listed if user > last)
        if wanted := find.casefold():
            listed = (user for user in listed if wanted in user[1].casefold())
        first = heapq.nsmallest(limit + 1, (user for user in listed if visible(user[1])))
        shown = [user_id for _, user_id in first[:limit]]
        rows = tuple(_rows(self._store, self._server, shown))
        return UserPage(rows, "{}:{}".format(*first[limit - 1]) if len(first) > limit else "")


def _listed(store: Store, by: Order) -> Iterator[_Listed]:
    if by == "id":
        return ((0, user_id) for user_id in store.users())
    return ((-changed, user_id) for user_id, changed in store.changes().items())


def _cursor(after: str) -> _Listed:
    rank, colon, user_id = after.partition(":")
    if not colon or not user_id or not rank.removeprefix("-").isdecimal() or len(rank) > 25:
        raise Rejected("E_CURSOR", "the cursor is not from a page; pass the one of the last page", "after")
    return int(rank), user_id


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
    """The facts of all the user's memories; None when one is damaged: `memd show` reports the place."""
    counts = [store.fact_count(Bucket(user_id, agent)) for agent in (DEFAULT_AGENT, *agents)]
    return None if None in counts else sum(filter(None, counts))
