"""Noted: files of reading notes as accesses. It keeps what it parsed, so that a read parses only what was appended
since: parsing 48 KB takes five times as long as a search.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from memd.disk import files
from memd.memory.store.protocol import Access

MAX_FILES = 32
"""Files kept in memory, the last ones read: each some 50 KB, and as much again for the accesses of 500 facts."""


@dataclass
class _Parsed:
    """Whole lines of a file, and what they say."""

    data: bytes = b""
    accesses: dict[str, Access] = field(default_factory=dict)


class Noted:
    """The accesses in files of reading notes. Thread-safe."""

    def __init__(self) -> None:
        self._files: OrderedDict[Path, _Parsed] = OrderedDict()
        self._lock = Lock()

    def read(self, file: Path) -> Mapping[str, Access]:
        """The accesses in a file; they may grow with later reads. Raises StoreUnavailable, DocumentDamaged."""
        data = files.read(file) or b""
        whole = data.rfind(b"\n") + 1
        with self._lock:
            kept = self._files.pop(file, None)
            if kept is None or not data.startswith(kept.data):  # the file was folded, or removed
                kept = _Parsed()
            if whole:
                take_in(kept.accesses, data[len(kept.data) : whole])
                kept.data = data[:whole]
                self._files[file] = kept
            if len(self._files) > MAX_FILES:
                self._files.popitem(last=False)
            return kept.accesses


def take_in(accesses: dict[str, Access], lines: bytes) -> None:
    """Add what lines of reading notes say."""
    for line in lines.decode(errors="replace").splitlines():
        words = line.split()
        try:
            if words[0] == "=":
                accesses[words[4]] = Access(_number(words[1]), int(words[2]), _number(words[3]))
            else:
                now = _number(words[0])
                for name in words[1:]:
                    before = accesses.get(name)
                    accesses[name] = before.again(now) if before else Access(now, 1, 1.0)
        except (ValueError, IndexError):  # torn by a crash; its accesses are lost
            continue


def _number(word: str) -> float:
    value = float(word)
    if not 0 <= value < 1e12:
        raise ValueError
    return value
