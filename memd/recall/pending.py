"""Pending: the user's messages not extracted yet, read from the inbox without changing it.

Assistant messages are left out, as they prove nothing, and so are forgotten and applied messages, and those that the
user asked not to keep. Secrets are removed as they are before a model sees a text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memd.config import Settings
from memd.context import Bucket, Message, user_hash
from memd.errors import Rejected
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.inbox.verbs import Waiting
from memd.memory import ledger
from memd.memory.document import Fact
from memd.memory.facts import DEFAULT_CONFIDENCE
from memd.memory.new_facts import base_fact
from memd.memory.said import off_record
from memd.memory.said.may_keep import may_keep
from memd.memory.store.protocol import Store, Tombstone
from memd.memory.text import one_line
from memd.push.redaction import redact
from memd.push.times import iso
from memd.push.validation import parse_wire_message

if TYPE_CHECKING:
    import redis

MAX_MESSAGES = 50
"""Most pending messages of a user that one read shows, the newest ones."""

MAX_PAGES = 40
"""Most pages of 500 keys that one read scans. A user has one key a conversation, and keys expire after a day."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One message of the user, redacted. `identity`: its field in the inbox. `seen`: when it was read there.

    `project`: the project that it is marked for, or "".
    """

    bucket: Bucket
    thread_id: str
    identity: str
    text: str
    seen: datetime
    project: str = ""

    def as_fact(self) -> Fact:
        """The message as a fact, so that it can be ranked among facts; nothing about it is verified."""
        fact_id, seen = f"pending_{self.identity}", iso(self.seen)
        fact = base_fact(fact_id, self.text, "pending", DEFAULT_CONFIDENCE, seen, self.thread_id)
        return {**fact, "scope": "session"}


class PendingMessages:
    """Reads pending messages. A bucket's document is loaded only when the bucket has a pending message."""

    def __init__(self, settings: Settings, server: Callable[[], redis.Redis], store: Store) -> None:
        self._settings = settings
        self._server = server
        self._store = store

    def read(self, buckets: Sequence[Bucket]) -> list[Pending]:
        """The newest pending messages of one user's buckets, oldest first.

        Raises InboxUnavailable, NotReady, StoreUnavailable, DocumentDamaged.
        """
        user_id = buckets[0].user_id
        by_hash = {bucket.hash: bucket for bucket in buckets}
        rows = self._rows(user_hash(user_id), list(by_hash))
        grave = self._store.tombstones.find(user_id) if rows else None
        messages: list[tuple[int, Pending]] = []
        for name, bucket in by_hash.items():
            rows_of_bucket = [row for row in rows if row.bucket == name and not _is_forgotten(row, bucket, grave)]
            messages += self._of(bucket, rows_of_bucket) if rows_of_bucket else ()
        messages.sort(key=lambda pair: pair[0])
        return [pending for _, pending in messages[-MAX_MESSAGES:]]

    def _rows(self, owner: str, buckets: Sequence[str]) -> list[Waiting]:
        rows: list[Waiting] = []
        cursor = "0"
        for _ in range(MAX_PAGES):
            cursor, page = send(self._server(), verbs.waiting(owner, cursor, buckets))
            rows += page
            if cursor == "0":
                break
        return rows

    def _of(self, bucket: Bucket, rows: Iterable[Waiting]) -> Iterator[tuple[int, Pending]]:
        identities: defaultdict[str, list[str]] = defaultdict(list)
        names: dict[str, str] = {}
        for row in rows:
            name = ledger.name_of(row.thread_id, bucket.user_id, shared=self._settings.store.shared)
            names[row.thread_id] = name
            for place in ledger.places(name):
                identities[place].append(row.identity)
        loaded = self._store.peek(bucket, identities)
        known = loaded.known
        now = datetime.now(UTC)
        said = [(row, message) for row in rows if (message := self._message(row))]
        off = {thread for thread, name in names.items() if off_record.is_off(loaded.document, name)}
        not_kept = _not_kept(said, known, off)
        for row, message in said:
            if row.identity in known or row.identity in not_kept:
                continue
            text = one_line(redact(message.content, pii=self._settings.redaction.pii)[0])
            if text:
                yield row.order, Pending(bucket, row.thread_id, row.identity, text, now, row.project)

    def _message(self, row: Waiting) -> Message | None:
        """A message of the user; None for a reply, and for a message that the drain will bury as invalid."""
        try:
            message = parse_wire_message(row.body, self._settings.client)
        except Rejected:
            return None
        if message.role != "user":
            return None
        return Message(
            message.role, message.content, message.id, message.created_at, identity=row.identity, project=row.project
        )


def _not_kept(said: Iterable[tuple[Waiting, Message]], known: Container[str], off: Container[str]) -> set[str]:
    """The identities of messages that the user asked not to keep. `off`: threads of which nothing new is kept."""
    threads: defaultdict[str, list[Message]] = defaultdict(list)
    for row, message in sorted(said, key=lambda pair: pair[0].order):
        threads[row.thread_id].append(message)
    not_kept: set[str] = set()
    for thread, messages in threads.items():
        first = next((place for place, message in enumerate(messages) if message.identity not in known), None)
        not_kept |= may_keep(messages, first if thread in off else None).not_kept.keys()
    return not_kept


def _is_forgotten(row: Waiting, bucket: Bucket, grave: Tombstone | None) -> bool:
    if grave is None:
        return False
    in_progress = any(wish.bucket in (None, bucket) for wish in grave.open)
    return in_progress or grave.holds(bucket, row.identity)
