"""What a command writes to a file instead of standard output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="A new file (mode 0600); default: standard output.")
]


def write_private(file: Path, value: dict[str, Any]) -> None:
    """Create a private file: an export is as private as the documents. It overwrites nothing."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise typer.BadParameter(f"the file cannot be created ({error.strerror})", param_hint="--output") from None
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        file.unlink(missing_ok=True)  # a partial export could be mistaken for a whole one
        raise typer.BadParameter(f"the file cannot be written ({error.strerror})", param_hint="--output") from None
