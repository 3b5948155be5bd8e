"""The run: start, push and kill, drain, compare. Read `Run.run` first; the other methods are its steps."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import redis
from support import Slowdown, wait_for

from chaos import leftovers, load, watcher
from chaos.compare import compare
from chaos.fleet import Fleet, processes_of
from chaos.kills import Killer
from chaos.model import MIXED
from chaos.plan import DATA, Plan
from chaos.producer import BATCH
from chaos.progress import Display
from chaos.report import Report
from memd.client import Memd
from memd.context import Bucket
from memd.errors import MemdError
from memd.inbox import library, verbs
from memd.inbox.connection import connect
from memd.inbox.figures import workers_listening
from memd.memory.document import Document
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Store

TICK_S = 0.02
"""Pause between two checks of the fleet, each of which starts dead parts again."""

READY_S = 30.0
WARM_UP_S = 15.0
SETTLE_S = 10.0
"""Deadline for descriptors and drains to return to their baseline once the inbox is empty."""

SHOWN = 5


def chaos(plan: Plan, *, bug: str = "", extra: Mapping[str, str] | None = None, quiet: bool = False) -> Report:
    """One run in a new folder. The folder stays when a run without a seeded bug fails.

    `extra`: environment for memd's processes.
    """
    plan.check()
    folder = Path(tempfile.mkdtemp(prefix="memd-chaos-"))
    with Display(plan.contexts, quiet=quiet) as display:
        report = Run(plan, folder, display, extra or {}).run()
        report.bug = bug
        if report.passed or bug:
            shutil.rmtree(folder)
        else:
            report.write(folder / "report.json")
            display.show(report.stored, f"the files of the run are in {folder}", now=True)
    return report


class Run:
    """One run in one folder."""

    def __init__(self, plan: Plan, folder: Path, display: Display, extra: Mapping[str, str]) -> None:
        self._folder = folder
        self._display = display
        self._started = time.monotonic()
        self._report = Report(plan.seed, contexts=plan.contexts, least_kills=plan.least_kills)
        self._fleet = Fleet(plan, folder, extra)
        self._client = connect(self._fleet.settings, retries=0)
        self._baseline: Counter[str] = Counter()
        self._load = 1.0
        """The slowdown while the pace was measured."""

        self._pause = threading.Event()

    @property
    def _plan(self) -> Plan:
        return self._fleet.plan

    def run(self) -> Report:
        """The report of the run; every process has ended by then."""
        try:
            self._start()
            killer = self._push_and_kill()
            self._drain(killer)
            self._look_for_leftovers()
            self._compare()
        finally:
            self._fleet.stop()
        self._look_at_the_rest()
        self._report.wall_s = time.monotonic() - self._started
        return self._report

    def _start(self) -> None:
        self._display.show(0, "starting")
        self._fleet.start()
        wait_for(self._ready, "the inbox is set up and all workers listen", READY_S)
        self._warm_up()
        self._measure_pace()
        self._fleet.start_pushing(time.monotonic())

    def _ready(self) -> bool:
        self._fleet.mend()
        return library.installed(self._client) and workers_listening(self._client) >= self._plan.workers

    def _warm_up(self) -> None:
        """Work through one context, so that every part has opened its descriptors."""
        with Memd(self._fleet.settings) as app:
            app.push([{"role": "user", "content": "This is a warm-up."}], thread_id="warm-up", user_id="warm-up")
            for index in range(self._plan.projects):
                project = app.project(load.project(index))
                project.make("user-0")
                for user in range(1, self._plan.users):
                    project.set_member(f"user-{user}", "editor")
            app.flush(wait=True, timeout_s=WARM_UP_S)  # if it takes longer, the end of the run shows why
        self._baseline |= leftovers.descriptors(self._fleet)

    def _measure_pace(self) -> None:
        """Drain the contexts of some more users before anything is killed, and note how long one of them takes."""
        pushes = [json.dumps(push) for push in load.pace(self._plan)]
        if not pushes:
            return
        self._display.show(0, "measuring the pace", now=True)
        began, slower = time.monotonic(), Slowdown()
        for start in range(0, len(pushes), BATCH):
            self._client.rpush(verbs.RAW, *pushes[start : start + BATCH])
        if self._until(lambda: slower.sampled() and leftovers.idle(self._client), self._plan.patience_s, "measuring"):
            self._report.pace_s, self._load = (time.monotonic() - began) / len(pushes), slower.mean()

    def _push_and_kill(self) -> Killer:
        """Until every context is acknowledged and every kill is done."""
        first = self._plan.begin + self._plan.calm_s
        killer = Killer(self._plan, self._fleet, first)
        until = first + self._plan.kills * self._plan.kill_every_s + self._plan.pushing_s + self._plan.patience_s
        while not (killer.finished and self._fleet.pushed) and time.monotonic() < until:
            self._fleet.mend()
            if time.monotonic() < first:
                self._baseline |= leftovers.descriptors(self._fleet)
            killer.tick()
            self._show("pushing and killing")
            self._pause.wait(TICK_S)
        return killer

    def _drain(self, killer: Killer) -> None:
        """Wait until the inbox is empty; returns the seconds since the last push and the last kill."""
        ended = max(killer.ended, *(self._last_push(number) for number in range(self._plan.producers)))
        slower = Slowdown()
        self._until(self._backlog_is_known, self._plan.patience_s)
        left_s = ended + self._plan.patience_s - time.monotonic()
        if self._until(lambda: slower.sampled() and leftovers.idle(self._client), left_s):
            self._report.drain_s = time.monotonic() - ended
        load = slower.mean()
        more = max(1.0, load / self._load)  # never less: the load is measured roughly, and shorter than it lasts
        paced_s = self._plan.pace_times * (self._report.pace_s or 0) * self._report.backlog
        self._report.drain_within_s = self._plan.recover_s * load + paced_s * more

    def _last_push(self, producer: int) -> float:
        """The moment of a producer's last logged context, on the monotonic clock."""
        file = load.log_file(self._folder, producer)
        age = time.time() - file.stat().st_mtime if file.exists() else 0.0
        return time.monotonic() - age

    def _backlog_is_known(self) -> bool:
        with Memd(self._fleet.settings) as app:
            status = app.status()
        self._report.backlog = status.pushes - status.stored - status.skipped - status.dead_so_far
        return True

    def _until(self, condition: Callable[[], bool], seconds: float, words: str = "draining") -> bool:
        """Wait for a condition while dead parts are started again; False at the deadline."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._fleet.mend()
            try:
                if condition():
                    return True
            except (MemdError, redis.RedisError):  # the last kill was the server's
                pass
            self._show(words)
            self._pause.wait(TICK_S)
        return False

    def _look_for_leftovers(self) -> None:
        self._display.show(self._plan.contexts, "looking for leftovers", now=True)
        self._until(lambda: self._fleet.whole and not leftovers.drains(self._fleet) and not self._surplus(), SETTLE_S)
        surplus = self._surplus()
        self._report.baseline, self._report.at_end = dict(self._baseline), dict(leftovers.descriptors(self._fleet))
        self._report.put("left_descriptors", surplus.total(), [f"{role} +{more}" for role, more in surplus.items()])
        keys = leftovers.working_keys(self._client) + leftovers.forgotten_jobs(self._client)
        self._report.put("left_keys", keys.total(), [f"{kind} {count}" for kind, count in keys.items()])
        files = leftovers.temp_files(self._folder / DATA)
        self._report.put("left_files", len(files), files[:SHOWN])

    def _surplus(self) -> Counter[str]:
        return leftovers.descriptors(self._fleet) - self._baseline

    def _compare(self) -> None:
        self._display.show(self._plan.contexts, "comparing", now=True)
        report, plan = self._report, self._plan
        numbers = load.accepted(self._folder, plan)
        with Memd(self._fleet.settings) as app:
            status = app.status()
            store = open_store(self._fleet.settings)
            found = compare(plan, numbers, partial(_whole, store))
        report.accepted, report.stored = len(set(numbers)), found.stored
        report.skipped = {reason: count for reason, count in status.by_reason.items() if not reason.startswith("E_")}
        report.put("not_accepted", plan.contexts - report.accepted)
        report.put("dead", status.dead, [f"{code} {count}" for code, count in status.by_reason.items()])
        for kind in ("lost", "twice", "out_of_order", "wrong_user", "foreign", "wrong_document", "ledger"):
            report.put(kind, getattr(found, kind), found.examples[kind])

    def _look_at_the_rest(self) -> None:
        """Add the findings that only the ended processes show."""
        report, tally = self._report, self._fleet.tally
        report.kills = {role: tally.kills[role] for role in dict(self._plan.shares)}
        report.put("died_alone", len(tally.died_alone), tally.died_alone[:SHOWN])
        report.put("orphans", tally.orphans)
        left = list(processes_of(self._folder))
        report.put("left_processes", len(left), [f"pid {pid}" for pid in left])
        findings = [json.loads(line) for line in _lines(self._folder / watcher.FINDINGS)]
        damaged = leftovers.quarantined(self._folder / DATA)
        for kind in ("torn", "backwards"):
            cases = [f"{each['file']}: {each['what']}" for each in findings if each["kind"] == kind]
            cases += damaged if kind == "torn" else []
            report.put(kind, len(cases), cases[:SHOWN])
        mixed = _lines(self._folder / MIXED)
        if mixed:
            report.put("wrong_user", report.zeros["wrong_user"] + len(mixed), mixed[:SHOWN])
        reads = _lines(self._folder / watcher.READS)
        report.reads = int(reads[0]) if reads else 0

    def _show(self, words: str) -> None:
        if not self._display.wanted:
            return
        kills = self._fleet.tally.kills
        hits = ", ".join(f"{role} {kills[role]}" for role in dict(self._plan.shares))
        self._display.show(load.acknowledged(self._folder, self._plan), f"{words}; kills {kills.total()} ({hits})")


def _whole(store: Store, bucket: Bucket) -> Document:
    """A document with its ledger, wherever the store keeps it."""
    document = store.peek(bucket).document
    return {**document, "ledger": store.read_ledger(bucket, document)}


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
