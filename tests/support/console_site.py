"""A `memd serve` with the console, its pages as plain HTTP shows them, and the addresses to which its links lead."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from memd.config import Settings
from memd.http.console import links
from memd.http.console.browser import HOME
from memd.http.console.pages import PAGES
from memd.inbox import library
from memd.inbox.connection import connect
from memd.ops import server
from support import ENDS_S, free_port, make_settings, part, wait_for
from support.console_sets import SETS
from support.forkserver import Part

NOTHING = "user=nobody&id=fact_00000000&project=nothing&thread=nothing"

ADDRESSES = 4
"""So many addresses of each page are read; the one whose page has the longest text is tested."""


@dataclass(frozen=True)
class Console:
    """A running server with the console."""

    settings: Settings
    process: Part

    @property
    def base(self) -> str:
        """Its origin."""
        return f"http://127.0.0.1:{self.settings.http.port}"

    def link(self) -> str:
        """A new one-time link."""
        return links.make(self.settings.data_dir, self.settings.http)

    @property
    def log(self) -> str:
        """What it has logged."""
        return "".join(file.read_text() for file in self.settings.data_dir.glob("serve*.log"))

    def cpu_s(self) -> float:
        """The processor seconds that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @cached_property
    def reader(self) -> Reader:
        """A client that is logged in by a link."""
        return Reader(self)

    @cached_property
    def addresses(self) -> dict[str, str]:
        """The fullest address of each page to which links lead from the first one."""
        return _found(self.reader)

    def address(self, path: str) -> str:
        """An address of this page; where no link leads there, that of a user, fact, project and thread there is not."""
        return self.addresses.get(path, f"{path}?{NOTHING}")

    def is_file(self, path: str) -> bool:
        """Whether a browser saves this page as a file."""
        if path not in self.addresses:
            self.reader.read(self.address(path), 404, 422)
        return self.address(path) in self.reader.files


_TAG = re.compile(r"<[^>]*>")


@contextmanager
def serving_console(settings: Settings) -> Iterator[Console]:
    """`memd serve` for settings with a port and `http.console`; the server of its inbox runs already."""
    with part("serve", settings) as process:
        console = Console(settings, process)
        wait_for(lambda: _answers(console), "the console answers")
        yield console


@contextmanager
def console_with(name: str) -> Iterator[Console]:
    """A console that shows a data set, with an embedded server and a data folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="memd-"))
    changes = {"http__console": True, "http__port": free_port()}
    settings = make_settings(folder, None, scheduler__quiet_s=60, scheduler__max_wait_s=60, **changes)
    process = server.start(settings)
    try:
        with connect(settings) as client:
            library.install(client, settings)
        SETS[name](settings)
        with serving_console(settings) as console:
            yield console
    finally:
        server.stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(console: Console) -> bool:
    assert console.process.poll() is None, console.log
    try:
        return _request(console, "/health", {})[0] == 200
    except ConnectionError:
        return False


def _request(console: Console, path: str, headers: dict[str, str]) -> tuple[int, http.client.HTTPMessage, str]:
    connection = http.client.HTTPConnection("127.0.0.1", console.settings.http.port, timeout=ENDS_S)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


class Reader:
    """Reads pages as a browser without scripts and pictures does."""

    def __init__(self, console: Console) -> None:
        self._console = console
        address = urlsplit(console.link())
        status, headers, _ = _request(console, f"{address.path}?{address.query}", {})
        assert status == 200, "the one-time link lets nobody in"
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.files: set[str] = set()
        """The addresses that gave a file to save."""

    def read(self, address: str, *refused: int) -> str:
        """The page; fails unless there is one, or it has one of these statuses."""
        status, headers, body = _request(self._console, address, {"cookie": self.cookie})
        assert status in (200, *refused), f"{address}: {status} {body}"
        if headers.get_content_disposition() == "attachment":
            self.files.add(address)
        return body


class _Links(HTMLParser):
    """The addresses of the console to which a page links."""

    def __init__(self, base: str, page: str) -> None:
        super().__init__()
        self._base = base
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (target := dict(attrs).get("href")):
            parts = urlsplit(urljoin(self._base, target))
            if not parts.netloc and parts.path.startswith(HOME):
                self.found.append(f"{parts.path}?{parts.query}" if parts.query else parts.path)


def _found(reader: Reader) -> dict[str, str]:
    """Follow the links from the first page on, a few addresses of each page."""
    paths = {page.path for page in PAGES}
    lengths: defaultdict[str, dict[str, int]] = defaultdict(dict)
    waiting = [HOME]
    while waiting:
        address = waiting.pop(0)
        known = lengths[urlsplit(address).path]
        if address in known or len(known) >= ADDRESSES or urlsplit(address).path not in paths:
            continue
        page = reader.read(address)
        known[address] = len(_TAG.sub("", page))
        waiting += _Links(address, page).found
    return {path: max(known, key=lambda one: known[one]) for path, known in lengths.items() if known}
