"""The data folder: who may read it, whether there is room, what lies about in it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from memd.memory.store import paths
from memd.ops.doctor.patient import Patient, Verdict, bad, ok, size, warn

LOOKED_AT = 20_000
"""Files that one check looks at; a larger folder is looked at in part."""

FREE_BAD, FREE_WARN = 100 * 10**6, 10**9
INODES_BAD, INODES_WARN = 1_000, 20_000
TEMP_OLD_S = 600.0
"""A temp file younger than this may be a commit that is under way."""


def permissions(patient: Patient) -> Verdict:
    """Nobody else reads the memories."""
    top = patient.settings.data_dir
    try:
        found = top.stat()
    except FileNotFoundError:
        return warn("not there yet: memd up makes it")
    if found.st_uid != os.geteuid():
        return bad("belongs to another user: run memd as that one, or give the folder away")
    if found.st_mode & 0o077:
        return bad(f"mode {stat.S_IMODE(found.st_mode):04o}: others get in; chmod 700 the data folder")
    entries, complete = _entries(top)
    foreign = sum(entry.st_uid != os.geteuid() for _, entry in entries)
    lax = sum(bool(entry.st_mode & 0o077) for _, entry in entries if not stat.S_ISLNK(entry.st_mode))
    if foreign:
        return bad(f"{foreign} files in it belong to another user: memd may not be able to replace them")
    if lax:
        return warn(f"{lax} files in it are open to others: chmod -R go= the data folder")
    return ok(f"only its owner reads it, {len(entries)} files looked at" + ("" if complete else ", not the rest"))


def space(patient: Patient) -> Verdict:
    """There is room for the next version of each document."""
    top = patient.settings.data_dir.absolute()
    while not top.exists():
        top = top.parent
    found = os.statvfs(top)
    free, inodes = found.f_bavail * found.f_frsize, found.f_favail
    said = f"{size(free)} free" + (f", {inodes} inodes" if found.f_files else "")
    if free < FREE_BAD or (found.f_files and inodes < INODES_BAD):
        return bad(f"{said}: commits will fail soon, and the server's with them; make room")
    if free < FREE_WARN or (found.f_files and inodes < INODES_WARN):
        return warn(f"{said}: make room")
    return ok(said)


def leftovers(patient: Patient) -> Verdict:
    """No crash left a temp file, no damage a document set aside."""
    if not patient.settings.data_dir.exists():
        return ok("none")
    entries, complete = _entries(patient.settings.data_dir)
    oldest = time.time() - TEMP_OLD_S
    corrupt = sum(path.name.startswith(f"{paths.FILE}.corrupt-") for path, _ in entries)
    temps = sum(path.name == paths.TEMP and entry.st_mtime < oldest for path, entry in entries)
    if corrupt:
        return warn(
            f"{corrupt} damaged documents were set aside as {paths.FILE}.corrupt-…: look at them, then remove them"
        )
    if temps:
        return warn(f"{temps} temp files of crashed commits: the next start of a worker removes them")
    return ok("none" + ("" if complete else " in what was looked at"))


def _entries(top: Path) -> tuple[list[tuple[Path, os.stat_result]], bool]:
    """What lies in the folders of the documents, and whether that is all; the server's own folder is its affair."""
    found = list(islice(_walk(top), LOOKED_AT + 1))
    return found[:LOOKED_AT], len(found) <= LOOKED_AT


def _walk(top: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for name in ("users", "shared", "locks", "heat"):
        for folder, folders, files in os.walk(top / name):
            for entry in (*folders, *files):
                path = Path(folder, entry)
                try:
                    yield path, path.lstat()
                except FileNotFoundError:  # a commit went on meanwhile
                    continue
