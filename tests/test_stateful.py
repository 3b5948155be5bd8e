"""Random histories of the inbox on a real server and real documents, held against a reference after every step.

`STATEFUL_EXAMPLES=20000 pytest tests/test_stateful.py` runs other and more histories than CI does.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import inbox_view
import orjson
import pytest
import redis
from hypothesis import HealthCheck, Phase
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from inbox_model import Model, Taken, in_order
from inbox_view import View, advance, look

from memd import breaker, inbox, library
from memd.claim import Claim, Claims
from memd.config import Settings
from memd.connection import send
from memd.context import Bucket, Context, Key, Message, identify, user_hash
from memd.duties.intake import Intake
from memd.duties.rescue import Rescue
from memd.errors import ClaimLost, Conflict, ModelUnavailable
from memd.filtering import to_context
from memd.inbox import P
from memd.memory import ledger, paths
from memd.memory.apply import Origin, apply
from memd.memory.document import Document
from memd.memory.store import JsonStore, Loaded
from memd.memory.update import Evidence, NewFact, Update
from memd.receipt import judge
from memd.signals import load_patterns
from memd.validation import parse_push

EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "0"))

ENDPOINT = "model"
KEYS = [Key("t1", "ana"), Key("t2", "ana"), Key("t3", "ana"), Key("t1", "ana", "helper"), Key("t1", "bob")]
BUCKETS = list(dict.fromkeys(key.bucket for key in KEYS))
WORKERS = ["one", "two", "three"]
BIG = 4
"""The number of the message that is larger than one claim, and makes its key due at once."""

SETTINGS = {
    # So long that no step's own time counts; what passes is what `time_passes` lets pass.
    "scheduler__quiet_s": 30,
    "scheduler__max_wait_s": 300,
    "drain__lease_s": 120,
    "drain__backoff_s": 2,
    "drain__backoff_max_s": 300,
    "inbox__receipt_ttl_s": 600,
    "inbox__known_ttl_s": 600,
    # So small that a few messages are too many.
    "scheduler__flush_tokens": 70,
    "drain__claim_tokens": 60,
    "drain__max_attempts": 3,
}


@dataclass(frozen=True)
class Window:
    """A push: some messages of a conversation from `start` on, with ids or without; in thread t2 then with times."""

    key: Key
    start: int
    length: int
    ids: bool
    version: int
    signal: str
    now: bool

    @property
    def context(self) -> Context:
        turns = [self._turn(number) for number in range(self.start, self.start + self.length)]
        last = turns[-1]
        named = frozenset({self.signal} - {""})
        turns[-1] = Message(last.role, last.content, last.id, last.created_at, named)
        return Context(self.key, identify(self.key.thread_id, turns), self.now)

    @property
    def raw(self) -> bytes:
        fields = {"thread_id": self.key.thread_id, "user_id": self.key.user_id, "agent_name": self.key.agent_name}
        turns = [
            {"role": turn.role, "content": turn.content, "id": turn.id, "created_at": turn.created_at}
            for turn in self.context.messages
        ]
        return orjson.dumps(
            {**fields, "messages": turns, "signals": [self.signal][: len(self.signal)], "now": self.now}
        )

    def _turn(self, number: int) -> Message:
        version = self.version if self.ids else 0
        timed = self.key.thread_id == "t2" and not self.ids
        content = f"{'/'.join(self.key)} number {number} version {version}" + " big" * 60 * (number == BIG)
        return Message(
            "assistant" if number % 3 == 1 else "user",
            content,
            id=str(number) if self.ids else None,
            created_at=f"2026-01-01T00:00:0{number}Z" if timed else None,
        )


WINDOWS = st.builds(
    Window,
    key=st.sampled_from(KEYS),
    start=st.integers(0, 5),
    length=st.integers(1, 4),
    ids=st.booleans(),
    version=st.integers(0, 1),
    signal=st.sampled_from(["", "correction", "reinforcement"]),
    now=st.booleans(),
)
WHICH = st.integers(0, 7)


@dataclass
class Held:
    """A claim in the hands of a worker, who may have lost it without knowing. `done`: how it may be acked."""

    claim: Claim
    worker: str
    loaded: Loaded | None = None
    wanted: Document | None = None
    done: str = ""


class World:
    """What all histories of a test share: the server, the settings, and schedulers, which remember nothing."""

    def __init__(self, client: redis.Redis, settings: Settings) -> None:
        self.client = client
        self.settings = settings
        self.patterns = load_patterns(None)
        self.intakes = [Intake(settings, client) for _ in range(2)]
        self.rescues = [Rescue(client) for _ in range(2)]


class InboxMachine(RuleBasedStateMachine):
    """Producers, schedulers and workers that do anything in any order; the model says what must come of it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._client, self._settings = client, settings = world.client, world.settings
        client.flushall()
        shutil.rmtree(settings.data_dir / "users", ignore_errors=True)
        library.install(client, settings)
        self._store = JsonStore(settings.data_dir, settings.store)
        self._model = Model(
            max_wait=int(settings.scheduler.max_wait_s * 1000),
            claim_tokens=settings.drain.claim_tokens,
            max_attempts=settings.drain.max_attempts,
        )
        self._passed = 0
        self._held: list[Held] = []
        self._raw: list[bytes] = []
        self._raw_dead = 0
        self._receipts: dict[inbox.Note, tuple[Key, frozenset[str]]] = {}
        self._files: dict[Bucket, bytes | None] = dict.fromkeys(BUCKETS)
        self._outside = sys.exc_info()[1]

    # --- producers -------------------------------------------------------------------------------------------------

    @rule(window=WINDOWS)
    def push(self, window: Window) -> None:
        """A trusted app pushes; a push that was sent before is the same as one sent again."""
        context = window.context
        merged = send(self._client, inbox.push(context))
        status, names = self._model.push(context, self._now())
        assert merged.status == status
        if names:
            self._receipts[merged.key, merged.gen, merged.seq] = (context.key, names)

    @rule(window=WINDOWS)
    def push_raw(self, window: Window) -> None:
        """Another app leaves its conversation in the raw list."""
        self._raw.append(window.raw)
        self._client.rpush(inbox.RAW, window.raw)

    @rule(raw=st.sampled_from([b"\xff", b"[]", b'{"thread_id":"t1","user_id":"ana","messages":[]}']))
    def push_nonsense(self, raw: bytes) -> None:
        """Whatever else somebody leaves there."""
        self._raw.append(raw)
        self._client.rpush(inbox.RAW, raw)

    @rule(window=WINDOWS, everything=st.booleans())
    @precondition(lambda self: self._under_way())
    def flush(self, window: Window, everything: bool) -> None:
        """All keys of a user, or all there are, are made due and noted, wherever they stand."""
        user = window.key.user_id
        chosen = {key for key in self._under_way() if everything or key.user_id == user}
        sources = ["due", "claimed", "due"] if everything else ["user"]
        extra = [] if everything else [user_hash(user)]
        pages = [send(self._client, inbox.flush_page(source, "0", (None, None, None), extra)) for source in sources]
        assert {note[0] for _, notes in pages for note in notes} == {key.hash for key in chosen}
        self._model.flush(chosen, self._now())

    # --- schedulers ------------------------------------------------------------------------------------------------

    @rule()
    @precondition(lambda self: self._raw)
    def take_in(self) -> None:
        """Two schedulers take in what lies in the raw list."""
        for intake in self._world.intakes:
            intake.tick()
        for raw in self._raw:
            self._take_in(raw)
        self._raw.clear()

    def _take_in(self, raw: bytes) -> None:
        if raw.startswith(b'{"thread_id":"t') and b'"messages":[]' not in raw:
            self._model.push(to_context(parse_push(raw, self._settings.client), self._world.patterns), self._now())
        else:
            self._raw_dead += 1

    @rule(which=WHICH)
    @precondition(lambda self: self._held)
    def expire(self, which: int) -> None:
        """The lease of a claim runs out, and two schedulers rescue it."""
        self._expire(self._pick(which))

    def _expire(self, held: Held) -> None:
        if held.claim.id in self._model.claims:
            self._client.zadd(f"{P}:claimed", {held.claim.id: 1})
        self.rescue()

    @rule()
    @precondition(lambda self: self._model.claims)
    def rescue(self) -> None:
        """Two schedulers look for leases that ran out, at the same moment."""
        tick = send(self._client, inbox.tick(0, ENDPOINT))
        for rescue in self._world.rescues:
            rescue.look(tick)
        for claim_id in tick.expired:
            self._model.release(claim_id, "expired", self._now())

    @rule(seconds=st.sampled_from([1, 31, 125, 301, 601]))
    def time_passes(self, seconds: int) -> None:
        """Quiet time, leases, backoff and receipts run on."""
        advance(self._client, seconds * 1000)
        self._passed += seconds * 1000

    @rule()
    @precondition(lambda self: self._receipts)
    def sweep(self) -> None:
        """Outcomes whose time is over are forgotten, unless something of their key is left."""
        before = look(self._client)
        swept = send(self._client, inbox.sweep())
        gone = before.family("outcome").keys() - look(self._client).family("outcome").keys()
        assert swept == len(gone)
        assert gone.isdisjoint(key.hash for key in self._under_way())
        assert all(before.zset("ended")[key] <= self._clock() for key in gone)
        self._receipts = {note: push for note, push in self._receipts.items() if note[0] not in gone}

    # --- workers ---------------------------------------------------------------------------------------------------

    @rule(worker=st.sampled_from(WORKERS), room=st.integers(1, 4))
    def claim(self, worker: str, room: int) -> None:
        """A worker takes what it has room for, though others may hold claims."""
        before = look(self._client)
        holding = sum(held.worker == worker for held in self._held)
        claims = send(self._client, inbox.claim(self._settings, room, holding, worker, ENDPOINT))
        assert claims.breaker == _breaker_state(before, claims.now_ms)
        assert len(claims.taken) <= {"closed": room, "half-open": 1}.get(claims.breaker, 0)
        for claim in claims.taken:
            self._check_claim(claim, before, claims)
            self._held.append(Held(claim, worker))
        if any(claim.suspect for claim in claims.taken):
            assert len(claims.taken) == 1
            assert holding == 0
        elif claims.breaker == "closed" and len(claims.taken) < room:
            self._check_nothing_was_left(claims)

    def _check_claim(self, claim: Claim, before: View, claims: Claims) -> None:
        """A claim holds the oldest messages of a due key whose bucket was free, in their order."""
        assert before.due(claim.key.hash) <= claims.now_ms
        assert claim.key.bucket not in {taken.key.bucket for taken in self._model.claims.values()}
        taken = self._model.claim(claim.id, claim.key)
        assert claim.messages == taken.messages
        assert (claim.attempts, claim.delays, claim.suspect) == (taken.attempts, taken.delays, taken.suspect)
        assert claim.bad is None

    def _check_nothing_was_left(self, claims: Claims) -> None:
        """A worker with room takes all that is due, but for suspects while it holds something else."""
        view = look(self._client)
        for key, due in view.zset("due").items():
            fields = view.pending[key]
            free = fields[".bucket"] not in view.hash("busy") and ".suspect" not in fields
            assert not (free and due <= claims.now_ms)

    @rule(which=WHICH)
    @precondition(lambda self: self._held)
    def extend(self, which: int) -> None:
        """A worker renews a lease, or learns that it has lost the claim."""
        claim = self._pick(which).claim
        assert send(self._client, inbox.extend([claim.id])) == [claim.id in self._model.claims]

    @rule(which=WHICH)
    @precondition(lambda self: self._held)
    def load(self, which: int) -> None:
        """A worker reads the document and learns what its claim changes in it."""
        self._load(self._pick(which))

    def _load(self, held: Held) -> None:
        claim = held.claim
        held.loaded = self._store.load(claim.key.bucket)
        new = ledger.unknown(held.loaded.document, claim.key.thread_id, claim.messages)
        origin = Origin(claim.key.thread_id, datetime.now(UTC), "model", "1")
        applied = apply(held.loaded.document, _said(new), new, claim.messages, origin, self._settings.apply)
        assert {refusal.reason for refusal in applied.refusals} <= {"repeated"}
        held.wanted = applied.document
        held.done = "" if any(message.role == "user" for message in new) else "skipped"
        if not new:
            assert applied.document is held.loaded.document

    @rule(which=WHICH, frozen=st.booleans())
    @precondition(lambda self: self._held)
    def commit(self, which: int, frozen: bool) -> None:
        """A worker stores what its claim came to: only while the claim is its own.

        `frozen`: right after it was told that the claim is its own, it stands still until another one has it.
        """
        held = self._pick(which)
        if held.loaded is None or held.wanted is None:
            self._load(held)
        assert held.loaded is not None
        assert held.wanted is not None
        if held.done:
            return
        taken = self._model.claims.get(held.claim.id)
        try:
            self._store.commit(held.claim.key.bucket, held.loaded, held.wanted, self._asking(held, frozen))
        except ClaimLost:
            assert taken is None
        except Conflict:  # another one has written since; a worker loads again and goes on
            self._load(held)
        else:
            assert taken is not None
            self._committed(held, taken)

    def _asking(self, held: Held, frozen: bool) -> Callable[[], bool]:
        def still_ours() -> bool:
            ours = send(self._client, inbox.extend([held.claim.id]))[0]
            if ours and frozen:
                self._expire(held)
                self.claim("thawed", 2)
                for other in self._held:
                    if other.worker == "thawed":
                        self._load(other)
            return ours

        return still_ours

    def _committed(self, held: Held, taken: Taken) -> None:
        held.done = "stored"
        self._model.commit(taken)
        bucket = taken.key.bucket
        self._files[bucket] = self._read(bucket)
        self._check_document(bucket)

    @rule(which=WHICH)
    @precondition(lambda self: self._held)
    def ack(self, which: int) -> None:
        """A worker that has stored its claim says so, maybe too late."""
        held = self._pick(which)
        ours = held.claim.id in self._model.claims
        if ours and not held.done:
            return
        self._held.remove(held)
        assert send(self._client, inbox.ack(held.claim.id, _record(held.done), {})) == ours
        if ours:
            self._model.ack(held.claim.id)
            if held.done == "stored":
                self._check_on_disk(held.claim)

    @rule(which=WHICH, how=st.sampled_from(["failed", "paused"]), backoff_s=st.sampled_from([0, 5, 60]))
    @precondition(lambda self: self._held)
    def release(self, which: int, how: str, backoff_s: int) -> None:
        """A worker gives a claim back, even one that it has stored but not acked."""
        held = self._held.pop(which % len(self._held))
        claim_id = held.claim.id
        ours = claim_id in self._model.claims
        end = send(self._client, inbox.release(claim_id, how, backoff_s, "E_TEST"))
        assert end == (self._model.release(claim_id, how, self._now(), backoff_s * 1000) if ours else "lost")

    @rule(which=WHICH)
    @precondition(lambda self: self._held)
    def bury(self, which: int) -> None:
        """A worker finds that a claim's content can never be worked on."""
        held = self._held.pop(which % len(self._held))
        ours = held.claim.id in self._model.claims
        assert send(self._client, inbox.bury(held.claim.id, "E_TEST", "a test")) == ours
        if ours:
            self._model.bury(held.claim.id)

    @rule(worker=st.sampled_from(WORKERS))
    @precondition(lambda self: self._held)
    def die(self, worker: str) -> None:
        """A worker is killed, and its successor knows nothing of what it held."""
        self._held = [held for held in self._held if held.worker != worker]

    # --- the model endpoint ----------------------------------------------------------------------------------------

    @rule(retry_after_s=st.sampled_from([None, 100.0]), code=st.sampled_from(["rate_limited", "server_error"]))
    def call_fails(self, retry_after_s: float | None, code: str) -> None:
        """A call of the model fails; while the breaker is open, nothing is claimed."""
        send(self._client, breaker.trip(ENDPOINT, ModelUnavailable(code, "", retry_after_s)))

    @rule(which=WHICH, called=st.booleans())
    @precondition(lambda self: self._held)
    def call_ends(self, which: int, called: bool) -> None:
        """A call of the model succeeds, or was not needed."""
        verb = breaker.close if called else breaker.free
        send(self._client, verb(ENDPOINT, self._pick(which).claim.id))

    # --- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def all_is_as_it_must_be(self) -> None:
        """After every step: structure, messages, due times, documents and receipts."""
        view = look(self._client)
        inbox_view.check(view, self._clock())
        self._check_messages(view)
        self._check_conservation(view)
        self._check_due(view)
        self._check_receipts()
        assert {bucket: self._read(bucket) for bucket in BUCKETS} == self._files

    def _check_messages(self, view: View) -> None:
        """Pending, claimed, dead and raw messages are those of the model, in the same order."""
        pending = {key: inbox_view.messages(fields) for key, fields in view.pending.items()}
        claimed = {claim: inbox_view.messages(fields) for claim, fields in view.claims.items()}
        waiting = {key.hash: in_order(w.entries) for key, w in self._model.waiting.items()}
        assert pending == waiting
        assert claimed == {claim: taken.messages for claim, taken in self._model.claims.items()}
        assert view.family("died") == {key.hash: died for key, died in self._model.dead.items() if died}
        assert sum(".raw" in letter for letter in view.family("dead").values()) == self._raw_dead
        assert len(view.keys.get(inbox.RAW, ())) == len(self._raw)

    def _check_conservation(self, view: View) -> None:
        """Each accepted message is stored, skipped, dead, pending or claimed."""
        for key, accepted in self._model.accepted.items():
            found = self._model.skipped[key] | view.family("died").get(key.hash, set())
            found |= set(self._model.ledger[key.bucket][key.thread_id])
            places = [view.pending.get(key.hash, {})]
            places += [fields for fields in view.claims.values() if fields[".key"] == key.hash]
            found |= {message.identity for fields in places for message in inbox_view.messages(fields)}
            assert accepted <= found

    def _check_due(self, view: View) -> None:
        """No key is due later than it must be."""
        for key in self._model.waiting:
            assert view.due(key.hash) + self._passed <= self._model.latest(key, self._now())

    def _check_receipts(self) -> None:
        """A receipt tells what became of its push, and never more than is true."""
        notes = list(self._receipts)
        standings = send(self._client, inbox.standings([key for key, _, _ in notes])) if notes else []
        under_way = self._under_way()
        for (_, gen, seq), standing, (key, identities) in zip(notes, standings, self._receipts.values(), strict=True):
            state = judge(standing, gen, seq).state
            dead = self._model.dead[key]
            assert state != "unknown"
            assert state not in {"pending", "claimed"} or key in under_way
            assert state != "dead" or dead
            if state in {"stored", "skipped"}:
                taken = set(self._model.ledger[key.bucket][key.thread_id])
                assert identities <= taken | self._model.skipped[key] | dead

    def _check_document(self, bucket: Bucket) -> None:
        """A document holds its user's facts, each once, and the messages they came from in their order."""
        document = self._store.load(bucket).document
        facts = {fact["content"]: fact.get("confirmations", 0) for fact in document["facts"]}
        assert facts == self._model.facts[bucket]
        assert len(facts) == len(document["facts"])
        assert document["ledger"] == {thread: known for thread, known in self._model.ledger[bucket].items() if known}
        for fact in document["facts"]:
            assert fact["content"].startswith(f"{fact['source']}/{bucket.user_id}/{bucket.agent_name} ")

    def _check_on_disk(self, claim: Claim) -> None:
        """What was acked as stored is in the document on disk."""
        document = JsonStore(self._settings.data_dir, self._settings.store).load(claim.key.bucket).document
        assert {message.identity for message in claim.messages} <= set(document["ledger"][claim.key.thread_id])

    def teardown(self) -> None:
        """When all has ended, the documents are the model's, and nothing is left that should not be."""
        if sys.exc_info()[1] is not self._outside:
            return  # it has failed already; that is the failure to tell
        self._drain()
        for key, accepted in self._model.accepted.items():
            ended = set(self._model.ledger[key.bucket][key.thread_id]) | self._model.skipped[key]
            assert accepted <= ended | self._model.dead[key]
        for bucket in BUCKETS:
            self._check_document(bucket)
        self._check_leftovers()

    def _drain(self) -> None:
        """One worker that never fails does all there is to do, in as many rounds as there may be parts."""
        self._held.clear()
        for _ in range(100):
            self.take_in()
            self.time_passes(601)
            self.rescue()
            self.claim("last", 8)
            while self._held:
                self._finish(self._held[0])
            self.all_is_as_it_must_be()
            if not self._model.waiting and not self._model.claims:
                return
        raise AssertionError("it never comes to an end")

    def _finish(self, held: Held) -> None:
        self.commit(0, frozen=False)
        self.call_ends(0, called=True)
        self.ack(0)
        assert held not in self._held

    def _check_leftovers(self) -> None:
        """Nothing is left but outcomes and counters; after their time, only what remembers the dead."""
        lasting = {"config", "stats", "order", "taken", "wake", "breaker", "breakers", "dead", "died"}
        assert look(self._client).names <= lasting | {"outcome", "ended", "user", "known"}
        self.time_passes(601)
        self.sweep()
        view = look(self._client)
        assert view.names <= lasting | {"outcome", "user"}
        assert view.family("outcome").keys() == view.family("died").keys()
        assert {key for keys in view.family("user").values() for key in keys} == view.family("died").keys()

    # --- small things ----------------------------------------------------------------------------------------------

    def _under_way(self) -> set[Key]:
        return {*self._model.waiting, *(taken.key for taken in self._model.claims.values())}

    def _pick(self, which: int) -> Held:
        return self._held[which % len(self._held)]

    def _read(self, bucket: Bucket) -> bytes | None:
        file = paths.folder(self._settings.data_dir, bucket, shared=False) / paths.FILE
        return file.read_bytes() if file.exists() else None

    def _clock(self) -> int:
        """The server's clock, in ms."""
        seconds, micros = self._client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def _now(self) -> int:
        """The clock of the model: the server's, with what `time_passes` let pass."""
        return self._clock() + self._passed


