"""The report as tables, for a terminal and for RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memd.evaluation.report import Report
from memd.evaluation.tally import FIGURES
from memd.printable import printable

TEXT_CHARS = 90
NAMES = 10
"""Most changed requests that are named; the JSON has all."""

_TITLES = (("open", "open cases"), ("held_out", "held-out cases"))


def head(report: Report) -> list[str]:
    """The columns of the table of figures."""
    return ["figure", "", *(title for _, title in _parts(report))]


def rows(report: Report) -> Iterator[list[str]]:
    """The table of figures."""
    for name, figure in report["figures"].items():
        yield [name, FIGURES[name].title, *(shown(figure.get(part)) for part, _ in _parts(report))]


def _parts(report: Report) -> list[tuple[str, str]]:
    return [(part, title) for part, title in _TITLES if any(part in row for row in report["figures"].values())]


def shown(rate: Mapping[str, Any] | None) -> str:
    """A rate with its counts and interval."""
    if rate is None:
        return "-"
    return f"{rate['rate']:.3f} ({rate['low']:.2f}–{rate['high']:.2f}) {rate['yes']}/{rate['of']}"


def notes(report: Report) -> Iterator[str]:
    """The lines below the table: groups, costs, parts that could not be measured, and the first mistakes."""
    yield from groups(report)
    run = report.get("run", {})
    if run:
        yield f"{run['users']} users, {run['sessions']} conversations, {run['calls']} requests"
        yield _cost(report)
    if times := report.get("latency"):
        yield "seconds a request: " + ", ".join(f"{name} {value:g}" for name, value in times.items())
    if run.get("outages"):
        yield "failed calls: " + ", ".join(f"{count} {code}" for code, count in run["outages"].items())
    if run.get("mended"):
        yield "repairs of replies: " + ", ".join(f"{count} {kind}" for kind, count in sorted(run["mended"].items()))
    if run.get("malformed_items"):
        yield f"items refused for their form: {run['malformed_items']}"
    if changed := report.get("changed", {}).get("requests"):
        details = ", ".join(f"{part} {report['changed'][part]}" for part in ("prompt", "memory", "messages"))
        yield f"requests that differ from the answered ones: {changed} (by part: {details})"
        yield from (f"  {name}" for name in report["changed"]["names"][:NAMES])
    if repeat := report.get("repeat"):
        yield f"{repeat['runs']} runs; the same verdict in all: {shown(repeat['agreement'])}"
    for title, cases in report["mistakes"].items():
        if cases:
            yield f"first {len(cases)} open cases of {title.replace('_', ' ')}:"
            yield from (f"  {printable(case['case'])} [{case['group'] or '-'}] {_cut(case['text'])}" for case in cases)


def _cost(report: Report) -> str:
    run, usd = report["run"], report["run"]["usd_per_1000_conversations"]
    tokens = ", ".join(f"{count} {name.removesuffix('_tokens')}" for name, count in run["tokens"].items())
    estimated = " (estimates where none were counted)" if report["extractor"] == "replay" else ""
    return f"tokens{estimated}: {tokens}; " + ("price unknown" if usd is None else f"${usd:g} per 1,000 conversations")


def _share(group: str, rate: Mapping[str, Any]) -> str:
    return f"{group or '-'} {rate['yes']}/{rate['of']}"


def _split(group: str, rate: Mapping[str, Any]) -> str:
    return f"{group} {rate['yes']} wrong and {rate['of'] - rate['yes']} right"


def _count(group: str, rate: Mapping[str, Any]) -> str:
    return f"{group} {rate['of']}"


_GROUP = {"refusal_wrong": _split, "true_refused": _count}
"""Figures whose groups are printed in another form."""


def groups(report: Report) -> Iterator[str]:
    """Figures by class, kind or reason, a line each."""
    for name, found in report["groups"].items():
        yield f"{name}: " + ", ".join(_GROUP.get(name, _share)(group, rate) for group, rate in found.items())


def compared(changes: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Two reports side by side: name, both rates, and the direction of the change."""
    for row in changes:
        mark = row["change"] + (" (intervals apart)" if row["apart"] and row["change"] != "same" else "")
        yield [row["figure"], shown(row["first"]), shown(row["second"]), mark]


def markdown(report: Report) -> Iterator[str]:
    """The figures as a table of Markdown."""
    columns = head(report)
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for name, *cells in rows(report):
        yield f"| {' | '.join([f'`{name}`', *cells])} |"


def _cut(text: str) -> str:
    shown_text = printable(text)
    return shown_text if len(shown_text) <= TEXT_CHARS else shown_text[: TEXT_CHARS - 1] + "…"
