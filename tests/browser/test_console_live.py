"""Live values: an open page changes by itself while a push goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import daemon, ended
from support.chromium import window
from support.console_site import Console

from memd.client import Memd
from memd.config import Settings
from memd.http.console.pages import PAGES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SAID = [{"role": "user", "content": "I live in Porto.", "id": "1"}]


def figure(page: Page, name: str, value: str) -> None:
    """Wait until a figure of the overview has this value."""
    page.wait_for_function(
        "([name, value]) => document.getElementById(name)?.querySelector('strong')?.textContent === value",
        arg=[name, value],
    )


def test_a_push_is_seen_on_its_way(browser: Browser, console: Console, memd: Memd, settings: Settings) -> None:
    """Pending, then due, then stored, in the same window without a new page."""
    with window(browser, console) as here:
        here.enter()
        figure(here.page, "pending", "0")
        here.page.evaluate("() => { window.opened = true; }")
        memd.push(SAID, thread_id="t", user_id="ana")
        figure(here.page, "pending", "1")
        figure(here.page, "due", "0")
        memd.flush()
        figure(here.page, "due", "1")
        with daemon(settings):
            ended(memd)
            figure(here.page, "stored", "1")
        figure(here.page, "pending", "0")
        assert here.page.evaluate("() => window.opened")


def test_the_queue_fills_while_it_is_looked_at(browser: Browser, console: Console, memd: Memd) -> None:
    """A row more, and less once it is gone."""
    with window(browser, console) as here:
        here.enter()
        here.open("/console/queue")
        row = here.page.get_by_role("row").filter(has_text="monday")
        assert row.count() == 0
        memd.push(SAID, thread_id="monday", user_id="ana")
        row.wait_for()
        memd.forget("ana")
        row.wait_for(state="detached")


def test_live_pages_say_so(browser: Browser, console: Console) -> None:
    """Only pages that the table calls live ask again, and what they refresh is marked."""
    with window(browser, console, cookie=console.reader.cookie) as here:
        for page in PAGES:
            if page.of_user or page.path not in console.addresses:
                continue
            here.open(console.addresses[page.path])
            refreshes = here.page.locator("body[data-every]").count() == 1
            assert page.live or not refreshes, page.path
            assert not refreshes or here.page.locator("[data-live][id]").count(), page.path
