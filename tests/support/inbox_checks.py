"""The checks after every step of the machine in test_stateful.py, and at its end."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import redis
from hypothesis.stateful import RuleBasedStateMachine, invariant
from msgspec.structs import replace

from memd.config import Settings
from memd.context import Bucket, Key
from memd.errors import ExtractionFailed
from memd.extraction import Extraction, Request, Usage, endpoint
from memd.inbox import library, receipt, verbs
from memd.inbox.claim import Claim, Claims
from memd.inbox.connection import send
from memd.memory.document import Document
from memd.memory.store import paths
from memd.memory.store.json_store import JsonStore
from memd.memory.store.protocol import Loaded
from memd.push.signals import load_patterns
from memd.scheduler.intake import Intake
from memd.scheduler.rescue import Rescue
from memd.workers.remember import Remembering
from memd.workers.resources import Resources
from support import inbox_view
from support.conversations import BUCKETS, one_fact_each
from support.inbox_model import Model, in_order
from support.inbox_view import View, look


class World:
    """Shared by all histories of a test: the server, the settings, and schedulers, which keep no state."""

    def __init__(self, client: redis.Redis, settings: Settings, threads: ThreadPoolExecutor) -> None:
        self.client = client
        self.settings = settings
        self.threads = threads
        self.endpoint = endpoint(settings.extraction)
        self.store = JsonStore(settings.data_dir, settings.store)
        self.patterns = load_patterns(None)
        self.intakes = [Intake(settings, client) for _ in range(2)]
        self.rescues = [Rescue(client) for _ in range(2)]

    def reset(self) -> None:
        """Empty the server and the documents."""
        self.client.flushall()
        shutil.rmtree(self.settings.data_dir / "users", ignore_errors=True)
        library.install(self.client, self.settings)

    def live(self, claim: Claim, error: ExtractionFailed | None = None, *, probe: bool = False) -> None:
        """The life of a claim as a worker runs it; the model replies, or fails with this error."""
        resources = Resources(self.settings, self.client, self.store, Answers(error), self.threads, self.patterns)
        remembering = Remembering(resources)
        if probe:
            remembering.asking.circuit.probe(claim.id)
        asyncio.run(remembering.run(claim))

    def read(self, bucket: Bucket) -> bytes | None:
        """A document's bytes as they are on disk."""
        file = paths.folder(self.settings.data_dir, bucket, shared=False) / paths.FILE
        return file.read_bytes() if file.exists() else None

    def clock(self) -> int:
        """The server's clock, in ms."""
        seconds, micros = self.client.time()
        return int(seconds) * 1000 + int(micros) // 1000


class Answers:
    """An extractor that stores every user message, or fails."""

    name = "answers"

    def __init__(self, error: ExtractionFailed | None) -> None:
        self._error = error

    async def extract(self, request: Request) -> Extraction:
        """The reply, or the failure."""
        if self._error:
            raise self._error
        return Extraction(one_fact_each(request.messages), Usage(), "model", "1")

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class Held:
    """A worker's claim, which it can have lost without knowing. `done`: the outcome for the ack."""

    claim: Claim
    worker: str
    probe: bool
    loaded: Loaded | None = None
    wanted: Document | None = None
    done: str = ""


