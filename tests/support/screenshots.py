"""Pictures of the console with the demo's memory: `make screenshots`.

PYTHONPATH=tests .venv/bin/python -m support.screenshots [folder]   # docs/screenshots by default
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memd.client import Memd
from support import ROOT, free_port, make_settings, wait_for
from support.chromium import HEIGHT, chromium, program, window
from support.console_site import Console
from support.running_up import ready, up

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTHS = (1280, 360)
MOST_HEIGHT = 1_300
"""CSS pixels of a page that a picture shows; what is below is cut."""

QUALITY = 60
MOST_BYTES = 600_000
"""Bytes of all pictures together."""

HERO = "mira"
LEFT_OUT = tuple(
    f"/console/{name}" for name in ("settings", "dead", "cost", "projects", "sessions", "receipt", "audit")
)
"""Pages that show where things are on this machine, and those for which the demo has nothing to show."""


class Picture(NamedTuple):
    """One picture of a page: its name, and the address. `dark`, `language`: as the browser asks for it."""

    name: str
    address: str
    dark: bool = False
    language: str = "en"


def pictures(console: Console) -> Iterator[Picture]:
    """All pages to which links lead, in the light; the overview and a memory also in the dark and in Chinese."""
    for path, address in console.addresses.items():
        if not console.is_file(path) and path not in LEFT_OUT:
            yield Picture(path.removeprefix("/console").strip("/").replace("/", "-") or "overview", address)
    yield Picture("overview-dark", "/console", dark=True)
    yield Picture("user-zh", f"/console/user?user={HERO}", language="zh-CN")


def main() -> int:
    """Write the pictures; 1 where there is no browser, or when they are too many bytes."""
    if program() is None:
        sys.stderr.write("not done: no Chromium here (apt-get install chromium)\n")
        return 1
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with demo() as console, chromium() as browser:
        for picture in pictures(console):
            for width in WIDTHS:
                take(browser, console, picture, width, folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    sys.stdout.write(f"{len(list(folder.iterdir()))} pictures, {size:,} bytes, in {folder}\n")
    return 0 if size <= MOST_BYTES else 1


@contextmanager
def demo() -> Iterator[Console]:
    """The demo's data, with all parts of memd running, and a conversation that waits."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        data = Path(scratch) / "demo"
        words = [sys.executable, "-m", "memd", "demo", "--keep", str(data)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        waits = {"scheduler__quiet_s": 240, "scheduler__max_wait_s": 300}
        settings = make_settings(data, None, http__enabled=True, http__console=True, http__port=free_port(), **waits)
        with up(settings) as (process, _), Memd(settings) as memd:
            wait_for(lambda: ready(settings), "all parts of memd run")
            turns = [{"role": "user", "content": "I think about buying a bicycle.", "id": "1"}]
            memd.push(turns, thread_id="bicycle", user_id=HERO)
            console = Console(settings, process)
            wait_for(lambda: "findings" in console.reader.read("/console"), "the console answers")
            yield console


_UNNAMED = """host => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll(host, 'host');
}"""


def take(browser: Browser, console: Console, picture: Picture, width: int, folder: Path) -> None:
    """Write one picture."""
    with window(browser, console, cookie=console.reader.cookie) as here:
        here.speak(picture.language)
        here.page.emulate_media(color_scheme="dark" if picture.dark else "light")
        here.resize(width)
        here.open(picture.address)
        here.page.evaluate(_UNNAMED, socket.gethostname())
        height = min(MOST_HEIGHT, here.page.evaluate("() => document.documentElement.scrollHeight"))
        session = here.page.context.new_cdp_session(here.page)
        clip = {"x": 0, "y": 0, "width": width, "height": max(height, HEIGHT if width > WIDTHS[1] else 0), "scale": 1}
        options = {"format": "webp", "quality": QUALITY, "captureBeyondViewport": True, "clip": clip}
        shot = session.send("Page.captureScreenshot", options)
        (folder / f"{picture.name}-{width}.webp").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    sys.exit(main())
