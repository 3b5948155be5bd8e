"""The right inbox, by message: a reference in plain Python, without a server, hashes or files.

Times are milliseconds of the machine's clock, used only for comparisons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import structs

from memd.context import Bucket, Context, Key, Message, estimate_tokens, is_single, loose


@dataclass(frozen=True)
class Entry:
    """A pending or claimed message, with its place in the order of its key."""

    order: int
    message: Message

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.message.content)


Entries = dict[str, Entry]
"""By identity."""

GIVES_WAY = 8
"""Releases in a row at no attempt after which a key lets the others of its bucket go first."""


@dataclass
class Waiting:
    """The pending messages of a key. `first`: its first push; `hurried`: it was made due at once."""

    first: int
    entries: Entries = field(default_factory=dict)
    attempts: int = 0
    delays: int = 0
    suspect: bool = False
    not_before: int = 0
    hurried: bool = False

    @property
    def newest(self) -> int:
        """The order of its newest message."""
        return max(entry.order for entry in self.entries.values())


@dataclass(frozen=True)
class Taken:
    """The messages of a claim."""

    key: Key
    first: int
    entries: Entries
    attempts: int
    delays: int
    suspect: bool

    @property
    def messages(self) -> tuple[Message, ...]:
        return in_order(self.entries)


def in_order(entries: Entries) -> tuple[Message, ...]:
    """The messages in order of arrival."""
    return tuple(entry.message for entry in sorted(entries.values(), key=lambda entry: entry.order))


class Model:
    """The contents of a perfect inbox and a perfect store."""

    def __init__(self, max_wait: int, claim_tokens: int, max_attempts: int) -> None:
        self._max_wait = max_wait
        self._claim_tokens = claim_tokens
        self._max_attempts = max_attempts
        self._order = 0
        self.waiting: dict[Key, Waiting] = {}
        self.claims: dict[str, Taken] = {}
        self.accepted: defaultdict[Key, set[str]] = defaultdict(set)
        self.dead: defaultdict[Key, set[str]] = defaultdict(set)
        self.skipped: defaultdict[Key, set[str]] = defaultdict(set)
        self.ledger: defaultdict[Bucket, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self.facts: defaultdict[Bucket, dict[str, int]] = defaultdict(dict)
        """The facts of each document, with their confirmations."""

    def push(self, context: Context, now: int) -> tuple[str, frozenset[str]]:
        """Merge a push; returns the server's right reply and the identities of the messages."""
        key = context.key
        held = next((taken.entries for taken in self.claims.values() if taken.key == key), {})
        alive = [_marked(message, held) for message in context.messages if message.identity not in self.dead[key]]
        if not alive:
            return "skipped", frozenset()
        status = "merged" if key in self.waiting else "queued"
        waiting = self.waiting.setdefault(key, Waiting(now))
        before = dict(waiting.entries)
        names = frozenset(self._merge(waiting, before, message) for message in alive)
        self.accepted[key] |= names
        if context.now:
            self._hurry(waiting, now)
        return status, names

    def flush(self, keys: Iterable[Key], now: int) -> None:
        """Make the pending messages of these keys due at once."""
        for key in keys:
            if key in self.waiting:
                self._hurry(self.waiting[key], now)

    def latest(self, key: Key, now: int) -> int:
        """The latest due time of a key: first push + max_wait, at once, or the end of its backoff; at least now."""
        waiting = self.waiting[key]
        return max(now, waiting.not_before, 0 if waiting.hurried else waiting.first + self._max_wait)

    def claim(self, claim_id: str, key: Key) -> Taken:
        """Take the oldest messages of a key, at most as many as one claim holds."""
        waiting = self.waiting[key]
        taken, rest = self._split(waiting.entries)
        if rest:
            waiting.entries = rest
        else:
            del self.waiting[key]
        found = Taken(key, waiting.first, taken, waiting.attempts, waiting.delays, waiting.suspect)
        self.claims[claim_id] = found
        return found

    def line(self, bucket: Bucket) -> list[Key]:
        """The waiting keys of a bucket in the order in which they are claimed when all are due.

        That is by their newest message; keys that came back many times at no attempt stand behind the others.
        """
        keys = [key for key in self.waiting if key.bucket == bucket]
        return sorted(keys, key=lambda key: (self.waiting[key].delays >= GIVES_WAY, self.waiting[key].newest))

    def new_in(self, taken: Taken) -> tuple[Message, ...]:
        """The messages of a claim that the document has not taken in."""
        known = set(self.ledger[taken.key.bucket][taken.key.thread_id])
        fresh = []
        for message in taken.messages:
            name = message.identity
            if name in known or (is_single(name) and any(loose(other) == loose(name) for other in known)):
                continue
            known.add(name)
            fresh.append(message)
        return tuple(fresh)

    def commit(self, taken: Taken) -> None:
        """Apply a claim to its document: one fact for each new user message."""
        facts, said = self.facts[taken.key.bucket], set()
        for message in self.new_in(taken):
            if message.role == "user" and message.content not in said:
                facts[message.content] = facts.get(message.content, -1) + 1
                said.add(message.content)
        ledger = self.ledger[taken.key.bucket][taken.key.thread_id]
        ledger += [message.identity for message in taken.messages if message.identity not in ledger]

    def ack(self, claim_id: str) -> None:
        """End a claim; messages that its document did not take in were skipped."""
        taken = self.claims.pop(claim_id)
        ledger = self.ledger[taken.key.bucket][taken.key.thread_id]
        self.skipped[taken.key] |= taken.entries.keys() - set(ledger)

    def bury(self, claim_id: str) -> None:
        """Move a claim to the dead."""
        taken = self.claims.pop(claim_id)
        self.dead[taken.key] |= taken.entries.keys()

    def release(self, claim_id: str, how: str, now: int, backoff: int = 0) -> str:
        """Release a claim as though it had never been taken; returns released or dead."""
        taken = self.claims[claim_id]
        costs = how == "failed" or (how == "expired" and taken.suspect)
        attempts = taken.attempts + costs
        if costs and attempts >= self._max_attempts:
            self.bury(claim_id)
            return "dead"
        del self.claims[claim_id]
        waiting = self.waiting.setdefault(taken.key, Waiting(now))
        waiting.entries |= {name: _united(old, waiting.entries.get(name)) for name, old in taken.entries.items()}
        waiting.first = taken.first
        waiting.attempts = attempts
        waiting.delays = 0 if costs else taken.delays + 1
        waiting.not_before = now + backoff
        waiting.suspect = waiting.suspect or how == "expired"
        return "released"

    def ended(self, key: Key) -> set[str]:
        """The messages of a key that are stored, skipped or dead."""
        return {*self.ledger[key.bucket][key.thread_id], *self.skipped[key], *self.dead[key]}

    def _merge(self, waiting: Waiting, before: Entries, message: Message) -> str:
        """The newest text stays, in the oldest place, with the signals of both and the mark of the oldest."""
        name = _twin(before, message.identity) if message.identity not in before else message.identity
        self._order += 1
        new = Entry(self._order, structs.replace(message, identity=name))
        old = waiting.entries.get(name)
        waiting.entries[name] = _united(old, new) if old else new
        return name

    def _hurry(self, waiting: Waiting, now: int) -> None:
        waiting.hurried = True
        waiting.not_before = min(waiting.not_before, now)

    def _split(self, entries: Entries) -> tuple[Entries, Entries]:
        names = sorted(entries, key=lambda name: entries[name].order)
        total, count = 0, 0
        for name in names:
            total += entries[name].tokens
            before = entries[names[count - 1]].message.role if count else ""
            answers = (before, entries[name].message.role) == ("assistant", "user") and entries[name].tokens <= 120
            if count and total > self._claim_tokens and not answers:
                break
            count += 1
        return {name: entries[name] for name in names[:count]}, {name: entries[name] for name in names[count:]}


def _united(old: Entry, new: Entry | None) -> Entry:
    if new is None:
        return old
    signals, project = old.message.signals | new.message.signals, old.message.project
    return Entry(old.order, structs.replace(new.message, signals=signals, project=project))


def _marked(message: Message, held: Entries) -> Message:
    """The message with the mark of its first push: none but that of the one that a claim holds."""
    if not message.project or message.identity not in held:
        return message
    return structs.replace(message, project=held[message.identity].message.project)


def _twin(entries: Entries, identity: str) -> str:
    """A message without id and predecessor is also known by thread, role and content alone."""
    alike = (name for name in entries if loose(name) == loose(identity)) if is_single(identity) else ()
    return next(iter(alike), identity)
