"""`memd demo`: its story is true, and fits two screens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rich.cells import cell_len
from support import ENDS_S


def test_the_demo_tells_what_happened(tmp_path: Path) -> None:
    """A killed worker loses nothing, a later statement replaces an earlier one, a password is cut out; 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "memd", "demo", "--keep", str(tmp_path / "kept")],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "COLUMNS": "80", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDS_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 60
    assert max(map(cell_len, lines[:-2])) <= 80  # the last lines name the folder, whatever its length
    assert "\x1b" not in done.stdout
    stored, pushes = re.search(r"(\d+) of (\d+) pushes stored, 0 dead", done.stdout).groups()  # type: ignore[union-attr]
    assert stored == pushes
    assert re.search(r"[1-9] workers? killed \(kill -9\)", done.stdout)
    assert 'was  The user lives in Porto.  said: "I live in Porto."' in done.stdout
    assert 'now  The user lives in Lisbon.  said: "I moved to Lisbon last week."' in done.stdout
    assert "cut out before the model: 1 password" in done.stdout
    assert "kestrel" not in (tmp_path / "kept/users/mira/memory.json").read_text()