def _said(messages: Sequence[Message]) -> Update:
    """One fact for each user message."""
    facts = [
        NewFact(message.content, "context", 0.9, "user", "durable", "descriptive", (Evidence(at, message.content),))
        for at, message in enumerate(messages)
        if message.role == "user"
    ]
    return Update(new_facts=tuple(facts))


def _record(done: str) -> dict[str, Any]:
    return {"state": "stored", "facts": []} if done == "stored" else {"state": "skipped", "reason": "already_known"}


def _breaker_state(view: View, now_ms: int) -> str:
    fields = view.hash(f"breaker:{ENDPOINT}")
    if "until" not in fields:
        return "closed"
    if now_ms < int(fields["until"]):
        return "open"
    return "probing" if now_ms < int(fields.get("probe_until", 0)) else "half-open"


@pytest.mark.timeout(0 if EXAMPLES else 300)
def test_any_history_comes_out_right(client: redis.Redis, configured: Callable[..., Settings], data_dir: Path) -> None:
    """Whatever producers, schedulers and workers do in whatever order: nothing is lost, doubled, mixed up or stuck."""
    world = World(client, configured(**SETTINGS))
    run_state_machine_as_test(
        lambda: InboxMachine(world),  # type: ignore[arg-type]  # any factory will do
        settings=settings_of(
            max_examples=EXAMPLES or 200,
            stateful_step_count=30,
            deadline=None,
            derandomize=not EXAMPLES,
            print_blob=True,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
