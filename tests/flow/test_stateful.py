"""Random histories of the inbox on a real server and real documents, held against a model after every step.

The same 40 histories in every ordinary run; `make test-long` draws new ones for two minutes (STATEFUL_EXAMPLES).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from support.conversations import BUCKETS, NONSENSE, WINDOWS, Window, one_fact_each
from support.inbox_checks import CheckedMachine, Held, World
from support.inbox_model import Taken
from support.inbox_view import View, advance, look

from memd.config import Settings
from memd.context import Key, user_hash
from memd.errors import ClaimLost, Conflict, ContentRefused, ExtractionFailed, ModelUnavailable
from memd.inbox import breaker, verbs
from memd.inbox.connection import send
from memd.inbox.verbs import P
from memd.memory import ledger
from memd.memory.apply import Origin, apply
from memd.push.filtering import to_context
from memd.push.validation import parse_push

EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "0"))

WORKERS = st.sampled_from(["one", "two", "three"])

SETTINGS = {
    # So long that no step's own time counts; what passes is what `time_passes` lets pass.
    "scheduler__quiet_s": 200,
    "scheduler__max_wait_s": 300,
    "drain__lease_s": 120,
    "drain__backoff_s": 2,
    "drain__backoff_max_s": 300,
    "inbox__receipt_ttl_s": 600,
    "inbox__known_ttl_s": 300,
    # So small that a few messages are too many.
    "scheduler__flush_tokens": 70,
    "drain__claim_tokens": 60,
    "drain__max_attempts": 3,
}
FATES: dict[str, ExtractionFailed | None] = {
    "answered": None,
    "refused": ContentRefused("refusal", "a test"),
    "unavailable": ModelUnavailable("rate_limited", "a test"),
}
LONGEST_S = 601
"""After so many seconds everything is over: quiet times, leases, backoff, outages and receipts."""


def about_a_claim(**arguments: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """A rule about one of the claims that workers hold; while there is none, nothing happens."""

    def as_rule(step: Callable[..., None]) -> Any:
        def chosen(machine: InboxMachine, which: int, **rest: Any) -> None:
            if machine.held:
                step(machine, machine.held[which % len(machine.held)], **rest)

        chosen.__name__, chosen.__doc__ = step.__name__, step.__doc__
        decorate: Any = rule(which=st.integers(0, 7), **arguments)  # type: ignore[call-overload]  # none of them is a target
        return decorate(precondition(lambda self: self.claimed)(chosen))

    return as_rule


class InboxMachine(CheckedMachine):
    """Producers, schedulers and workers that do anything in any order; the model says what must come of it."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        # Which rules are chosen must not depend on the server, whose clock is not the same twice.
        self.began = False
        self.claimed = False
        self._outside = sys.exc_info()[1]

    # --- producers -------------------------------------------------------------------------------------------------

    @rule(windows=st.lists(WINDOWS, min_size=1, max_size=3))
    def push(self, windows: list[Window]) -> None:
        """A trusted app pushes; one that lost the answer sends the same again."""
        self.began = True
        for window in windows:
            merged = send(self._client, verbs.push(window.context))
            status, names = self._model.push(window.context, self._now())
            assert merged.status == status
            if names:
                self._receipts[merged.key, merged.gen, merged.seq] = (window.key, names)
            self._pass(1)

    @rule(raws=st.lists(WINDOWS.map(lambda window: window.raw) | st.sampled_from(NONSENSE), min_size=1, max_size=3))
    def push_raw(self, raws: list[bytes]) -> None:
        """Other apps leave conversations in the raw list, and whatever else."""
        self._raw += raws
        self._client.rpush(verbs.RAW, *raws)

    @rule(user_id=st.sampled_from(["ana", "bob", None]))
    @precondition(lambda self: self.began)
    def flush(self, user_id: str | None) -> None:
        """All keys of a user, or all there are, are made due and noted, wherever they stand."""
        chosen = {key for key in self._under_way() if user_id in {None, key.user_id}}
        sources = ["user"] if user_id else ["due", "claimed", "due"]
        extra = [user_hash(user_id)] if user_id else []
        pages = [send(self._client, verbs.flush_page(source, "0", (None, None, None), extra)) for source in sources]
        assert {note[0] for _, notes in pages for note in notes} == {key.hash for key in chosen}
        self._model.flush(chosen, self._now())

    # --- schedulers ------------------------------------------------------------------------------------------------

    @rule()
    @precondition(lambda self: self._raw)
    def take_in(self) -> None:
        """Two schedulers take in what lies in the raw list."""
        self.began = True
        for intake in self._world.intakes:
            intake.tick()
        for raw in self._raw:
            if raw in NONSENSE:
                self._raw_dead += 1
            else:
                push = parse_push(raw, self._world.settings.client)
                self._model.push(to_context(push), self._now())
        self._raw.clear()

    @about_a_claim()
    def expire(self, held: Held) -> None:
        """The lease of a claim runs out, and it is rescued."""
        self._expire(held)

    def _expire(self, held: Held) -> None:
        if held.claim.id in self._model.claims:
            self._client.zadd(f"{P}:claimed", {held.claim.id: 1})
        self.rescue()

    @rule()
    @precondition(lambda self: self.claimed)
    def rescue(self) -> None:
        """Two schedulers look for leases that ran out, at the same moment."""
        tick = send(self._client, verbs.tick(0, self._world.endpoint))
        for rescue in self._world.rescues:
            rescue.look(tick)
        for claim_id in tick.expired:
            self._model.release(claim_id, "expired", self._now())

    @rule(seconds=st.sampled_from([1, 125, 301, LONGEST_S]))
    def time_passes(self, seconds: int) -> None:
        """Quiet times, leases, backoff and receipts run on."""
        self._pass(seconds * 1000)

    def _pass(self, ms: int) -> None:
        advance(self._client, ms)
        self._passed += ms

    @rule()
    @precondition(lambda self: self.claimed)
    def sweep(self) -> None:
        """Outcomes whose time is over are forgotten, unless something of their key is left."""
        before = look(self._client)
        swept = send(self._client, verbs.sweep())
        gone = before.family("outcome").keys() - look(self._client).family("outcome").keys()
        assert swept == len(gone)
        assert gone.isdisjoint(key.hash for key in self._under_way())
        assert all(before.zset("ended")[key] <= self._world.clock() for key in gone)
        self._receipts = {note: push for note, push in self._receipts.items() if note[0] not in gone}

    # --- workers ---------------------------------------------------------------------------------------------------

    @rule(claimers=st.lists(st.tuples(WORKERS, st.integers(1, 4)), min_size=1, max_size=2))
    def claim(self, claimers: list[tuple[str, int]]) -> None:
        """Workers take what they have room for, one right after the other."""
        self.claimed = self.began
        for worker, room in claimers:
            self._claim(worker, room)

    def _claim(self, worker: str, room: int) -> None:
        before = look(self._client)
        holding = sum(held.worker == worker for held in self.held)
        call = verbs.claim(self._world.settings, room, holding, worker, self._world.endpoint)
        claims = send(self._client, call)
        assert claims.breaker == self._breaker(before, claims.now_ms)
        assert len(claims.taken) <= {"closed": room, "half-open": 1}.get(claims.breaker, 0)
        for claim in claims.taken:
            self._check_claim(claim, before, claims)
            self.held.append(Held(claim, worker, claims.breaker == "half-open"))
        if any(claim.suspect for claim in claims.taken):
            assert (len(claims.taken), holding) == (1, 0)
        elif claims.breaker == "closed" and len(claims.taken) < room:
            self._check_nothing_was_left(claims)

    @about_a_claim()
    def extend(self, held: Held) -> None:
        """A worker renews a lease, or learns that it has lost the claim."""
        assert send(self._client, verbs.extend([held.claim.id])) == [held.claim.id in self._model.claims]

    @about_a_claim()
    def load(self, held: Held) -> None:
        """A worker reads the document and learns what its claim changes in it."""
        self._load(held)

    def _load(self, held: Held) -> None:
        claim = held.claim
        held.loaded = self._world.store.load(claim.key.bucket)
        document = held.loaded.document
        new = ledger.unknown(document, claim.key.thread_id, claim.messages)
        origin = Origin(claim.key.thread_id, datetime.now(UTC), "model", "1")
        applied = apply(document, one_fact_each(new), new, claim.messages, origin, self._world.settings.apply)
        assert {refusal.reason for refusal in applied.refusals} <= {"repeated"}
        held.wanted = applied.document
        held.done = "" if any(message.role == "user" for message in new) else "skipped"
        if not new:
            assert applied.document is document

    @about_a_claim(frozen=st.booleans())
    def commit(self, held: Held, frozen: bool) -> None:
        """A worker stores what its claim came to: only while the claim is its own.

        `frozen`: right after it was told that the claim is its own, it stands still until another one has it.
        """
        if held.loaded is None or held.wanted is None:
            self._load(held)
        assert held.loaded is not None
        assert held.wanted is not None
        if held.done:
            return
        taken = self._model.claims.get(held.claim.id)
        try:
            self._world.store.commit(held.claim.key.bucket, held.loaded, held.wanted, self._asking(held, frozen))
        except ClaimLost:
            assert taken is None
        except Conflict:  # another one has written since; a worker loads again and goes on
            self._load(held)
        else:
            assert taken is not None
            held.done = "stored"
            self._committed(taken)

    def _asking(self, held: Held, frozen: bool) -> Callable[[], bool]:
        def still_ours() -> bool:
            ours = send(self._client, verbs.extend([held.claim.id]))[0]
            if ours and frozen:
                self._expire(held)
                self._claim("thawed", 2)
                for other in self.held:
                    if other.worker == "thawed":
                        self._load(other)
            return ours

        return still_ours

    def _committed(self, taken: Taken) -> None:
        self._model.commit(taken)
        bucket = taken.key.bucket
        self._files[bucket] = self._world.read(bucket)
        self._check_document(bucket)

    @about_a_claim()
    def ack(self, held: Held) -> None:
        """A worker that has stored its claim says so, maybe too late."""
        ours = held.claim.id in self._model.claims
        if ours and not held.done:
            return
        self.held.remove(held)
        assert send(self._client, verbs.ack(held.claim.id, _record(held.done), {})) == ours
        if ours:
            self._model.ack(held.claim.id)
            if held.done == "stored":
                self._check_on_disk(held.claim)

    @about_a_claim(fate=st.sampled_from(list(FATES)))
    def live(self, held: Held, fate: str) -> None:
        """A worker runs the whole life of a claim, its own or lost, from load to the end that the model gives it."""
        self._live(held, FATES[fate])

    def _live(self, held: Held, error: ExtractionFailed | None) -> None:
        self.held.remove(held)
        taken = self._model.claims.get(held.claim.id)
        self._world.live(held.claim, error, probe=held.probe)
        if taken is None:
            return
        new = self._model.new_in(taken)
        asks = any(message.role == "user" for message in new)
        if asks and error:
            how = "failed" if isinstance(error, ContentRefused) else "paused"
            self._model.release(held.claim.id, how, self._now(), backoff=300_000)
            return
        if new:  # what no user said is taken in without a call
            self._committed(taken)
        self._model.ack(held.claim.id)

    @about_a_claim(how=st.sampled_from(["failed", "paused"]), backoff_s=st.sampled_from([0, 5, 60]))
    def release(self, held: Held, how: str, backoff_s: int) -> None:
        """A worker gives a claim back, even one that it has stored but not acked."""
        self.held.remove(held)
        claim_id = held.claim.id
        ours = claim_id in self._model.claims
        end = send(self._client, verbs.release(claim_id, how, backoff_s, "E_TEST"))
        assert end == (self._model.release(claim_id, how, self._now(), backoff_s * 1000) if ours else "lost")

    @about_a_claim()
    def bury(self, held: Held) -> None:
        """A worker finds that a claim's content can never be worked on."""
        self.held.remove(held)
        claim_id = held.claim.id
        ours = claim_id in self._model.claims
        assert send(self._client, verbs.bury(claim_id, "E_TEST", "a test")) == ours
        if ours:
            self._model.bury(claim_id)

    @rule(worker=WORKERS)
    @precondition(lambda self: self.claimed)
    def die(self, worker: str) -> None:
        """A worker is killed, and its successor knows nothing of what it held."""
        self.held = [held for held in self.held if held.worker != worker]

    # --- the model endpoint ----------------------------------------------------------------------------------------

    @rule(retry_after_s=st.sampled_from([None, 100.0]), code=st.sampled_from(["rate_limited", "server_error"]))
    def call_fails(self, retry_after_s: float | None, code: str) -> None:
        """A call of the model fails; while the breaker is open, nothing is claimed."""
        send(self._client, breaker.trip(self._world.endpoint, ModelUnavailable(code, "", retry_after_s)))

    @about_a_claim(called=st.booleans())
    def call_ends(self, held: Held, called: bool) -> None:
        """A call of the model succeeds, or was not needed."""
        verb = breaker.close if called else breaker.free
        send(self._client, verb(self._world.endpoint, held.claim.id))

    def _breaker(self, view: View, now_ms: int) -> str:
        fields = view.hash(f"breaker:{self._world.endpoint}")
        if "until" not in fields:
            return "closed"
        if now_ms < int(fields["until"]):
            return "open"
        return "probing" if now_ms < int(fields.get("probe_until", 0)) else "half-open"

    # --- the end ---------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """When all has ended, the documents are the model's, and nothing is left that should not be."""
        if sys.exc_info()[1] is not self._outside:
            return  # it has failed already; that is the failure to tell
        self._drain()
        for key, accepted in self._model.accepted.items():
            assert accepted <= self._model.ended(key)
        for bucket in BUCKETS:
            self._check_document(bucket)
        self._check_leftovers("ended", "known")
        self.time_passes(LONGEST_S)
        self.sweep()
        view = self._check_leftovers()
        assert view.family("outcome").keys() == view.family("died").keys()
        assert {key for keys in view.family("user").values() for key in keys} == view.family("died").keys()

    def _drain(self) -> None:
        """One worker that never fails does all there is to do, in as many rounds as there may be parts."""
        self.held.clear()
        for _ in range(100):
            self.take_in()
            self.time_passes(LONGEST_S)
            self.rescue()
            self._claim("last", 8)
            while self.held:
                self._live(self.held[0], None)
            self.all_is_as_it_must_be()
            if not self._under_way():
                return
        raise AssertionError("it never comes to an end")


