"""Forgetting: removes every trace of a user, or of one agent's memory of them, and keeps it from coming back.

1. Raw pushes that were there before the wish are taken in.
2. The wish gets its cut: the inbox loses what it accepted up to this moment, and keeps what comes later.
3. A tombstone is written, durably: hashes of all messages to be forgotten, and the wish itself.
4. The tombstone is mirrored to the server, which skips these messages from now on; inbox and dead letters lose them.
5. The user's words leave the documents of projects, one after the other; then the user's own documents, reading notes,
   todo lists and tasks are erased under their locks.
6. The wish is closed.

Every step may be repeated. When the process is killed, or the server is out of reach, the open wish says what is left,
and a worker does it before it works on anything of that user. The cut of a wish whose server was out of reach is a time
of this host's clock; raw pushes, which have no time of their own, count by the last look at their list.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

import orjson
import redis

from memd.config import Settings
from memd.context import DEFAULT_AGENT, of_project, user_hash
from memd.errors import Conflict, InboxUnavailable, NotReady
from memd.identifiers import check_identifier
from memd.inbox import app_events, dead, forgetting, library
from memd.inbox.connection import send
from memd.inbox.dead import Letter
from memd.inbox.raw_door import Backlog, RawDoor
from memd.inbox.verbs import raw_lists
from memd.memory.projects.leaving import without_user
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Cut, Erased, Store, Tombstone, Wish
from memd.push.times import iso
from memd.tasks.task_folder import TaskFolder

TAKE_IN_S = 60.0
"""Seconds for taking raw pushes in. The scheduler takes the remaining pushes in later, and they are not forgotten."""

CLOCKS_MS = 2_000
"""How far the clocks of this host and of a server on another host may be apart. What a server that is out of reach
accepts so shortly after a wish is forgotten as well: nobody can tell that it was not said before."""

ROUNDS = 50
"""How often a project is loaded again because a member's delivery was faster."""

LETTERS = 500
"""Dead letters of one call."""

REWRITE_S = 10.0
"""Seconds that the embedded server gets to rewrite its append-only file."""

APPEND_ONLY_FILE = "the server's append-only file, until its next rewrite"
OUT_OF_REACH = (
    "backups of the data folder and of the server",
    "the data that the model's provider keeps",
)
SHARED_STORE = "the shared memory: its facts do not name their users"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The removed data (with a dry run: the data to remove) and the places that memd cannot reach.

    `pushes`: pending or claimed in the inbox. `dead`: dead letters. `messages`: hashes in the tombstone.
    `complete` is False when the server was out of reach: a worker does the rest when it is back. `known` is False when
    memd has no document, key, dead letter or tombstone of the user: then nothing was done, and nothing was left.
    """

    pushes: int = 0
    dead: int = 0
    documents: int = 0
    files: int = 0
    messages: int = 0
    complete: bool = True
    unreachable: tuple[str, ...] = (APPEND_ONLY_FILE, *OUT_OF_REACH)
    known: bool = True


UNKNOWN = Forgotten(unreachable=(), known=False)


@dataclass(frozen=True, slots=True)
class _Traces:
    """The user's data in the inbox: identities of messages, pushes in flight, dead letters."""

    identities: frozenset[str] = frozenset()
    pushes: int = 0
    letters: int = 0


def forget(
    settings: Settings, client: redis.Redis, user_id: str, agent_name: str | None, *, dry_run: bool
) -> Forgotten:
    """Forget what unchecked ids name (see `Memd.forget`). Raises Rejected, StoreUnavailable."""
    wish = Wish(
        check_identifier("user_id", user_id), check_identifier("agent_name", agent_name) if agent_name else agent_name
    )
    forgetting = Forgetting(settings, client, open_store(settings))
    return forgetting.preview(wish) if dry_run else forgetting.run(wish)


