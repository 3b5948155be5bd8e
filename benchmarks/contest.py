"""memd and the peers that can be installed, on the same conversations, each checked for what it keeps.

All of them ask the same played model, which takes 2 s and returns one fact a conversation in the form that the peer's
own prompt asks for (`benchmarks.played`). RQ and pydocket are queues: their jobs send memd's request and keep the fact,
no more. langmem and mem0 extract by their own prompts. One turn each; where it can be set, 256 conversations are in
flight.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import memd
from benchmarks.drain import CONCURRENCY, asking, push_said
from benchmarks.figures import Bars, Figure, Measurement, Skip, Table, at_least, at_most
from benchmarks.ground import Ground, Process, daemon, environment, ground, model, plain_client, process
from benchmarks.load import conversation
from benchmarks.peers.checked import FAILED_JOBS, check_succeeded, figures_of, run
from benchmarks.played import first_words
from benchmarks.sizes import FULL, Size
from benchmarks.timing import Peak, server_cpu, tree_cpu, wait_until
from memd.client import Memd
from memd.config import ExtractionSettings
from memd.context import Bucket, Message
from memd.extraction.anthropic import request_options
from memd.extraction.prompt import build
from memd.extraction.protocol import Request
from memd.inbox.connection import inbox_url
from memd.memory.document import empty_document
from memd.memory.store.json_store import open_store

AREA = "peers"
MEMD = "memd, one worker"
MODEL_S = 2.0
WARM = 8
"""Conversations before the clock starts: imports, connections."""

POOLED = 64
"""Tasks of pydocket in flight: with 128 its worker never ended, as tasks wait for each other's connections."""

BENCHED = "RQ, 32 single workers"
"""Each is started by itself, as those of which the target beside RQ was set."""

LIMIT_S = 180.0
"""A peer that takes longer is stopped and has no figures."""

SAID = ("thread_id", "user_id", "messages")
"""The parts of a conversation that are pushed."""

Kept = Mapping[str, Sequence[str]]
"""The texts of all facts by user."""


@dataclass(frozen=True, slots=True)
class Work:
    """What was measured while the clock ran, and what was kept at the end, warm-up included.

    `cpu_s`: of all processes, the server included. `memory_mb`: the same at their peak, shared pages counted once.
    """

    wall_s: float
    cpu_s: float
    memory_mb: float
    kept: Kept


@dataclass(frozen=True, slots=True)
class Contender:
    """A line of the table: conversations a second; CPU, calls and prompt tokens of a conversation; memory; facts.

    `cached`: tokens of the prefix that the endpoint is told to cache. `keeps`: where the facts are. `lost`: users whose
    one fact was not kept. `doubled`: further copies of it. `other`: facts that nobody stated.
    """

    name: str
    version: str
    in_flight: int
    rate: float
    cpu_ms: float
    memory_mb: float
    calls: float
    tokens: float
    cached: float
    expected: int
    lost: int
    doubled: int
    other: int
    keeps: str


def measure(size: Size) -> Iterator[Measurement]:
    """Each contender in turn; then the plot, the table and what memd is asked to reach beside RQ."""
    found: list[Contender] = []
    for name, take_part in _contenders(size).items():
        yield from figures_of(AREA, name, _added(take_part, found))
    if found:
        yield bars(found)
        yield table(found)
    yield from _beside_rq(found)
    if size is not FULL:
        yield Skip(AREA, BENCHED, "only with --size full: they need 2.8 GB, and half a minute of CPU to start")
    yield from NOT_MEASURED


NOT_MEASURED = (
    Skip(AREA, "langmem's RemoteReflectionExecutor", "needs a LangGraph server and its account"),
    Skip(AREA, "mem0's platform", "a hosted service that needs an account; its open-source package is measured"),
    Skip(
        AREA, "mem0's entity links", "its spaCy model comes from outside the registry; it keeps its facts without them"
    ),
    Skip(AREA, "mem0 with a Qdrant server", "the server is not in the registry; mem0's default, the embedded one, is"),
)


