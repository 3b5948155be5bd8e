"""Lines: JSONL files of labels, cases and replies, read with an error that names the file and the line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct, ValidationError, convert

from memd.errors import MemdError
from memd.evaluation.field_errors import sentence
from memd.evaluation.made_secrets import with_tokens

T = TypeVar("T", bound=Struct)

HELD_OUT = "held_out"
"""Cases in a folder of this name are held out: no command prints their text."""


class BadLabels(MemdError):
    """A file of the evaluation cannot be read. The sentence names the file, the line and the field."""

    exit_code = 65


@dataclass(frozen=True, slots=True)
class Line(Generic[T]):
    """One line of a file, as its type."""

    file: Path
    number: int
    value: T
    held_out: bool

    def wrong(self, why: str) -> BadLabels:
        """The error for a line whose fields have the right types but break another rule."""
        return BadLabels(f"{self.file}, line {self.number}: {why}")


def files(paths: Iterable[Path]) -> list[Path]:
    """The JSONL files among these paths and in the folders among them. Raises BadLabels."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        if not inside or not all(file.is_file() for file in inside):
            raise BadLabels(f"{path}: no such file, or a folder without .jsonl files")
        found += inside
    return list(dict.fromkeys(found))


def read_lines(paths: Iterable[Path], kind: type[T]) -> Iterator[Line[T]]:
    """Every line of these files and folders. Raises BadLabels."""
    for file in files(paths):
        hidden = is_held_out(file)
        for number, line in enumerate(read_text(file).split("\n"), 1):
            if line.strip():
                yield Line(file, number, _read(file, number, line, kind), hidden)


def read_text(file: Path) -> str:
    """The text of a file. Raises BadLabels."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadLabels(f"{file} cannot be read: {why}") from None


def nothing_in(paths: Iterable[Path]) -> BadLabels:
    """The error for files without a line to measure."""
    return BadLabels(f"{', '.join(map(str, paths))}: there is nothing to measure in it")


def is_held_out(file: Path) -> bool:
    """Whether a file is in a held-out folder, by its given path or by the path that its links lead to."""
    return HELD_OUT in (*file.parts, *file.resolve().parts)


def _read(file: Path, number: int, line: str, kind: type[T]) -> T:
    try:
        return convert(json.loads(with_tokens(line), object_pairs_hook=_unique), kind)
    except (ValidationError, RecursionError) as error:
        raise BadLabels(f"{file}, line {number}: {sentence(str(error), kind)}") from None
    except ValueError as error:
        raise BadLabels(f"{file}, line {number}: not one JSON object ({error})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object has a field twice")
    return result
