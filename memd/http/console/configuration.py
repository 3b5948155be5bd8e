"""Settings: every setting in force, and where it comes from. Secrets are masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from memd.config import Settings, by_name
from memd.http.console.page import Shown, Visit

KNOWN = ("default", "environment", "flag")
"""The origins that are no file."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting. `value` and `default` are JSON values; `file`: the file that sets it, if one does."""

    name: str
    value: Any
    default: Any
    origin: str
    file: str

    @property
    def section(self) -> str:
        """The section of config.yaml, empty for the settings before the first one."""
        return self.name.rpartition(".")[0]


def configuration(visit: Visit) -> Shown:
    """The page: all settings by section, or only those that are set."""
    only_set = bool(visit.value("set"))
    rows = list(rows_of(visit.service.settings, visit.service.origins))
    shown = [row for row in rows if row.origin != "default"] if only_set else rows
    sections = [(name, list(group)) for name, group in groupby(shown, lambda row: row.section)]
    count = sum(row.origin != "default" for row in rows)
    return Shown("settings.html", {"sections": sections, "only_set": only_set, "count": count, "all": len(rows)})


def rows_of(settings: Settings, origins: Mapping[str, str]) -> Iterator[SettingRow]:
    """All settings with their origins, in the order of config.yaml."""
    defaults = {**by_name(Settings()), "data_dir": None}  # it depends on the folders there are
    for name, value in by_name(settings).items():
        origin = origins[name]
        kind = origin if origin in KNOWN else "file"
        yield SettingRow(name, value, defaults[name], kind, origin if kind == "file" else "")
