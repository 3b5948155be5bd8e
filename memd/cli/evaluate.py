"""Evaluating from the shell: labelled sets, attacks, and two reports side by side."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from memd.cli.bars import bar
from memd.cli.common import Json, echo, echo_json, loaded, warn
from memd.cli.tables import table
from memd.config import Settings
from memd.evaluation import ablations, tables
from memd.evaluation import report as reports
from memd.evaluation.ablations import Ablations
from memd.evaluation.attack_cases import case_sizes, read_cases
from memd.evaluation.evaluate import read_users, user_sizes
from memd.evaluation.measuring import Measuring, Progress, Source, measure_cases
from memd.evaluation.of_projects import FIGURES as PROJECT_FIGURES
from memd.evaluation.of_projects import measure_projects
from memd.evaluation.retrieval import SCORE_HEAD, by_group, by_part, score_rows
from memd.evaluation.retrieval_sets import read
from memd.evaluation.tally import FIGURES
from memd.evaluation.targets import NotWritten
from memd.printable import counted

SHIPPED = Path("evaluation")
Extractor = Annotated[str | None, typer.Option("--extractor", help="auto, anthropic, openai or rules.")]
Model = Annotated[str | None, typer.Option("--model", help="The model to ask.")]
Setting = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting; repeatable.")]

MISSED, INCOMPLETE, INTERRUPTED = 1, 75, 130
"""Exit codes: a figure misses its --min; requests without replies, or calls that failed; Ctrl-C."""


def eval(  # noqa: PLR0913, PLR0917  (each parameter is an option)
    sets: Annotated[list[Path] | None, typer.Argument(metavar="[SET]...", help="Files or folders of JSONL.")] = None,
    attacks: Annotated[bool, typer.Option("--attacks", help="SET are attacks and true statements.")] = False,
    retrieval: Annotated[bool, typer.Option("--retrieval", help="SET are facts, questions, what was said.")] = False,
    projects: Annotated[bool, typer.Option("--projects", help="SET are projects with several members.")] = False,
    tokens: Annotated[int, typer.Option(min=1, help="With --retrieval: the budget of the injected block.")] = 2_000,
    replay: Annotated[list[Path] | None, typer.Option(help="Answer from these saved replies; repeatable.")] = None,
    answers: Annotated[Path | None, typer.Option(help="Answer from this folder first: NAME.json, or .jsonl.")] = None,
    requests: Annotated[Path | None, typer.Option(help="Write the requests without a reply to this folder.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save replies for --replay: a .jsonl file, or a folder.")] = None,
    users: Annotated[str, typer.Option(help="Only these users, separated by commas.")] = "",
    extractor: Extractor = None,
    model: Model = None,
    setting: Setting = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Runs; their agreement is reported.")] = 1,
    least: Annotated[str, typer.Option("--min", help="Bounds: recall=0.9,stale=0.02; a miss is exit code 1.")] = "",
    compare: Annotated[tuple[Path, Path] | None, typer.Option(metavar="A B", help="Compare two --json files.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only read the files, and count what they label.")] = False,
    as_json: Json = False,
) -> None:
    """Measure memories on labelled conversations, with your model or saved replies.

    Each user's sessions go through filter, prompt, model, gates and document, in memory, at their own time. The
    default SET is evaluation/sets of this folder. --attacks measures attacks and true statements, with the replies in
    their files unless --model or --extractor names another source. --retrieval measures search and the injected block
    on facts and questions with evidence; where the set has turns, also without each part of the search.
    evaluation/README.md explains formats and figures. Of held-out cases only counts are printed.

    Example: memd eval --replay evaluation/replies --min recall=0.8,stale=0.1

    Example: memd eval my.jsonl --model claude-haiku-5-5 --repeat 3 --json > a.json

    Example: memd eval --retrieval evaluation/retrieval.jsonl --tokens 1000

    Example: memd eval --retrieval evaluation/retrieval

    Example: memd eval --projects evaluation/projects
    """
    if least and (retrieval or compare):
        raise typer.BadParameter("bounds hold for the figures of conversations and attacks only", param_hint="--min")
    if compare is not None:
        _compare(*compare, as_json=as_json)
        return
    settings = chosen_settings(extractor, model, setting or ())
    if retrieval:
        _retrieval(settings, sets or [], tokens, as_json=as_json)
        return
    if projects:
        _projects(sets or _shipped("projects"), as_json=as_json)
        return
    bounds = _bounds(least)
    if attacks:
        labelled = _attacks(settings, sets, asked=bool(extractor or model))
    else:
        source = Source(tuple(replay or ()), answers, requests, save)
        labelled = _sessions(settings, sets, [name for name in users.split(",") if name], source)
    if check:
        _print_sizes(labelled.sizes, as_json=as_json)
        return
    with bar("measuring", labelled.steps) as progress:
        measured = labelled.measure(repeat, progress)
    _print(measured, as_json=as_json)
    _end(measured, bounds)


def _projects(sets: Sequence[Path], *, as_json: bool) -> None:
    found = measure_projects(sets)
    if as_json:
        echo_json(found)
        return
    parts = ("open", "held_out")
    rows = (
        (name, figure.counts, *("{}/{}".format(*found[part].get(name, (0, 0))) for part in parts))
        for name, figure in PROJECT_FIGURES.items()
    )
    table(("figure", "counts", "open", "held out"), rows)


class _Labelled(NamedTuple):
    """What is to be measured: how much of each label, how many steps, and the measurement."""

    sizes: dict[str, dict[str, int]]
    steps: int
    measure: Callable[[int, Progress | None], reports.Report]


def _attacks(settings: Settings, sets: Sequence[Path] | None, *, asked: bool) -> _Labelled:
    cases = read_cases(sets or _shipped("attacks", "statements"))
    return _Labelled(case_sizes(cases), len(cases), partial(measure_cases, settings, cases, asked))


def _sessions(settings: Settings, sets: Sequence[Path] | None, users: Sequence[str], source: Source) -> _Labelled:
    labelled = read_users(sets or _shipped("sets"), users)
    return _Labelled(user_sizes(labelled), len(labelled), Measuring(settings, labelled, source).measure)


def _end(measured: reports.Report, bounds: dict[str, float]) -> None:
    """Warn of missing results and missed bounds, and exit with the code for them."""
    misses, run = reports.unmet(measured, bounds), measured.get("run", {})
    if measured["interrupted"]:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one ends the process quietly, also while Python ends
        warn("interrupted: the figures cover only the part measured so far")
    if count := run.get("unanswered"):
        warn(f"{counted(count, 'user')} stopped at a request without a reply")
    if count := sum(run.get("outages", {}).values()):
        warn(f"{counted(count, 'call')} failed, so the figures are too low")
    if unsaved := measured.get("unsaved"):
        warn(unsaved)
    for miss in misses:
        warn(miss)
    incomplete = run.get("unanswered") or run.get("outages")
    code = INCOMPLETE if incomplete else MISSED if misses else 0
    code = INTERRUPTED if measured["interrupted"] else NotWritten.exit_code if unsaved else code
    if code:
        raise typer.Exit(code)


def chosen_settings(extractor: str | None, model: str | None, pairs: Iterable[str]) -> Settings:
    """The settings in force, overridden by these flags. Raises ConfigError."""
    flags: dict[str, Any] = {"extraction.extractor": extractor, "extraction.model": model}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"{name} has no value: write --set {name}=VALUE", param_hint="--set")
        flags[name] = value
    return loaded(**flags).settings


def _shipped(*names: str) -> list[Path]:
    folders = [SHIPPED / name for name in names]
    if not all(folder.is_dir() for folder in folders):
        raise typer.BadParameter(f"name a set: this folder has no {folders[0]}", param_hint="SET")
    return folders


def _bounds(text: str) -> dict[str, float]:
    bounds: dict[str, float] = {}
    for pair in filter(None, text.split(",")):
        name, _, value = pair.partition("=")
        bounds[name] = _share(value)
        if not 0 <= bounds[name] <= 1:  # also for nan: no figure is on the wrong side of it
            raise typer.BadParameter(f"{name} needs a number from 0 to 1, as in {name}=0.9", param_hint="--min")
        if name not in FIGURES or not FIGURES[name].better:
            known = ", ".join(figure for figure, entry in FIGURES.items() if entry.better)
            raise typer.BadParameter(f"no figure is called {name}; the figures are {known}", param_hint="--min")
    return bounds


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # the caller refuses it
        return math.nan


def _retrieval(settings: Settings, sets: Sequence[Path], tokens: int, *, as_json: bool) -> None:
    if not sets:
        raise typer.BadParameter("name a file of facts and questions, or a folder", param_hint="SET")
    labelled = read(sets)
    parts = Ablations(labelled, settings.recall)
    with bar("measuring", parts.steps) as progress:
        found = parts.measure(tokens, progress)
    scores = by_group(found["all"])
    if as_json:
        means = {group: score.figures() for group, score in scores.items()}
        echo_json({"tokens": tokens, "figures": means, "ablations": ablations.figures(found)})
        return
    table(SCORE_HEAD, score_rows({"memd": scores}), SCORE_HEAD[2:])
    for part in by_part(found["all"]) if len(found) > 1 else ():
        echo("")
        head = ablations.head(found, part)
        table(head, ablations.rows(found, part), head[1:])


def _compare(first: Path, second: Path, *, as_json: bool) -> None:
    rows = reports.compare(reports.read(first), reports.read(second))
    if as_json:
        echo_json(rows)
    else:
        table(("figure", "first", "second", ""), tables.compared(rows))


def _print_sizes(parts: dict[str, dict[str, int]], *, as_json: bool) -> None:
    if as_json:
        echo_json(parts)
        return
    for part, counts in parts.items():
        echo(f"{part}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


def _print(report: reports.Report, *, as_json: bool) -> None:
    if as_json:
        echo_json(report)
    else:
        table(tables.head(report), tables.rows(report))
        for line in tables.notes(report):
            echo(line)
