"""The one-time link into the console: `memd up --console` and `memd console` print one, and it opens the door once."""

from __future__ import annotations

import http.client
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support import ENDS_S, Cli, MakeSettings, free_port, wait_for
from support.running_up import up

from memd.config import HttpSettings
from memd.http.console import links

_LINK = re.compile(r"^http://127\.0\.0\.1:\d+/console/enter\?key=[\w-]{43}$", re.MULTILINE)


def printed(text: str) -> str:
    """The link in what a command printed; empty without one."""
    found = _LINK.search(text)
    return found[0] if found else ""


def opened(link: str) -> int:
    """The status of the page behind a link; 0 while nobody listens there."""
    place = urlsplit(link)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=ENDS_S)
    try:
        connection.request("GET", f"{place.path}?{place.query}")
        return connection.getresponse().status
    except ConnectionRefusedError:
        return 0
    finally:
        connection.close()


@pytest.mark.timing
def test_the_links_of_up_and_of_the_command_open_the_console_once(configured: MakeSettings, cli: Cli) -> None:
    """Neither needs a setting besides the port; the second visitor with the same link is sent away."""
    settings = configured(drain__workers=1, http__port=free_port())
    port = {"MEMD_HTTP__PORT": str(settings.http.port)}
    with up(settings, words=("--console",)) as (_, log):
        wait_for(lambda: printed(log.read_text()), "memd up prints a link")
        assert "once, within five minutes" in log.read_text()
        another = cli("console", **port)
        assert another.returncode == 0, another.stderr
        for link in (printed(log.read_text()), printed(another.stdout)):
            assert [opened(link), opened(link)] == [200, 401]


def test_a_link_to_nowhere_is_not_printed(cli: Cli) -> None:
    """Without a console at that address the command says how to start one, with code 78."""
    port = str(free_port())
    done = cli("console", MEMD_HTTP__PORT=port)
    assert (done.returncode, done.stdout) == (78, "")
    assert f"no console is served at 127.0.0.1:{port}: run `memd up --console`" in done.stderr


def test_the_help_says_how_to_get_in(cli: Cli) -> None:
    """Both commands have an example, and the link's terms."""
    for words, sentence in ((("up",), "memd up --console"), (("console",), "works for five minutes")):
        told = " ".join(cli(*words, "--help").stdout.split())
        assert "Example:" in told
        assert sentence in told


def test_no_two_links_are_equal_and_files_hold_no_key(tmp_path: Path) -> None:
    """A file of the data folder has the hash of a key, and is gone once the link is used."""

    first, second = (links.make(tmp_path, HttpSettings()).partition("key=")[2] for _ in range(2))
    names = [file.name for file in (tmp_path / "console").iterdir()]
    assert len(names) == 2
    assert not {first, second} & set(names)
    assert [links.use(tmp_path, key) for key in (first, first, "x", "../store.id", second)] == [
        True,
        False,
        False,
        False,
        True,
    ]
    assert list((tmp_path / "console").iterdir()) == []
