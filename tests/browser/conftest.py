"""The console in a real browser: one for each test process, and one site for each data set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import redis
from support import MakeSettings, free_port
from support.chromium import chromium, program
from support.console_sets import SETS
from support.console_site import Console, console_with, serving_console
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from memd.config import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser


_SET = re.compile(rf"[\[-]({'|'.join(SETS)})\]$")


class BySet(LoadScopeScheduling):  # type: ignore[misc]  # of no known type
    """Gives all tests of one data set to one process, so that no set is made twice."""

    def _split_scope(self, nodeid: str) -> str:
        found = _SET.search(nodeid)
        return found[1] if found else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BySet:
    """The scheduler of several processes."""
    return BySet(config, log)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser of this test process."""
    if program() is None:
        pytest.skip("not run: no Chromium here to open the console in (apt-get install chromium)")
    pytest.importorskip("playwright.sync_api", reason="not run: no Playwright here to drive a browser (make setup)")
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def sites() -> Iterator[dict[str, Console]]:
    """The sites by data set, each opened when it is first asked for."""
    with ExitStack() as stack:

        class Sites(dict[str, Console]):
            def __missing__(self, name: str) -> Console:
                self[name] = stack.enter_context(console_with(name))
                return self[name]

        yield Sites()


@pytest.fixture
def settings(configured: MakeSettings) -> Settings:
    """The short-time settings, with the console and a quiet time that no test waits for."""
    return configured(http__console=True, http__port=free_port(), scheduler__quiet_s=60, scheduler__max_wait_s=60)


@pytest.fixture
def console(settings: Settings, client: redis.Redis) -> Iterator[Console]:
    """A console of the test's own, for changes."""
    with serving_console(settings) as found:
        yield found
