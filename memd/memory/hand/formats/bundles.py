"""Reads what is imported from a path: a JSON file, a Markdown file, a folder, or a zip archive.

A folder, an archive or a Markdown file becomes `{"files": {path: text or JSON}}`, with its JSON and Markdown only; the
doors that take JSON take that form, too. Everything is bounded before it is read: bytes, files, and an archive's bytes
as they come out of it.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import orjson

from memd.disk.files import MAX_BYTES
from memd.memory.hand.formats.parcels import FILES, refuse

MAX_FILES = 20_000
"""Files of a folder or an archive that are read."""

ZIP = b"PK\x03\x04"
_READ = frozenset({".json", ".md"})


def read_path(path: Path) -> Any:
    """The value of a file, folder or archive. Raises Rejected, OSError."""
    if path.is_dir():
        return {FILES: _parsed(_in_folder(path))}
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
        if raw.startswith(ZIP):
            return {FILES: _parsed(_in_archive(file if file.seekable() else BytesIO(raw)))}
    if path.suffix == ".md":
        return {FILES: _parsed(iter([(path.name, raw)]))}
    return parse_json(raw)


def parse_json(raw: bytes) -> Any:
    """The JSON value of a file's bytes. Raises Rejected with the place."""
    _check_size(len(raw))
    try:
        return orjson.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        lines = (error.lineno, error.colno) == (2, 1)
        several = "; lines of JSON, as `memd export --all` writes them, are read with --all" if lines else ""
        refuse("E_IMPORT_JSON", f"not JSON at line {error.lineno}, column {error.colno}{several}")


def _parsed(files: Iterator[tuple[str, bytes]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    room = MAX_BYTES
    for number, (path, raw) in enumerate(files):
        room -= len(raw)
        _check_size(MAX_BYTES - room)
        if number >= MAX_FILES:
            refuse("E_IMPORT_FILES", f"an import has at most {MAX_FILES} files", FILES, MAX_FILES)
        found[path] = parse_json(raw) if path.endswith(".json") else _text(raw, number)
    return found


def _text(raw: bytes, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        refuse("E_IMPORT_UTF8", f"{FILES}[{number}] is not UTF-8 at byte {error.start}", FILES)


def _in_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The regular files below a folder by their path in it; links and hidden folders are passed over."""
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(top, name)
            if file.suffix in _READ and stat.S_ISREG(file.lstat().st_mode):
                with file.open("rb") as opened:
                    yield file.relative_to(folder.parent).as_posix(), opened.read(MAX_BYTES + 1)


def _in_archive(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """The files of an archive by their names. What an entry says of its size is not believed."""
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if PurePosixPath(entry.filename).suffix in _READ and not entry.is_dir():
                    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                        raise NotImplementedError  # others fail in ways of their own
                    with archive.open(entry) as opened:
                        yield entry.filename, opened.read(MAX_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        refuse("E_IMPORT_ZIP", "the archive is damaged, encrypted or of a kind that cannot be read")


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        refuse("E_IMPORT_SIZE", f"an import has at most {MAX_BYTES} bytes", limit=MAX_BYTES)
