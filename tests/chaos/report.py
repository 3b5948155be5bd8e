"""The report of a run: its figures, the counts that must be zero, and the verdict."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ZEROS = {
    "dead": "dead",
    "lost": "lost",
    "twice": "twice",
    "torn": "torn reads",
    "backwards": "read backwards",
    "out_of_order": "out of order",
    "wrong_user": "wrong user",
    "foreign": "pushed by nobody",
    "wrong_document": "wrong document",
    "ledger": "ledger wrong",
    "not_accepted": "not accepted",
    "died_alone": "died by themselves",
    "orphans": "orphans",
    "left_keys": "keys left",
    "left_files": "temp files left",
    "left_descriptors": "descriptors left",
    "left_processes": "processes left",
}
"""The counts that must be zero, with their names in the table."""


@dataclass
class Report:
    """The results of a run; times in seconds."""

    seed: int
    bug: str = ""
    """The seeded bug of this run; empty for the code as it is."""

    contexts: int = 0
    accepted: int = 0
    stored: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Skipped pushes by reason: all their messages were known."""

    zeros: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ZEROS, 0))
    kills: dict[str, int] = field(default_factory=dict)
    least_kills: int = 0
    drain_s: float | None = None
    """From the last kill and the last push to an empty inbox; None when it never became empty."""

    pace_s: float | None = None
    """Seconds of a context before the first kill; None when that was not measured."""

    drain_within_s: float = 0.0
    """The time that `drain_s` may take, by the pace and the load of the machine."""

    backlog: int = 0
    """Contexts in the inbox at the last kill and the last push."""

    reads: int = 0
    wall_s: float = 0.0
    details: dict[str, list[str]] = field(default_factory=dict)
    """The first cases of each count that is not zero."""

    baseline: dict[str, int] = field(default_factory=dict)
    at_end: dict[str, int] = field(default_factory=dict)
    """Most descriptors of one process of each role, before the first kill and at the end."""

    def put(self, name: str, count: int, cases: list[str] | None = None) -> None:
        """Set one of the counts that must be zero."""
        self.zeros[name] = count
        if count and cases:
            self.details[name] = cases

    @property
    def is_late(self) -> bool:
        """Whether the inbox was empty too late, or never."""
        return self.drain_s is None or self.drain_s > self.drain_within_s

    @property
    def failures(self) -> list[str]:
        """The reasons why the run failed; empty when it passed."""
        wrong = [f"{ZEROS[name]}: {count}" for name, count in self.zeros.items() if count]
        if self.drain_s is None:
            wrong.append("not drained")
        elif self.is_late:
            wrong.append(f"drained in {self.drain_s:.1f} s, not within {self.drain_within_s:.1f} s")
        if self.least_kills and not any(self.kills.values()):
            wrong.append("no process was killed, so the run proves nothing")
        return wrong

    @property
    def passed(self) -> bool:
        """Whether the run has passed."""
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        return {**asdict(self), "failures": self.failures, "passed": self.passed}

    def write(self, file: Path) -> None:
        """Write the figures as JSON."""
        file.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")

    def table(self) -> str:
        """The figures as text, one a line."""
        rows = [("seed", f"{self.seed}"), ("contexts accepted", f"{self.accepted:,} of {self.contexts:,}")]
        rows.append(("stored", f"{self.stored:,}"))
        rows += [(f"skipped pushes, {reason}", f"{count:,}") for reason, count in self.skipped.items()]
        rows += [(label, _zero(self.zeros[name])) for name, label in ZEROS.items()]
        kills = ", ".join(self._kills_of(role) for role in self.kills)
        rows.append(("kills", f"{sum(self.kills.values())} ({kills})"))
        pace = "" if self.pace_s is None else f"; {1000 * self.pace_s:.1f} ms a context before the kills"
        took = "never" if self.drain_s is None else f"{self.drain_s:.1f} s"
        rows.append(("time to drain", f"{took} of {self.drain_within_s:.1f} s allowed"))
        rows.append(("backlog then", f"{self.backlog:,}{pace}"))
        rows.append(("documents read", f"{self.reads:,} while they were written"))
        rows.append(("descriptors", _pairs(self.baseline, self.at_end)))
        rows.append(("wall time", f"{self.wall_s:.0f} s"))
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {figure}" for name, figure in rows]
        for name, cases in self.details.items():
            lines += [f"  {ZEROS[name]}: {case}" for case in cases]
        verdict = "passed" if self.passed else "FAILED: " + "; ".join(self.failures)
        return "\n".join([*lines, verdict])

    def _kills_of(self, role: str) -> str:
        """Too few kills of a role are shown but do not fail the run."""
        few = f" of {self.least_kills}" if self.kills[role] < self.least_kills else ""
        return f"{role} {self.kills[role]}{few}"


def _zero(count: int) -> str:
    return f"{count:,}   <- must be 0" if count else "0"


def _pairs(before: dict[str, int], after: dict[str, int]) -> str:
    return ", ".join(f"{role} {before.get(role, 0)} before, {after.get(role, 0)} after" for role in after) or "-"