def _contenders(size: Size) -> dict[str, Callable[[], Contender]]:
    count = size.extractions
    pools = {f"RQ, a pool of {workers}": partial(_rq, workers, pool=True) for workers in size.rq_workers}
    single = {BENCHED: partial(_rq, 32, pool=False)} if size is FULL else {}
    return {
        "memd": lambda: _memd(count),
        **pools,
        **single,
        "pydocket": lambda: _pydocket(count),
        "langmem": lambda: _own(count, "langmem", "langmem", "memory only"),
        "mem0": lambda: _own(count, "mem0ai", "mem0", "SQLite"),
    }


def _added(take_part: Callable[[], Contender], found: list[Contender]) -> Iterator[Measurement]:
    """Appends what a contender did; `table` shows its figures."""
    found.append(take_part())
    yield from ()


def said(count: int) -> list[dict[str, Any]]:
    """Conversations of a user each, with memd's prompt about them, as the queues' jobs send it."""
    all_said = [conversation(number, 512, 0) for number in range(count)]
    return [{**one, "prompt": _prompt(one)} for one in all_said]


def _prompt(one: dict[str, Any]) -> str:
    messages = tuple(Message(each["role"], each["content"]) for each in one["messages"])
    return build(Request(empty_document(Bucket("user")), messages), datetime.now(UTC).date())


def contender(
    name: str, in_flight: int, conversations: Sequence[dict[str, Any]], timed: int, work: Work, address: str, keeps: str
) -> Contender:
    """The line of a contender, whose model at `address` served no other one. `timed`: conversations of `work`."""
    with urllib.request.urlopen(f"{address}/tally", timeout=10) as reply:  # noqa: S310  (our own process)
        tally = json.load(reply)
    lost, doubled, other = judged(conversations, work.kept)
    whole = len(conversations)
    return Contender(
        name, "", in_flight, timed / work.wall_s, work.cpu_s / timed * 1e3, work.memory_mb,
        tally["calls"] / whole, tally["tokens"] / whole, tally["cached"] / whole, whole, lost, doubled, other, keeps,
    )  # fmt: skip


def judged(conversations: Sequence[dict[str, Any]], kept: Kept) -> tuple[int, int, int]:
    """The facts lost, doubled, and kept though nobody stated them."""
    lost = doubled = other = 0
    for one in conversations:
        expected, have = first_words(one["messages"][0]["content"]), kept.get(one["user_id"], ())
        lost += expected not in have
        doubled += max(0, have.count(expected) - 1)
        other += len(have) - have.count(expected)
    return lost, doubled, other


def _memd(count: int) -> Contender:
    """A scheduler and one worker, as `memd up` starts them."""
    conversations = said(WARM + count)
    with ground(scheduler__quiet_s=300) as idle, model(idle.settings.data_dir, MODEL_S) as (address, _):
        place = Ground(asking(idle, address), idle.client, idle.server)
        place.clear()
        with daemon(place) as parts:
            pids = [part.pid for part in parts]
            peak = Peak()
            _drained(place, conversations[:WARM], WARM, lambda: None)
            cpu = _cpu_s(place, pids)
            wall = _drained(place, conversations[WARM:], len(conversations), lambda: peak.look(*pids, place.server.pid))
            cpu = _cpu_s(place, pids) - cpu
        work = Work(wall, cpu, peak.mb, _facts(place, conversations))
        line = contender(MEMD, CONCURRENCY, conversations, count, work, address, "files, synced")
    check_succeeded("memd's facts", line.expected - line.lost - line.doubled - line.other, line.expected)
    return replace(line, version=memd.__version__)


def _drained(place: Ground, conversations: Sequence[dict[str, Any]], ended: int, look: Callable[[], None]) -> float:
    """Push, make all due, wait until `ended` pushes have ended in all; seconds from due to the last ack."""
    push_said(place, ({name: one[name] for name in SAID} for one in conversations))
    started = time.perf_counter()
    with Memd(place.settings) as app:
        app.flush()

    def over() -> bool:
        look()
        return place.ended(ended)

    wait_until(over, f"{ended} conversations ended", LIMIT_S, 0.02)
    return time.perf_counter() - started


def _facts(place: Ground, conversations: Sequence[dict[str, Any]]) -> Kept:
    store = open_store(place.settings)
    users = [one["user_id"] for one in conversations]
    return {user: [fact["content"] for fact in store.peek(Bucket(user)).document["facts"]] for user in users}


