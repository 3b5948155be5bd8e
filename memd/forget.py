"""Forgetting: a user's every trace, in the inbox, the dead and the documents; and nothing on its way brings it back.

In order: what lies in the raw lists is taken in; a tombstone is written, durably; the inbox and the dead lose what they
hold; the documents are erased under their locks. Each step may be repeated. Killed in between, or with the server out
of reach, the tombstone says what is left to do, and a worker does it before it works on anything of that user.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson
import redis

from memd.config import Settings
from memd.context import DEFAULT_AGENT, user_hash
from memd.errors import InboxUnavailable, NotReady
from memd.inbox import dead, library, verbs
from memd.inbox.connection import send
from memd.inbox.dead import Letter
from memd.inbox.raw_door import RawDoor
from memd.memory.store.protocol import Erased, Store, Tombstone, Wish

TAKE_IN_S = 60.0
"""Seconds that raw pushes may take to be taken in; beyond them they are looked at where they lie."""

REWRITE_S = 10.0
"""Seconds that the embedded server gets to write its append-only file anew."""

APPEND_ONLY_FILE = "the server's append-only file, until its next rewrite"
OUT_OF_REACH = (
    "backups of the data folder and of the server",
    "what the model's provider keeps",
)
SHARED_STORE = "the shared memory: it does not say whose a fact is"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed, or would be. `pushes`: under way in the inbox; `dead`: letters; `messages`: known by hash now.

    `complete` False: the server was out of reach, and a worker does the rest when it is back.
    """

    pushes: int = 0
    dead: int = 0
    documents: int = 0
    files: int = 0
    messages: int = 0
    complete: bool = True
    unreachable: tuple[str, ...] = (APPEND_ONLY_FILE, *OUT_OF_REACH)


class Forgetting:
    """Forgets. `client`: the server, which may be out of reach."""

    def __init__(self, settings: Settings, client: redis.Redis, store: Store) -> None:
        self._settings = settings
        self._client = client
        self._store = store
        self._tombstones = store.tombstones

    def preview(self, wish: Wish) -> Forgotten:
        """What `run` would remove now. Raises InboxUnavailable, OtherStore."""
        library.require_store(self._client, self._store)
        found, pushes = self._traces(wish, remove=False)
        letters = list(self._letters(wish))
        erased = self._store.erase(wish.user_id, wish.agent_name, dry_run=True)
        return self._report(pushes, len(letters), erased, len(found | erased.identities))

    def run(self, wish: Wish) -> Forgotten:
        """Forget. Raises OtherStore before anything is done.

        Raises StoreUnavailable; the tombstone, where it was written, says what is left to do then.
        """
        known = set(self._store.erase(wish.user_id, wish.agent_name, dry_run=True).identities)
        try:
            library.require_store(self._client, self._store)
            self._take_in()
            known |= self._traces(wish, remove=False)[0]
        except (InboxUnavailable, NotReady):  # no inbox now: the tombstone stays open until there is one
            pass
        self._tombstones.begin(wish, known)
        return self.finish(wish)

    def finish(self, wish: Wish) -> Forgotten:
        """Do what a tombstone says is to be done; safe to do again, wherever it was cut short."""
        pushes, letters, complete = 0, 0, True
        try:
            # What is removed stands in the tombstone before: cut short in between, nobody could say what it was.
            self._mirror(self._tombstones.extend(wish, self._traces(wish, remove=False)[0]))
            letters = dead.drop(self._client, self._letters(wish))
            found, pushes = self._traces(wish, remove=True)
        except (InboxUnavailable, NotReady):  # the documents go now, the rest when the server is back
            complete, found = False, set()
        erased = self._store.erase(wish.user_id, wish.agent_name)
        self._store.reading_notes.forget(wish.user_id, wish.agent_name)
        tombstone = self._tombstones.extend(wish, found | erased.identities)
        if complete:
            self._mirror(tombstone)
            self._tombstones.close(wish)
        rewritten = complete and self._settings.redis_url is None and verbs.rewrite(self._client, REWRITE_S)
        return self._report(pushes, letters, erased, len(tombstone.hashes), complete=complete, rewritten=rewritten)

    def mend(self) -> int:
        """Do what is left to do, and mirror tombstones that the server lost; answers how many wishes were open.

        For the start of a worker, and for each time its server is back.
        Raises InboxUnavailable, StoreUnavailable, OtherStore.
        """
        library.require_store(self._client, self._store)
        for owner in verbs.unmirrored(self._client, self._tombstones.owners()):
            self._mirror(self._tombstones.of(owner))
        wishes = self._tombstones.unfinished()
        for wish in wishes:
            self.finish(wish)
        return len(wishes)

    def _report(
        self,
        pushes: int,
        letters: int,
        erased: Erased,
        messages: int,
        *,
        complete: bool = True,
        rewritten: bool = False,
    ) -> Forgotten:
        beyond = OUT_OF_REACH if rewritten else (APPEND_ONLY_FILE, *OUT_OF_REACH)
        if self._settings.store.shared:
            beyond = (*beyond, SHARED_STORE)
        return Forgotten(pushes, letters, erased.documents, erased.files, messages, complete, beyond)

    def _take_in(self) -> None:
        """Take the raw lists in up to their present length: what lies there was pushed before."""
        RawDoor(self._settings, self._client).take_in_present(TAKE_IN_S)

    def _traces(self, wish: Wish, *, remove: bool) -> tuple[set[str], int]:
        """The identities that the inbox holds, and how many pushes were under way."""
        owner, bucket = user_hash(wish.user_id), wish.bucket.hash if wish.bucket else ""
        found: set[str] = set()
        pushes, cursor = 0, "0"
        while True:
            page = send(self._client, verbs.traces(owner, bucket, cursor, remove=remove))
            found |= page.identities
            pushes += page.pushes
            cursor = page.cursor
            if cursor == "0":
                return found, pushes

    def _letters(self, wish: Wish) -> Iterator[Letter]:
        """The dead letters that are meant, and raw pushes without a form that name the user."""
        owner, bucket = user_hash(wish.user_id), wish.bucket.hash if wish.bucket else None
        for letter in dead.letters(self._client):
            if letter.origin is not None:
                if self._names(letter, wish):
                    yield letter
            elif letter.owner == owner and bucket in (None, letter.bucket):
                yield letter

    def _names(self, letter: Letter, wish: Wish) -> bool:
        found = dead.content(self._client, letter.id)
        raw = found.raw if found and found.raw is not None else ""
        try:
            push = orjson.loads(raw)
        except orjson.JSONDecodeError:  # no form at all: whoever's name stands in it may be meant
            return wish.agent_name is None and wish.user_id in raw
        if not isinstance(push, dict) or push.get("user_id", self._settings.client.default_user) != wish.user_id:
            return False
        return wish.agent_name in (None, push.get("agent_name") or DEFAULT_AGENT)

    def _mirror(self, tombstone: Tombstone | None) -> None:
        if tombstone is not None:
            send(self._client, verbs.tombstone(tombstone.owner, tombstone.salt, tombstone.hashes))
