"""File systems: which kind a folder is on, and whether other machines may have it as well."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "glusterfs", "lustre", "beegfs",
    "gpfs", "orangefs", "pvfs2", "gfs", "gfs2", "ocfs2", "davfs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs",
    "fuse.davfs2", "fuse.s3fs", "fuse.s3ql", "fuse.goofys", "fuse.rclone", "fuse.gcsfuse", "fuse.juicefs",
    "fuse.blobfuse", "fuse.smbnetfs", "fuse.moosefs", "fuse.mfs",
})  # fmt: skip
"""Kinds whose folders other machines can write too, as Linux names them."""

MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


@lru_cache(maxsize=16)
def network_kind(folder: Path) -> str:
    """The kind of a folder's file system if it is one of a network, else empty; empty as well where nobody tells."""
    try:
        kind = kind_of(folder.resolve(), MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:  # not Linux, or no /proc
        return ""
    return kind if kind in NETWORK else ""


def kind_of(folder: Path, mounts: str) -> str:
    """The kind of file system that a folder is on, given the lines of `mountinfo`; it need not exist yet."""
    found, depth = "", -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if len(fields) < 5:  # (the fifth is where it is mounted)
            continue
        place = Path(_ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[4]))
        if len(place.parts) >= depth and (place == folder or place in folder.parents):
            found, depth = kind, len(place.parts)
    return found
