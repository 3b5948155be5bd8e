"""The data folder: who can read it, whether the disk has room, and what crashes left in it."""

from __future__ import annotations

import os
import stat
import time
from itertools import islice

from memd.context import Bucket
from memd.errors import StoreUnavailable
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Entry, FileStore
from memd.ops import descriptors
from memd.ops.doctor.checkup import Checkup, Verdict, bad, ok, size, warn
from memd.printable import counted

MOST_ENTRIES = 20_000
"""Most files that one check looks at; of a larger store it checks only a part."""

FREE_BAD, FREE_WARN = 100 * 10**6, 10**9
INODES_BAD, INODES_WARN = 1_000, 20_000
TEMP_OLD_S = 600.0
"""A temp file younger than this may belong to a running commit."""


PROBED = Bucket("doctor", "")
"""The bucket of the write probe. The probe leaves nothing behind."""


def permissions(checkup: Checkup) -> Verdict:
    """Nobody else can read the memories, and they can be written."""
    try:
        top = checkup.settings.data_dir.stat()
    except FileNotFoundError:
        return warn("it does not exist yet: memd up creates it")
    if top.st_uid != os.geteuid():
        return bad("belongs to another user: run memd as that user, or change the folder's owner")
    if top.st_mode & 0o077:
        return bad(f"mode {stat.S_IMODE(top.st_mode):04o}: others can enter it; chmod 700 the data folder")
    try:
        open_store(checkup.settings).probe(PROBED)
    except StoreUnavailable as error:
        return bad(f"it takes no writes ({error}), so nothing is remembered: make it writable")
    entries, complete = _entries(checkup)
    foreign = sum(entry.stat.st_uid != os.geteuid() for entry in entries)
    lax = sum(bool(entry.stat.st_mode & 0o077) for entry in entries if not stat.S_ISLNK(entry.stat.st_mode))
    if foreign:
        return bad(f"another user owns {counted(foreign, 'file')} in it: memd may be unable to replace them")
    if lax:
        return warn(f"open to others: {counted(lax, 'file')} in it; chmod -R go= the data folder")
    checked = f"{counted(len(entries), 'file')} checked" + ("" if complete else ", the others not")
    return ok(f"only its owner can read it; {checked}")


def space(checkup: Checkup) -> Verdict:
    """There is room for the next version of each document."""
    top = checkup.settings.data_dir.absolute()
    while not top.exists():
        top = top.parent
    disk = os.statvfs(top)
    free, inodes = disk.f_bavail * disk.f_frsize, disk.f_favail
    figures = f"{size(free)} free" + (f", {inodes} inodes" if disk.f_files else "")
    if free < FREE_BAD or (disk.f_files and inodes < INODES_BAD):
        return bad(f"{figures}: commits will fail soon, and so will the server's writes; make room")
    if free < FREE_WARN or (disk.f_files and inodes < INODES_WARN):
        return warn(f"{figures}: make room")
    return ok(figures)


def leftovers(checkup: Checkup) -> Verdict:
    """No crash left a temp file, and no damaged document was set aside."""
    entries, complete = _entries(checkup)
    oldest = time.time() - TEMP_OLD_S
    damaged = sum(entry.leftover == "damaged" for entry in entries)
    temps = sum(entry.leftover == "temp" and entry.stat.st_mtime < oldest for entry in entries)
    if damaged:
        return warn(f"set aside as *.corrupt-…: {counted(damaged, 'damaged document')}; look at them, then remove them")
    if temps:
        return warn(f"{counted(temps, 'temp file')} of crashed commits: the next start of a worker removes them")
    return ok("none" + ("" if complete else " in the files that were checked"))


def files(checkup: Checkup) -> Verdict:
    """Processes started like this one may open enough files."""
    allowed, needed = descriptors.allowed(), descriptors.needed(checkup.settings)
    if allowed < descriptors.LEAST:
        return bad(f"{allowed} files may be open (ulimit -n): memd starts with {descriptors.LEAST} or more")
    if allowed < needed:
        return warn(f"{allowed} files may be open (ulimit -n); these settings may need {needed}")
    return ok(f"{allowed} may be open, {needed} may be needed")


def _entries(checkup: Checkup) -> tuple[list[Entry], bool]:
    """Files and folders of the store, and whether the list is complete; empty for a store without files."""
    store = open_store(checkup.settings)
    if not isinstance(store, FileStore):
        return [], True
    entries = list(islice(store.entries(), MOST_ENTRIES + 1))
    return entries[:MOST_ENTRIES], len(entries) <= MOST_ENTRIES
