"""The CPU time of one context in memd, step by step: a claim is taken through every step of its life by hand.

The document has 100 facts, other ones for each user, and is written durably; its turns are appended to the said layer.
The floor is what no store can do without, in turn with the steps: read and durable write of the same document, and a
plain append of the same turns, without fsync. The difference to drain.py's figure is the cost of the worker's loop,
threads and logging.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import orjson

from benchmarks.drain import push_all
from benchmarks.figures import Figure, Measurement, at_most
from benchmarks.ground import Ground, ground
from benchmarks.load import conversation, full_document
from benchmarks.played import reply
from benchmarks.sizes import Size
from benchmarks.timing import median, server_cpu
from memd.client import Memd
from memd.context import Bucket, Message
from memd.disk import files
from memd.extraction import endpoint, envelope
from memd.extraction.prompt import PROMPT_VERSION, build
from memd.inbox import verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.memory.apply import Origin, apply
from memd.memory.said.changes import SaidChange, append
from memd.memory.said.taking import turns_of
from memd.memory.store.json_store import open_store
from memd.workers.commit import Documents
from memd.workers.halving import Parts
from memd.workers.keeping import Keeping
from memd.workers.remember import choose
from memd.workers.resources import Resources
from memd.workers.steps import Opened, Work

AREA = "cost"
STEPS = ("claim", "load", "choose", "prompt", "parse", "apply", "keep", "write", "ack")
FLOOR = "what no store can do without"
ROOM = 32


def measure(size: Size) -> Iterator[Measurement]:
    """Medians over contexts of the thread's CPU in each step, and of the server's CPU for all steps."""
    count = max(ROOM, size.contexts // 4 // ROOM * ROOM)
    with ground(scheduler__quiet_s=300) as place:
        fill(place, count)
        push_all(place, count)
        with Memd(place.settings) as memd:
            memd.flush()
        before = server_cpu(place.client)
        steps = Steps(place)
        steps.run(count)
        served = (server_cpu(place.client) - before) / count * 1e3
        raw_push = _push_cost(place, min(200, size.pushes))
    yield Figure(AREA, "push, in the app: checks, signals, filtering, identities", raw_push, "ms")
    medians = {name: median(values) for name, values in steps.taken.items()}
    floor = medians.pop(FLOOR)
    for name in STEPS:
        yield Figure(AREA, f"{name}", medians[name], "ms", note=NOTES.get(name, ""))
    yield Figure(
        AREA, "all steps of a claim, 100 facts, durable", sum(medians.values()), "ms",
        peer="read and durable write of the same document, append of the same turns", peer_value=floor,
        target=at_most(3, of="ratio"),
    )  # fmt: skip
    yield Figure(AREA, "the server's CPU for all steps", served, "ms")


NOTES = {
    "claim": f"a share of a claim of {ROOM} keys, read and checked",
    "load": "tombstone, document, ledger",
    "choose": "wishes, signals, secrets and card numbers",
    "keep": "the turns with their excerpts",
    "write": "lock, still ours, append, temp, fsync, rename, fsync",
}


class Steps:
    """The steps of a claim in order, each with its CPU milliseconds. `facts`: of the document of the floor."""

    def __init__(self, place: Ground, facts: int = 100) -> None:
        self.taken: dict[str, list[float]] = defaultdict(list)
        self._place = place
        self._resources = Resources.open(place.settings)
        self._documents = Documents(self._resources)
        self._store = self._resources.store
        self._floor_file = place.settings.data_dir / "floor.json"
        self._floor_turns = place.settings.data_dir / "floor.jsonl"
        self._floor_file.write_bytes(orjson.dumps(full_document(Bucket("user"), facts), option=orjson.OPT_INDENT_2))

    @contextmanager
    def _step(self, name: str, share: int = 1) -> Iterator[None]:
        started = time.thread_time_ns()
        yield
        self.taken[name] += [(time.thread_time_ns() - started) / share / 1e6] * share

    def run(self, count: int) -> None:
        """Claim and finish this many contexts."""
        settings, client = self._place.settings, self._place.client
        done = 0
        while done < count:
            started = time.thread_time_ns()
            claims = send(client, verbs.claim(settings, ROOM, 0, "bench:1", endpoint(settings.extraction))).taken
            share = (time.thread_time_ns() - started) / max(1, len(claims)) / 1e6
            assert claims, "nothing to claim"
            self.taken["claim"] += [share] * len(claims)
            for claim in claims:
                self._finish(claim)
            done += len(claims)

    def _finish(self, claim: Claim) -> None:
        settings, bucket, thread = self._place.settings, claim.key.bucket, claim.key.thread_id
        part = next(iter(Parts(claim, settings.drain.max_attempts)))
        with self._step("load"):
            opened = self._documents.load(part)
        assert isinstance(opened, Opened)
        with self._step("choose"):
            work = choose(opened, settings, self._resources.patterns, claim.now)
        assert isinstance(work, Work)
        with self._step("prompt"):
            request = work.request(settings, claim.now)
            json.dumps({"content": build(request, request.today)}).encode()
        raw = _answer(claim)
        with self._step("parse"):
            answered, _ = envelope.read(raw, "application/json", work.new)
        loaded, keeping = work.loaded, Keeping(settings, partial(self._store.read_said, bucket), thread)
        with self._step("apply"):
            asked = keeping.asked(work, loaded)
            origin = Origin(thread, claim.now, "bench", PROMPT_VERSION, asked=asked, before=work.before)
            applied = apply(
                loaded.document, answered.update, work.new, work.taken, origin, settings.apply,
                maintenance=work.maintenance,
            )  # fmt: skip
        assert applied.added, "nothing to store"
        with self._step("keep"):
            kept = keeping.change(work, loaded, applied)
        taken = {thread: [message.identity for message in work.taken]}
        with self._step("write"):
            self._store.commit(bucket, loaded, kept.document, self._held(claim), taken, kept.said)
        with self._step("ack"):
            record = {"state": "stored", "facts": applied.added}
            send(self._place.client, verbs.ack(claim.id, record, {"stored": 1, "messages_stored": 2, "model_calls": 1}))
        with self._step(FLOOR):  # in turn with the steps, as the machine's speed changes from one second to the next
            self._rewrite(kept.said)

    def _rewrite(self, said: SaidChange | None) -> None:
        """Append without fsync; parse, serialise, temp, fsync, rename, fsync of the folder."""
        assert said is not None
        with self._floor_turns.open("ab", buffering=0) as turns:
            turns.write(said.lines)
        file = self._floor_file
        whole = orjson.dumps(orjson.loads(file.read_bytes()), option=orjson.OPT_INDENT_2)
        files.replace(file, whole, file.with_suffix(".tmp"))

    def _held(self, claim: Claim) -> Callable[[], bool]:
        def held() -> bool:
            return send(self._place.client, verbs.extend([claim.id]))[0]

        return held


def _answer(claim: Claim) -> bytes:
    """The reply of a model that reads the statement in the user's message."""
    said = claim.messages[0].content.partition(".")[0]
    return reply(said, f"The user lives in {said.removeprefix('I live in ')}.")


def fill(place: Ground, count: int, start: int = 0, facts: int = 100) -> None:
    """A document with this many facts for each user, and one turn in the said layer."""
    store = open_store(place.settings)
    earlier = append(turns_of([Message("user", "I keep notes.", identity="earlier")], "thread"))
    for number in range(start, start + count):
        bucket = Bucket(f"user-{number}")
        document = full_document(bucket, facts, seed=number)
        store.commit(bucket, store.load(bucket), {**document, "revision": 1}, lambda: True, said=earlier)


def _push_cost(place: Ground, count: int) -> float:
    """CPU milliseconds of `Memd.push` in the app, the round trip's own included."""
    pushes = [conversation(20_000_000 + number) for number in range(count)]
    taken = []
    with Memd(place.settings) as memd:
        memd.push(**pushes[0])
        for push in pushes:
            started = time.thread_time_ns()
            memd.push(**push)
            taken.append((time.thread_time_ns() - started) / 1e6)
    return median(taken)
