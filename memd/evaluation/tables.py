"""The report as tables, for a terminal and for RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from memd.evaluation.report import Report
from memd.evaluation.tally import FIGURES
from memd.printable import printable

TEXT_CHARS = 90
NAMES = 10
"""Changed requests that are named; the JSON has all."""

_PARTS = (("open", "open cases"), ("held_out", "held-out cases"))


def lines(report: Report) -> Iterator[str]:
    """The report for a terminal."""
    parts = [(part, title) for part, title in _PARTS if any(part in row for row in report["figures"].values())]
    yield from aligned([["figure", "", *(title for _, title in parts)], *_rows(report, [part for part, _ in parts])])
    yield ""
    for name, groups in report["groups"].items():
        found = ", ".join(f"{group or '-'} {rate['yes']}/{rate['of']}" for group, rate in groups.items())
        yield f"{name}: {found}"
    yield ""
    yield from _notes(report)
    for title, cases in report.get("mistakes", {}).items():
        if cases:
            yield f"\nfirst {len(cases)} open cases of {title.replace('_', ' ')}:"
            yield from (f"  {case['case']} [{case['group'] or '-'}] {_cut(case['text'])}" for case in cases)


def _rows(report: Report, parts: Sequence[str]) -> Iterator[list[str]]:
    for name, figure in report["figures"].items():
        yield [name, FIGURES[name].title, *(shown(figure.get(part)) for part in parts)]


def shown(rate: Mapping[str, Any] | None) -> str:
    """A rate with its counts and interval."""
    if rate is None:
        return "-"
    return f"{rate['rate']:.3f} ({rate['low']:.2f}–{rate['high']:.2f}) {rate['yes']}/{rate['of']}"


def _notes(report: Report) -> Iterator[str]:
    run = report.get("run", {})
    if run:
        yield f"{run['users']} users, {run['sessions']} conversations, {run['calls']} requests"
        tokens = ", ".join(f"{count} {name.removesuffix('_tokens')}" for name, count in run["tokens"].items())
        usd = run["usd_per_1000_conversations"]
        yield f"tokens: {tokens}; " + ("price unknown" if usd is None else f"${usd:g} per 1,000 conversations")
    if times := report.get("latency"):
        yield "seconds a request: " + ", ".join(f"{name} {value:g}" for name, value in times.items())
    if run.get("outages"):
        yield "failed calls: " + ", ".join(f"{count} {code}" for code, count in run["outages"].items())
    if changed := report.get("changed", {}).get("requests"):
        details = ", ".join(f"{part} {report['changed'][part]}" for part in ("prompt", "memory", "messages"))
        yield f"{changed} requests are not those that were answered (by what differs: {details})"
        yield from (f"  {name}" for name in report["changed"]["names"][:NAMES])
    if repeat := report.get("repeat"):
        yield f"{repeat['runs']} runs; the same verdict in all: {shown(repeat['agreement'])}"


def compared(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Two reports side by side."""
    table = [["figure", "first", "second", ""]]
    for row in rows:
        mark = row["change"] + (", beyond chance" if row["apart"] and row["change"] != "same" else "")
        table.append([row["figure"], shown(row["first"]), shown(row["second"]), mark])
    yield from aligned(table)


def markdown(report: Report) -> Iterator[str]:
    """The figures as a table of Markdown."""
    parts = [(part, title) for part, title in _PARTS if any(part in row for row in report["figures"].values())]
    yield "| figure | | " + " | ".join(title for _, title in parts) + " |"
    yield "|---" * (2 + len(parts)) + "|"
    for row in _rows(report, [part for part, _ in parts]):
        yield "| " + " | ".join([f"`{row[0]}`", *row[1:]]) + " |"


def markdown_groups(report: Report) -> Iterator[str]:
    """The groups of each figure as a list of Markdown."""
    for name, groups in report["groups"].items():
        found = ", ".join(f"{group or '-'} {rate['yes']}/{rate['of']}" for group, rate in groups.items())
        yield f"* `{name}`: {found}"


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows with their columns under each other."""
    table = list(rows)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _cut(text: str) -> str:
    shown_text = printable(text)
    return shown_text if len(shown_text) <= TEXT_CHARS else shown_text[: TEXT_CHARS - 1] + "…"