class Forgetting:
    """Forgets. The server that `client` is for may be out of reach."""

    def __init__(self, settings: Settings, client: redis.Redis, store: Store) -> None:
        self._settings = settings
        self._client = client
        self._store = store
        self._tombstones = store.tombstones

    def preview(self, wish: Wish) -> Forgotten:
        """The data that `run` would remove now. Raises InboxUnavailable, OtherStore."""
        library.require_store(self._client, self._store)
        traces = self._traces(wish, remove=False)
        letters = sum(1 for _ in self._letters(wish))
        erased = self._look(wish)
        if not (letters or Backlog(self._client, raw_lists(self._settings)) or self._knows(wish, erased)):
            return UNKNOWN
        messages = len(traces.identities | erased.identities)
        return Forgotten(
            traces.pushes, letters, erased.documents, erased.files, messages, unreachable=self._unreachable()
        )

    def run(self, wish: Wish) -> Forgotten:
        """Forget. Raises OtherStore before anything is done.

        Raises StoreUnavailable; if the wish is already recorded, a worker completes it.
        """
        erased = self._look(wish)
        identities = erased.identities
        wish = replace(wish, cut=self._cut_by_clock())
        try:
            library.require_store(self._client, self._store)
            taken_in = RawDoor(self._settings, self._client).take_in_present(TAKE_IN_S)
            if taken_in and not (self._knows(wish, erased) or any(self._letters(wish))):
                return UNKNOWN
            wish = replace(wish, cut=send(self._client, forgetting.cut()))
            identities |= self._traces(wish, remove=False).identities
        except (InboxUnavailable, NotReady):  # the wish stays open until there is an inbox
            pass
        self._tombstones.begin(wish, identities)
        return self._fulfil(wish, self._empty_inbox(wish))

    def _knows(self, wish: Wish, erased: Erased) -> bool:
        """Whether store or inbox have anything of the user. The facts of a shared memory do not name their users."""
        if erased.files or self._settings.store.shared or self._tombstones.find(wish.user_id) is not None:
            return True
        return forgetting.knows(self._client, user_hash(wish.user_id))

    def finish(self, wish: Wish) -> Forgotten:
        """Complete an interrupted wish. It may be repeated. Raises StoreUnavailable.

        What the inbox has accepted since, and what was written to a document that was erased already, stays.
        """
        tombstone = self._tombstones.find(wish.user_id)
        emptied = tombstone is not None and wish in tombstone.emptied
        return self._fulfil(wish, _Traces() if emptied else self._empty_inbox(wish))

    def _fulfil(self, wish: Wish, traces: _Traces | None) -> Forgotten:
        """Erase the documents, and close the wish if the inbox was emptied (`traces` is not None)."""
        if traces is not None:
            self._tombstones.note(wish, "emptied")
        erased = self._erase(wish)
        self._tombstones.note(wish, "erased")
        inbox = traces or _Traces()
        tombstone = self._tombstones.extend(wish, inbox.identities | erased.identities)
        if traces is not None:
            self._mirror(tombstone)
            self._strike(wish)
            self._tell(wish)
            self._tombstones.close(wish)
        embedded = self._settings.redis_url is None
        rewritten = traces is not None and embedded and forgetting.rewrite(self._client, REWRITE_S)
        return Forgotten(
            inbox.pushes,
            inbox.letters,
            erased.documents,
            erased.files,
            len(tombstone.hashes),
            complete=traces is not None,
            unreachable=self._unreachable(rewritten=rewritten),
        )

    def _strike(self, wish: Wish) -> None:
        """Remove what the tombstone names and was sent again before it stood: nothing of it is accepted any more."""
        owner = user_hash(wish.user_id)
        with suppress(NotReady):  # functions of an older version, which strike no letters
            forgetting.strike(self._client, owner)
            for page in self._pages_of_letters(wish):
                send(self._client, forgetting.strike_letters(owner, page))

    def _tell(self, wish: Wish) -> None:
        """Remove what the events tell of the user, and tell that the user is forgotten."""
        cut = wish.cut or self._cut_by_clock()
        bucket = wish.bucket.hash if wish.bucket else ""
        start = "-"
        with suppress(NotReady):  # functions of an older version, which write no events
            while start:
                start = send(self._client, app_events.forget(user_hash(wish.user_id), bucket, cut.ms, start))

    def mend(self) -> int:
        """Fulfil open wishes, and mirror tombstones that the server lost; returns how many wishes were open.

        For the start of a worker, and for each time its server is back.
        Raises InboxUnavailable, StoreUnavailable, OtherStore.
        """
        library.require_store(self._client, self._store)
        for owner in forgetting.unmirrored(self._client, self._tombstones.owners()):
            self._mirror(self._tombstones.of(owner))
        wishes = self._tombstones.unfinished()
        for wish in wishes:
            self.finish(wish)
        return len(wishes)

    def repeat(self) -> int:
        """Bring all tombstones to a server that may have lost the last of them, and what they name out of its inbox.

        For a server that took over from another one. Returns how many messages went. Raises as `mend`.
        """
        library.require_store(self._client, self._store)
        owners = self._tombstones.owners()
        for owner in owners:
            self._mirror(self._tombstones.of(owner))
        return sum(forgetting.strike(self._client, owner) for owner in owners)

    def _empty_inbox(self, wish: Wish) -> _Traces | None:
        """Remove the user's messages from the inbox and the dead; None when the server is out of reach."""
        try:
            if wish.cut is None or wish.cut.order is None:  # what lay in the raw lists may have come before the wish
                RawDoor(self._settings, self._client).take_in_present(TAKE_IN_S)
            # The tombstone knows a message before the inbox loses it: after a crash in between nobody else would.
            self._mirror(self._tombstones.extend(wish, self._traces(wish, remove=False).identities))
            letters = self._old_letters(wish, remove=True)[0]
            return replace(self._traces(wish, remove=True), letters=letters)
        except (InboxUnavailable, NotReady):  # the documents go now, the rest when the server is back
            return None

    def _cut_by_clock(self) -> Cut:
        """The cut of a wish whose server is out of reach."""
        url = self._settings.redis_url
        apart_ms = 0 if url is None or url.reveal().startswith("unix:") else CLOCKS_MS
        return Cut(int(time.time() * 1000) + apart_ms)

    def _look(self, wish: Wish) -> Erased:
        """What `_erase` would remove now."""
        erased = self._store.erase(wish.user_id, wish.agent_name, dry_run=True)
        return replace(erased, files=erased.files + self._tasks(wish).count())

    def _tasks(self, wish: Wish) -> TaskFolder:
        """The todo lists and tasks, which are files beside every store, a shared one too: they name their user."""
        return TaskFolder(self._settings.data_dir, wish.user_id, wish.agent_name)

    def _erase(self, wish: Wish) -> Erased:
        """Erase documents and tasks, unless somebody did for this wish: what is written since must stay."""

        def still_wanted() -> bool:
            tombstone = self._tombstones.find(wish.user_id)
            return tombstone is not None and wish in tombstone.open and wish not in tombstone.erased

        if wish.agent_name is None:
            self._leave_projects(wish.user_id)
        erased = self._store.erase(wish.user_id, wish.agent_name, still_wanted=still_wanted)
        self._store.reading_notes.forget(wish.user_id, wish.agent_name)
        return replace(erased, files=erased.files + self._tasks(wish).erase(still_wanted))

    def _leave_projects(self, user_id: str) -> None:
        """Take a user's words out of all projects. The tombstone stands by now, so that no delivery brings them back.

        Every project is looked at, whatever the user's own document lists: that may be gone already. Raises
        StoreUnavailable, DocumentDamaged, Conflict.
        """
        for project_id in self._store.projects():
            bucket = of_project(project_id)
            for _ in range(ROUNDS):
                loaded = self._store.load(bucket)
                document = without_user(loaded.document, user_id, iso(datetime.now(UTC)))
                if document is loaded.document:
                    break
                try:
                    self._store.commit(bucket, loaded, document, lambda: True)
                except Conflict:  # a member's delivery was faster
                    continue
                break
            else:
                raise Conflict("E_CONFLICT: members' deliveries were faster every time; forget again")

    def _unreachable(self, *, rewritten: bool = False) -> tuple[str, ...]:
        """The places that may still hold traces."""
        places = OUT_OF_REACH if rewritten else (APPEND_ONLY_FILE, *OUT_OF_REACH)
        return (*places, SHARED_STORE) if self._settings.store.shared else places

    def _traces(self, wish: Wish, *, remove: bool) -> _Traces:
        """What the wish takes of the user's messages in the inbox; with `remove` all but letters goes, page by page."""
        owner, bucket = user_hash(wish.user_id), wish.bucket.hash if wish.bucket else ""
        identities = set() if remove else set(self._old_letters(wish, remove=False)[1])
        pushes, cursor = 0, "0"
        while True:
            page = send(self._client, forgetting.traces(owner, bucket, cursor, wish.cut, remove=remove))
            identities |= page.identities
            pushes += page.pushes
            cursor = page.cursor
            if cursor == "0":
                return _Traces(frozenset(identities), pushes)

    def _old_letters(self, wish: Wish, *, remove: bool) -> tuple[int, frozenset[str]]:
        """How many dead letters the wish takes, and the identities in them; with `remove` they are removed."""
        count, identities = 0, frozenset[str]()
        for page in self._pages_of_letters(wish):
            taken, names = send(self._client, forgetting.letters(page, wish.cut, remove=remove))
            count, identities = count + taken, identities | names
        return count, identities

    def _pages_of_letters(self, wish: Wish) -> Iterator[list[str]]:
        ids = iter([letter.id for letter in self._letters(wish)])
        while page := list(islice(ids, LETTERS)):
            yield page

    def _letters(self, wish: Wish) -> Iterator[Letter]:
        """The user's dead letters, and refused raw pushes that name the user."""
        owner, bucket = user_hash(wish.user_id), wish.bucket.hash if wish.bucket else None
        for letter in dead.letters(self._client):
            if letter.origin is not None:
                if self._names(letter, wish):
                    yield letter
            elif letter.owner == owner and bucket in (None, letter.bucket):
                yield letter

    def _names(self, letter: Letter, wish: Wish) -> bool:
        content = dead.content(self._client, letter.id)
        raw = content.raw if content and content.raw is not None else ""
        try:
            push = orjson.loads(raw)
        except orjson.JSONDecodeError:  # not JSON: it may be about anybody whose name is in it
            return wish.agent_name is None and wish.user_id in raw
        if not isinstance(push, dict) or push.get("user_id", self._settings.client.default_user) != wish.user_id:
            return False
        return wish.agent_name in (None, push.get("agent_name") or DEFAULT_AGENT)

    def _mirror(self, tombstone: Tombstone | None) -> None:
        if tombstone is not None:
            send(self._client, forgetting.tombstone(tombstone))
