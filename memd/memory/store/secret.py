"""The store's secret key, and the keyed hashes made with it.

A plain hash of a user id is guessed by trying ids. Outside the inbox a keyed hash takes its place: in log lines and in
the names of tombstone files.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from pathlib import Path

from memd.disk import files
from memd.disk.lock import locked
from memd.errors import StoreUnavailable
from memd.memory.store import paths

SIZE = 32
"""Bytes of the key."""

UNREADABLE = (
    "E_STORE_KEY: store.key is not a key; restore it from a backup, or remove it while memd is stopped: a new one is "
    "made at the next start"
)


def keyed(key: bytes, purpose: str, plain: str) -> str:
    """The keyed hash of a plain one, 40 hex digits. Different purposes give hashes that cannot be compared."""
    return hmac.digest(key, f"{purpose}:{plain}".encode(), "sha256").hex()[:40]


class StoreKey:
    """The key of a data folder, `store.key`: made once, mode 0600. It is read again when the file changes.

    `before_new` gets each new key before it is written, so that it can rename what an older key has named.
    """

    def __init__(self, data_dir: Path, before_new: Callable[[bytes], None]) -> None:
        self._file = data_dir / paths.KEY
        self._lock = paths.id_lock(data_dir)
        self._before_new = before_new
        self._kept: tuple[object, bytes] = (None, b"")

    def get(self) -> bytes:
        """The key, made durably when there is none. The caller holds no lock. Raises StoreUnavailable."""
        mark = files.mark(self._file)
        if mark is None or mark != self._kept[0]:
            self._kept = (mark, self._read() or self._make())
        return self._kept[1]

    def _read(self) -> bytes | None:
        text = files.read(self._file)
        if text is None:
            return None
        try:
            key = bytes.fromhex(text.decode("ascii"))
        except ValueError:
            raise StoreUnavailable(UNREADABLE) from None
        if len(key) != SIZE:
            raise StoreUnavailable(UNREADABLE)
        return key

    def _make(self) -> bytes:
        with locked(self._lock):
            known = self._read()
            if known is None:
                known = os.urandom(SIZE)
                self._before_new(known)
                files.replace(self._file, f"{known.hex()}\n".encode(), self._file.with_suffix(".key.tmp"))
        return known
