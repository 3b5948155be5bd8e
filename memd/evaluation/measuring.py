"""Measuring: the runs of one command and their report, with a model or saved replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memd.config import Settings
from memd.evaluation.answering import Live, RequestFolder
from memd.evaluation.attack_cases import Case
from memd.evaluation.attack_run import AttackEvaluation, AttackRun
from memd.evaluation.evaluate import Evaluation, Run, Users
from memd.evaluation.in_memory import Answers
from memd.evaluation.lines import HELD_OUT, BadLabels, Line, is_held_out
from memd.evaluation.report import Report, latency, mistakes, run_report, tally_report
from memd.evaluation.saved_replies import Recorder, Replayed, SavedReply, changes, read_answers, read_replies
from memd.evaluation.stopping import completes
from memd.evaluation.targets import NotWritten, check_file, check_folder, writing
from memd.extraction import chosen, open_extractor
from memd.push.signals import load_patterns

Progress = Callable[[int], None]
"""Called with the number of users or cases that are finished."""

ATTACK_GROUPS = ("attack_honest", "attack_obedient", "attack_model", "true_refused", "true_missing")


@dataclass(frozen=True)
class Source:
    """Where replies come from, and where they and the open requests go."""

    replay: tuple[Path, ...] = ()
    answers: Path | None = None
    requests: Path | None = None
    save: Path | None = None

    @property
    def is_live(self) -> bool:
        """Whether a model is asked."""
        return not (self.replay or self.answers or self.requests)

    def replies(self) -> dict[str, SavedReply]:
        """All replies by name; answers override replayed ones. Raises BadLabels."""
        saved = read_replies(self.replay) if self.replay else {}
        return saved | (read_answers(self.answers) if self.answers else {})


class Measuring:
    """The runs of one command over labelled users."""

    def __init__(self, settings: Settings, users: Users, source: Source) -> None:
        """Raises BadLabels for replies that cannot be read, NotWritten for a target that cannot be written."""
        self._settings = settings
        self._users = users
        self._source = source
        self._recorder = Recorder() if source.save else None
        self._replies = source.replies()
        self._changed: dict[str, tuple[str, ...]] = {}
        for file in self._saved_files():
            check_file(file)
            if file.exists():
                read_replies([file])  # the new replies join these
        if source.requests is not None:
            check_folder(source.requests)

    def measure(self, repeat: int, progress: Progress | None = None) -> Report:
        """The report of all runs; after an interruption, of the results so far. Raises BadLabels."""
        runs: list[Run] = [Run()]
        interrupted = not completes(partial(self._all, runs, repeat, progress))
        report = {**self._report(runs), "interrupted": interrupted}
        try:
            self._keep(runs[-1])
        except (NotWritten, BadLabels) as error:  # the report says so: its figures are paid for
            report["unsaved"] = str(error)
        return report

    async def _all(self, runs: list[Run], repeat: int, progress: Progress | None) -> None:
        await self._run(runs[0], progress)
        for _ in range(repeat - 1):
            runs.append(Run())
            await self._run(runs[-1], progress)

    async def _run(self, run: Run, progress: Progress | None) -> None:
        async with self._answers() as answers:
            evaluation = Evaluation(self._settings, load_patterns(self._settings.signals.folder), answers)
            await evaluation.run(self._users, run, progress)

    @asynccontextmanager
    async def _answers(self) -> AsyncIterator[Answers]:
        if self._source.is_live:
            async with live(self._settings, self._recorder) as answers:
                yield answers
        else:
            replayed = Replayed(self._replies, self._settings.extraction.model, self._recorder)
            yield replayed
            self._changed = replayed.changed

    def _keep(self, run: Run) -> None:
        """Write the replies, and the requests without a reply, also after an interruption."""
        if self._recorder is not None:
            for file, users in self._saved_files().items():
                names = {name for name in self._recorder.kept if name.partition(".")[0] in users}
                with writing(file):
                    self._recorder.write(file, names)
        if self._source.requests is not None:
            with writing(self._source.requests):
                RequestFolder(self._source.requests).write(run.unanswered, self._replies)

    def _saved_files(self) -> dict[Path, set[str]]:
        """The files that get the replies, with their users: one file, or a folder with a file for each set."""
        path, found = self._source.save, dict[Path, set[str]]()
        if path is not None:
            for name, line in self._users.items():
                file = path if path.suffix == ".jsonl" else path.joinpath(*_part(line.file), line.file.name)
                found.setdefault(file, set()).add(name)
        return found

    def _is_open(self, name: str) -> bool:
        """Whether a request's name may be printed, which is so unless its user is held out."""
        return not self._users[name.partition(".")[0]].held_out

    def _report(self, runs: Sequence[Run]) -> Report:
        last, extractor = runs[-1], chosen(self._settings.extraction)
        report = tally_report([run.tally for run in runs])
        report["extractor"] = extractor if self._source.is_live else "replay"
        report["run"] = run_report(last, self._settings.extraction.prices)
        if not self._source.is_live:
            report["changed"] = changes(self._changed, self._is_open)
        elif extractor == "anthropic":
            report["model"] = self._settings.extraction.model
            report["latency"] = latency(last.spent)
        report["mistakes"] = mistakes(last.tally)
        return report


def _part(file: Path) -> tuple[str, ...]:
    part = HELD_OUT if is_held_out(file) else file.parent.name
    return (part,) if part in ("open", HELD_OUT) else ()


def measure_cases(
    settings: Settings,
    cases: Sequence[Line[Case]],
    by_model: bool,
    repeat: int = 1,
    progress: Progress | None = None,
) -> Report:
    """The report on attacks and true statements, with the extractor of the settings or the replies in the cases.

    After an interruption it covers the results so far. Raises BadLabels.
    """
    runs = [AttackRun()]

    async def measure() -> None:
        patterns = load_patterns(settings.signals.folder)
        if not by_model:
            await AttackEvaluation(settings, patterns).run(cases, runs[-1], progress)
            return
        async with live(settings) as answers:
            await AttackEvaluation(settings, patterns, answers).run(cases, runs[-1], progress)

    async def all_runs() -> None:
        await measure()
        for _ in range(repeat - 1):
            runs.append(AttackRun())
            await measure()

    interrupted = not completes(all_runs)
    report = tally_report([run.tally for run in runs], ATTACK_GROUPS)
    report["extractor"] = chosen(settings.extraction) if by_model else "replay"
    report["cases"] = runs[-1].finished
    report["mistakes"] = mistakes(runs[-1].tally)
    return {**report, "interrupted": interrupted}


@asynccontextmanager
async def live(settings: Settings, recorder: Recorder | None = None) -> AsyncIterator[Answers]:
    """Open the extractor of the settings as a source of replies. Raises ConfigError."""
    extractor = open_extractor(settings.extraction, settings.drain.concurrency)
    try:
        yield Live(extractor, recorder)
    finally:
        await extractor.aclose()
