"""The demo: a daemon of its own, the shipped conversations, and what became of them, told in two screens."""

from __future__ import annotations

import os
import tempfile
from importlib import resources
from pathlib import Path

from rich.console import Console

from memd import config
from memd.client import Memd
from memd.config import Settings
from memd.demo import daemon
from memd.demo.story import Story
from memd.extraction import chosen

COLUMNS = 80
"""The story is never wider, so that it can be pasted anywhere."""


def run(keep: Path | None, log_level: str | None) -> int:
    """Run the demo; returns the exit code of `memd flush`. `keep`: a folder for the data, else it is deleted."""
    console = Console(highlight=False, soft_wrap=False)
    console.width = min(console.width, COLUMNS)
    lines = resources.files("memd.demo").joinpath("conversations.jsonl").read_bytes().splitlines()
    with tempfile.TemporaryDirectory(prefix="memd-demo-") as scratch:
        settings = _settings(keep or Path(scratch), log_level)
        console.print(f"memd reads with {_extractor(settings)}.", style="dim")
        with daemon.running(settings), Memd(settings) as memd:
            code = Story(console, memd, settings).tell(lines)
    if keep:
        console.print(f"\nThe data is in {keep}: memd --data-dir {keep} show mira", style="dim")
    return code


def _settings(folder: Path, log_level: str | None) -> Settings:
    flags = {
        "data_dir": str(folder),
        "scheduler.quiet_s": 1,
        "scheduler.max_wait_s": 5,
        # A killed worker is the point of the story; the log would tell it a second time.
        "log.level": log_level or "error",
    }
    own = {name: value for name, value in os.environ.items() if name.startswith("MEMD_EXTRACTION__")}
    return config.load(environ=own, flags=flags, use_file=False).settings


def _extractor(settings: Settings) -> str:
    match chosen(settings.extraction):
        case "anthropic":
            return f"Anthropic's {settings.extraction.model}"
        case "rules":
            return "offline patterns (set ANTHROPIC_API_KEY to use a model of Anthropic)"
        case name:
            return f"{settings.extraction.model} ({name})"
