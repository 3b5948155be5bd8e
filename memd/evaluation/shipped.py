"""The shipped evaluation: everything in the folder `evaluation`, by replay, and the figures that must not get worse.

python -m memd.evaluation [FOLDER]    measures, and writes RESULTS.md and results.json into the folder
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memd.config import ExtractionSettings, RecallSettings, Settings
from memd.errors import ConfigError
from memd.evaluation import of_projects as projects
from memd.evaluation import retrieval_sets, tables
from memd.evaluation.attack_cases import Case, case_sizes, read_cases
from memd.evaluation.evaluate import Users, read_users, user_sizes
from memd.evaluation.lines import Line
from memd.evaluation.measuring import Measuring, Source, measure_cases
from memd.evaluation.of_projects import measure_projects
from memd.evaluation.report import Report, is_worse
from memd.evaluation.retrieval import Score
from memd.evaluation.retrieval import measure as measure_retrieval
from memd.evaluation.retrieval_memory import MemdMemory, Memories
from memd.evaluation.tally import FIGURES, PARTS

BUDGET = 2_000
"""Tokens of the block whose coverage is measured."""

AREAS = {
    "blind": "Conversations written and answered blind",
    "sets": "Conversations with faults in the replies",
    "offline": "The same conversations, read by the offline extractor",
    "blind_attacks": "Attacks and true statements written blind",
    "attacks": "Attacks and true statements",
}

TOLERANCE = 1e-9
"""Differences of means below this are rounding, which depends on the machine."""

HEAD = """\
Written by `make eval` (memd {memd}, prompt {prompt}), by replay: the figures measure gates, document and recall, not a
prompt or a model. Intervals are Wilson's, of 95 %. README.md defines each figure. The held-out cases were counted by
`make eval` {runs} times, and by every `make test`."""

Results = dict[str, Any]
"""The report of each of AREAS, the means of retrieval, the number of labels, and the number of runs."""


def measure(folder: Path) -> Results:
    """Measure everything in the folder, by replay. Raises BadLabels."""
    settings, offline = Settings(), Settings(extraction=ExtractionSettings(extractor="rules"))
    users, blind = read_users([folder / "sets"]), read_users([folder / "blind" / "sets"])
    cases, blind_cases = (read_cases([part / "attacks", part / "statements"]) for part in (folder, folder / "blind"))
    return {
        "labelled": _sizes(users, cases),
        "labelled_blind": _sizes(blind, blind_cases),
        "blind": Measuring(settings, blind, Source(replay=(folder / "blind" / "replies",))).measure(1),
        "sets": Measuring(settings, users, Source(replay=(folder / "replies",))).measure(1),
        "offline": Measuring(offline, users, Source()).measure(1),
        "blind_attacks": measure_cases(settings, blind_cases, by_model=False),
        "attacks": measure_cases(settings, cases, by_model=False),
        "projects": measure_projects([folder / "projects"]),
        "retrieval": _retrieval(folder / "retrieval.jsonl"),
    }


def _sizes(users: Users, cases: Sequence[Line[Case]]) -> dict[str, dict[str, int]]:
    of_users, of_cases = user_sizes(users), case_sizes(cases)
    return {part: {**of_users[part], **of_cases[part]} for part in PARTS}


def _retrieval(file: Path) -> dict[str, float]:
    labelled = retrieval_sets.read([file])
    memory = MemdMemory(Memories(labelled), RecallSettings())
    return Score(measure_retrieval(labelled, memory, BUDGET)).figures()


def worse(recorded: Results, now: Results) -> Iterator[str]:
    """The figures that are worse than recorded, a sentence each. Figures without a better side are left out.

    An area that came since is compared from its first record on.
    """
    for area in filter(recorded.__contains__, AREAS):
        for name, figure in recorded[area]["figures"].items():
            if FIGURES[name].better:
                yield from _worse_parts(area, name, figure, now[area]["figures"].get(name, {}))
    for area in ("blind", "sets"):
        if unanswered := now[area]["run"]["unanswered"]:
            yield f"{area}: {unanswered} users have a request without a reply"
    yield from _worse_projects(recorded.get("projects", {}), now["projects"])
    for name, before in recorded["retrieval"].items():
        after = now["retrieval"][name]
        if after < before - TOLERANCE:
            yield f"retrieval {name} is {after:.4g}, recorded is {before:.4g}"


def _worse_projects(recorded: Results, now: Results) -> Iterator[str]:
    for part, figures in recorded.items():
        for name, (before, _) in figures.items():
            after = now[part][name][0]
            if after < before if projects.FIGURES[name].more else after > before:
                yield f"projects: {name} of the {part} cases is {after}, recorded is {before}"


def _worse_parts(area: str, name: str, before: Report, after: Report) -> Iterator[str]:
    for part in filter(before.__contains__, PARTS):
        place = f"{area}: {name} of the {part} cases"
        if part not in after:
            yield f"{place} is not measured any more"
        elif is_worse(name, after[part]["rate"], before[part]["rate"]):
            yield f"{place} is {after[part]['rate']:.4g}, recorded is {before[part]['rate']:.4g}"


def read_results(folder: Path) -> Results:
    """The recorded figures. Raises ConfigError when no figures are recorded."""
    try:
        results: Results = json.loads((folder / "results.json").read_bytes())
    except (OSError, ValueError):
        raise ConfigError(f"{folder}/results.json is missing or no JSON: run `make eval`") from None
    return results


def write(folder: Path, results: Results) -> None:
    """Write RESULTS.md and results.json, and count the run."""
    try:
        runs = read_results(folder)["runs"]
    except ConfigError:  # the first run
        runs = 0
    results = {**results, "runs": runs + 1}
    text = json.dumps(results, ensure_ascii=False, indent=1)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    (folder / "RESULTS.md").write_text("\n".join(page(results)) + "\n", encoding="utf-8")


def page(results: Results) -> Iterator[str]:
    """RESULTS.md, line by line."""
    yield "# Results"
    yield ""
    yield HEAD.format(memd=results["sets"]["memd"], prompt=results["sets"]["prompt_version"], runs=results["runs"])
    for name, label in (("labelled_blind", "Blind, "), ("labelled", "")):
        for part, counts in results[name].items():
            listed = ", ".join(f"{count} {what}" for what, count in counts.items())
            yield f"\n{(label + part.replace('_', ' ')).capitalize()}: {listed}."
    for area, title in AREAS.items():
        yield f"\n## {title}\n"
        yield from tables.markdown(results[area])
        yield ""
        yield from (f"* {line}" for line in tables.groups(results[area]))
        yield from _mistakes(results[area])
    yield "\n## Projects\n"
    yield from projects.markdown(results["projects"])
    yield "\n## Retrieval\n"
    shown = ", ".join(f"{name} {value:.3f}" for name, value in results["retrieval"].items() if name != "questions")
    yield f"{results['retrieval']['questions']} questions, a block of {BUDGET} tokens: {shown}."


def _mistakes(report: Report) -> Iterator[str]:
    for title, cases in report["mistakes"].items():
        if cases:
            yield f"\nThe first {len(cases)} open cases of {title.replace('_', ' ')}:\n"
            yield from (f"* `{case['case']}` ({case['group'] or '-'}): {case['text']}" for case in cases)


def main(arguments: Sequence[str]) -> int:
    """Measure, print the figures that got worse, and write the results."""
    folder = Path(arguments[0] if arguments else "evaluation")
    results = measure(folder)
    if (folder / "results.json").exists():
        for sentence in worse(read_results(folder), results):
            print(f"worse: {sentence}")  # noqa: T201  (the command's output)
    write(folder, results)
    print(f"written: {folder / 'RESULTS.md'}")  # noqa: T201  (as above)
    return 0