def _rq(workers: int, *, pool: bool) -> Contender:
    """Three jobs for each of RQ's forking workers, which a pool forks or which are started one by one.

    Either way the SDK is imported before the first fork.
    """
    from rq import Queue, Worker

    from benchmarks.peers.rq_jobs import KEPT, extract, succeeded

    count = workers * 3
    conversations = said(count)
    with ground() as place, model(place.settings.data_dir, MODEL_S) as (address, _), ExitStack() as stack:
        connection = plain_client(place.settings)
        queue = Queue("bench", connection=connection)
        running = _rq_workers(stack, place, workers, pool, _request(place, address))
        wait_until(lambda: Worker.count(queue=queue) >= workers, f"{workers} RQ workers wait for jobs", LIMIT_S)
        pids, peak = [each.pid for each in running], Peak()
        cpu, started = _cpu_s(place, pids), time.perf_counter()
        for one in conversations:
            queue.enqueue(extract, one["user_id"], one["prompt"], result_ttl=0)

        def over() -> bool:
            peak.look(*pids, place.server.pid)
            return int(place.client.llen(KEPT)) + int(place.client.zcard(FAILED_JOBS)) >= count

        def noted() -> bool:  # a job's end is counted after its facts are kept, and slow to ask for
            return succeeded(connection) + int(place.client.zcard(FAILED_JOBS)) >= count

        wait_until(over, "RQ's jobs are done", LIMIT_S, 0.05)
        wall = time.perf_counter() - started
        wait_until(noted, "RQ has noted how its jobs ended", LIMIT_S, 0.2)
        cpu = _cpu_s(place, pids) - cpu
        check_succeeded("RQ's jobs", succeeded(connection), count, f"{place.client.zcard(FAILED_JOBS)} failed")
        work = Work(wall, cpu, peak.mb, _listed(place, KEPT))
        for each in running:
            each.terminate()  # all at once: one after the other takes seconds
        line = contender(
            f"RQ, a pool of {workers}" if pool else BENCHED, workers, conversations, count, work, address, "a list"
        )
    return replace(line, version=version("rq"))


def _rq_workers(stack: ExitStack, place: Ground, workers: int, pool: bool, request: dict[str, str]) -> list[Process]:
    """The pool's process, or one for each worker."""
    words = ["-m", "benchmarks.peers.rq_worker", "bench", "-u", request["BENCH_URL"]]
    if pool:
        words += ["-n", str(workers)]
    env, folder = environment(place.settings) | request, place.settings.data_dir
    return [
        stack.enter_context(process(words, env, folder / f"rq{number}.log")) for number in range(1 if pool else workers)
    ]


def _listed(place: Ground, name: str) -> Kept:
    """The facts that jobs kept in a list of the server."""
    kept: dict[str, list[str]] = {}
    for entry in place.client.lrange(name, 0, -1):
        user, fact = json.loads(entry)
        kept.setdefault(user, []).append(fact)
    return kept


def _pydocket(count: int) -> Contender:
    conversations = said(WARM + count)
    with ground() as place, model(place.settings.data_dir, MODEL_S) as (address, _):
        served = server_cpu(place.client)
        found, peak_mb = _peer(
            "pydocket",
            conversations,
            place.settings.data_dir,
            _request(place, address),
            place.server.pid,
            in_flight=POOLED,
        )
        served = server_cpu(place.client) - served
        work = Work(found["wall_s"], found["cpu_s"] + served, peak_mb, found["kept"])
        line = contender("pydocket, a worker", POOLED, conversations, count, work, address, "memory only")
    return replace(line, version=found["version"])


def _own(count: int, package: str, name: str, keeps: str) -> Contender:
    """A peer with an extraction of its own, in one process."""
    conversations = said(WARM + count)
    with TemporaryDirectory(prefix="memd-bench-") as path, model(Path(path), MODEL_S) as (address, _):
        found, peak_mb = _peer(package, conversations, Path(path), {"BENCH_MODEL": address})
        work = Work(found["wall_s"], found["cpu_s"], peak_mb, found["kept"])
        line = contender(name, CONCURRENCY, conversations, count, work, address, keeps)
    return replace(line, version=found["version"])