def _record(done: str) -> dict[str, Any]:
    return {"state": "stored", "facts": []} if done == "stored" else {"state": "skipped", "reason": "already_known"}


@pytest.mark.timeout(0 if EXAMPLES else 300)
def test_any_history_comes_out_right(client: redis.Redis, configured: Callable[..., Settings]) -> None:
    """Whatever producers, schedulers and workers do in whatever order: nothing is lost, doubled, mixed up or stuck."""
    with ThreadPoolExecutor(2) as threads:
        world = World(client, configured(**SETTINGS), threads)
        run_state_machine_as_test(
            lambda: InboxMachine(world),  # type: ignore[arg-type]  # any factory will do
            settings=settings_of(
                max_examples=EXAMPLES or 20,
                stateful_step_count=30,
                deadline=None,
                derandomize=not EXAMPLES,
                print_blob=True,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.parametrize("other", [Key("t1", "ana", "coach"), Key("t2", "ana")])
def test_what_is_pushed_again_while_it_is_claimed_keeps_its_place(
    client: redis.Redis, configured: Callable[..., Settings], other: Key
) -> None:
    """Its worker dies: the key stands in line where it stood, as the push brought nothing new."""
    key = Key("t1", "ana")
    with ThreadPoolExecutor(2) as threads:
        machine = InboxMachine(World(client, configured(**SETTINGS), threads))
        machine.push([_window(key), _window(other)])
        machine.flush("ana")
        machine.claim([("one", 1)])
        machine.push([_window(key)])
        machine.teardown()


def _window(key: Key) -> Window:
    return Window(key, start=0, length=1, ids=False, version=0, signal="", now=False)
