"""The store of JSON files on a network file system: refused, unless a setting says that its locks work."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.stores import contents, options, save

from memd.disk import mounts
from memd.errors import ConfigError
from memd.memory.store import JsonStore

LINES = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:50 / /srv/my\040memory rw - nfs4 host:/export rw,vers=4.2
31 30 0:51 / /srv/my\040memory/cache rw - tmpfs tmpfs rw
40 22 0:60 / /data rw - cifs //host/share rw
41 40 254:1 / /data rw - xfs /dev/vdb rw
a line of another form
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/memd", "ext4"),
        ("/srv/my memory/memd-data", "nfs4"),
        ("/srv/my memory/cache/memd-data", "tmpfs"),
        ("/srv/my memory too", "ext4"),
        ("/data/memd-data", "xfs"),
    ],
)
def test_the_deepest_and_latest_mount_counts(folder: str, kind: str) -> None:
    """Also for a folder that does not exist yet, and one whose path has a blank."""
    assert mounts.kind_of(Path(folder), LINES) == kind


@pytest.mark.files
def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its kind; `store.network` takes it."""
    here = mounts.kind_of(tmp_path.resolve(), mounts.MOUNTS.read_text())
    assert here
    save(JsonStore(tmp_path, options()), "tea")

    monkeypatch.setattr(mounts, "NETWORK", {here})
    mounts.network_kind.cache_clear()
    try:
        with pytest.raises(ConfigError, match=rf"setting store.network: .*\({here}\)"):
            JsonStore(tmp_path, options())
        assert contents(JsonStore(tmp_path, options(network=True))) == ["tea"]
    finally:
        mounts.network_kind.cache_clear()