def _peer(
    package: str,
    conversations: Sequence[dict[str, Any]],
    folder: Path,
    env: Mapping[str, str],
    *others: int,
    in_flight: int = CONCURRENCY,
) -> tuple[dict[str, Any], float]:
    """What the peer's script printed, and the peak memory of its process and `others`. Raises PeerFailed."""
    file = folder / "conversations.json"
    file.write_text(json.dumps(conversations), encoding="utf-8")
    peak = Peak()
    found = run(
        package, file, in_flight, WARM, folder,
        script=f"{package}_extraction", env=env, timeout_s=LIMIT_S, look=lambda pid: peak.look(pid, *others),
    )  # fmt: skip
    failures = found["failures"]
    whole = len(conversations)
    check_succeeded(f"{package}'s conversations", whole - len(failures), whole, "; ".join(failures[:1]))
    return found, peak.mb


def _request(place: Ground, address: str) -> dict[str, str]:
    """The environment of a queue's jobs: the server, the model, and the part that all requests of memd share."""
    options = json.dumps(request_options(ExtractionSettings()))
    return {"BENCH_URL": inbox_url(place.settings), "BENCH_MODEL": address, "BENCH_OPTIONS": options}


def _cpu_s(place: Ground, pids: Sequence[int]) -> float:
    """Seconds of CPU so far: of these processes with their children, and of the server."""
    return sum(map(tree_cpu, pids)) + server_cpu(place.client)


def table(found: Sequence[Contender]) -> Table:
    """The lines of all contenders."""
    rows = tuple(
        (
            one.name, one.version, one.in_flight, one.rate, one.cpu_ms, one.memory_mb,
            one.calls, one.tokens, one.cached,
            f"{one.expected - one.lost:,} of {one.expected:,}", one.lost, one.doubled + one.other, one.keeps,
        )
        for one in found
    )  # fmt: skip
    return Table("peers", f"memd and its peers, a model of {MODEL_S:g} s", COLUMNS, rows, NOTE)


COLUMNS = (
    "", "version", "in flight", "conversations/s", "CPU ms each", "memory, MB", "model calls each",
    "prompt tokens each", "of them cached", "facts kept", "lost", "doubled or made up", "kept in",
)  # fmt: skip

NOTE = (
    "One user and one fact a conversation, of two messages of 512 characters. CPU and memory: all processes of a "
    "contender at their peak, its server included, the model's not. Tokens are estimated by memd's rule. RQ and "
    "pydocket are queues: their jobs send memd's request and keep the fact without merging it into a memory. langmem "
    "and mem0 ask by their own prompts; mem0's embedder is played without a delay."
)


def bars(found: Sequence[Contender]) -> Bars:
    """The plot of three figures that a reader compares first."""
    return Bars(
        "peers",
        f"memd and its peers: the same conversations, a model of {MODEL_S:g} s",
        tuple(one.name for one in found),
        (
            ("conversations/s: more is better", tuple(one.rate for one in found)),
            ("memory, MB: less is better", tuple(one.memory_mb for one in found)),
            ("prompt tokens each: less is better", tuple(one.tokens for one in found)),
        ),
        MEMD,
    )


def _beside_rq(found: Sequence[Contender]) -> Iterator[Measurement]:
    """What memd is asked to reach beside RQ's 32 workers: its memory only beside those that are started one by one."""
    own = next((one for one in found if one.name == MEMD), None)
    if own is None:
        return
    for peer in (one for one in found if one.name.startswith("RQ") and one.in_flight == 32):
        yield Figure(
            AREA, f"memd, a model of {MODEL_S:g} s, conversations", own.rate, "/s",
            peer=peer.name, peer_value=peer.rate, target=at_least(9, of="ratio"),
        )  # fmt: skip
        yield Figure(
            AREA, f"memd, a model of {MODEL_S:g} s, memory of all processes", own.memory_mb, "MB",
            peer=peer.name, peer_value=peer.memory_mb,
            target=at_most(round(1 / 18, 3), of="ratio") if peer.name == BENCHED else None,
        )  # fmt: skip