class CheckedMachine(RuleBasedStateMachine):
    """The world, the model, and the comparison of both."""

    def __init__(self, world: World) -> None:
        super().__init__()
        settings = world.settings
        world.reset()
        self._world = world
        self._client = world.client
        self._model = Model(
            max_wait=int(settings.scheduler.max_wait_s * 1000),
            claim_tokens=settings.drain.claim_tokens,
            max_attempts=settings.drain.max_attempts,
        )
        self._passed = 0
        self.held: list[Held] = []
        self._raw: list[bytes] = []
        self._raw_dead = 0
        self._receipts: dict[verbs.ReceiptParts, tuple[Key, frozenset[str]]] = {}
        self._files: dict[Bucket, bytes | None] = dict.fromkeys(BUCKETS)

    @invariant()
    def all_is_as_it_must_be(self) -> None:
        """After every step: structure, messages, due times, receipts; and only commits change documents."""
        view = look(self._client)
        inbox_view.check(view, self._world.clock())
        self._check_messages(view)
        self._check_conservation(view)
        self._check_due(view)
        self._check_receipts()
        assert {bucket: self._world.read(bucket) for bucket in BUCKETS} == self._files

    def _check_messages(self, view: View) -> None:
        """Pending, claimed, dead and raw messages equal those of the model, in the same order."""
        pending = {key: inbox_view.messages(fields) for key, fields in view.pending.items()}
        claimed = {claim: inbox_view.messages(fields) for claim, fields in view.claims.items()}
        assert pending == {key.hash: in_order(waiting.entries) for key, waiting in self._model.waiting.items()}
        assert claimed == {claim: taken.messages for claim, taken in self._model.claims.items()}
        assert view.family("died") == {key.hash: died for key, died in self._model.dead.items() if died}
        assert sum(".raw" in letter for letter in view.family("dead").values()) == self._raw_dead
        assert len(view.keys.get(verbs.RAW, ())) == len(self._raw)

    def _check_conservation(self, view: View) -> None:
        """Each accepted message is stored, skipped, dead, pending or claimed."""
        for key, accepted in self._model.accepted.items():
            found = self._model.ended(key)
            places = [view.pending.get(key.hash, {})]
            places += [fields for fields in view.claims.values() if fields[".key"] == key.hash]
            found |= {message.identity for fields in places for message in inbox_view.messages(fields)}
            assert accepted <= found

    def _check_due(self, view: View) -> None:
        """No key is due later than the model allows."""
        for key in self._model.waiting:
            assert view.due(key.hash) + self._passed <= self._model.latest(key, self._now())

    def _check_receipts(self) -> None:
        """A receipt returns the outcome of its push, and never claims more than is true."""
        notes = list(self._receipts)
        standings = send(self._client, receipt.standings([key for key, _, _ in notes])) if notes else []
        for (_, gen, seq), standing, (key, names) in zip(notes, standings, self._receipts.values(), strict=True):
            state = receipt.judge(standing, gen, seq).state
            assert state != "unknown"
            assert state not in {"pending", "claimed"} or key in self._under_way()
            assert state != "dead" or self._model.dead[key]
            assert state not in {"stored", "skipped"} or names <= self._model.ended(key)

    def _check_claim(self, claim: Claim, before: View, claims: Claims) -> None:
        """A claim holds the oldest messages of the first due key of a bucket that was free, in their order."""
        assert before.due(claim.key.hash) <= claims.now_ms
        due = [key for key in self._model.line(claim.key.bucket) if before.due(key.hash) <= claims.now_ms]
        assert claim.key == due[0]
        assert claim.key.bucket not in {taken.key.bucket for taken in self._model.claims.values()}
        taken = self._model.claim(claim.id, claim.key)
        assert tuple(replace(m, order=0, at="", said_at="") for m in claim.messages) == taken.messages
        orders = [message.order for message in claim.messages]
        assert orders == sorted(set(orders))
        assert all(message.at and message.said_at for message in claim.messages)
        assert (claim.attempts, claim.delays, claim.suspect) == (taken.attempts, taken.delays, taken.suspect)
        assert claim.bad is None

    def _check_nothing_was_left(self, claims: Claims) -> None:
        """A worker with room takes the first due key of each bucket, except a suspect while it holds another claim."""
        view = look(self._client)
        for bucket in BUCKETS:
            due = [key for key in self._model.line(bucket) if view.due(key.hash) <= claims.now_ms]
            assert not due or bucket.hash in view.hash("busy") or self._model.waiting[due[0]].suspect

    def _check_document(self, bucket: Bucket) -> None:
        """A document holds its user's facts, each once, and the identities of their messages in order."""
        document = self._world.store.load(bucket).document
        facts = {fact["content"]: fact.get("confirmations", 0) for fact in document["facts"]}
        assert facts == self._model.facts[bucket]
        assert len(facts) == len(document["facts"])
        assert document["ledger"] == {thread: known for thread, known in self._model.ledger[bucket].items() if known}
        for fact in document["facts"]:
            assert fact["content"].startswith(f"{fact['source']}/{bucket.user_id}/{bucket.agent_name} ")

    def _check_on_disk(self, claim: Claim) -> None:
        """Messages acked as stored are in the document on disk."""
        document = self._world.store.load(claim.key.bucket).document
        assert {message.identity for message in claim.messages} <= set(document["ledger"][claim.key.thread_id])

    def _check_leftovers(self, *more: str) -> View:
        """Only counters, the records of dead letters and `more` are left."""
        view = look(self._client)
        lasting = {
            "config",
            "stats",
            "order",
            "hours",
            "facts",
            "taken",
            "wake",
            "breaker",
            "breakers",
            "learnt",
            "round",
            "dead",
            "deadraw",
            "died",
        }
        assert view.names <= {*lasting, "outcome", "user", *more}
        assert {letter for letters in view.family("deadraw").values() for letter in letters} <= view.zset("dead").keys()
        return view

    def _under_way(self) -> set[Key]:
        return {*self._model.waiting, *(taken.key for taken in self._model.claims.values())}

    def _now(self) -> int:
        """The model's clock: the server's, plus the time that the test let pass."""
        return self._world.clock() + self._passed
