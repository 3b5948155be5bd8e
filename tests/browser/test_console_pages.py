"""Every page of the console's table with every data set, in a real browser.

Nothing may go wrong on the way: no error in the browser's console, no failed request, none to elsewhere, no script of
the content. A new page is tested as soon as it is in the table and a link leads to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.chromium import WIDTHS, barriers, intruders, lasting, too_wide, unreachable, window
from support.console_sets import SETS
from support.console_site import Console

from memd.http.console.pages import PAGES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Sites = dict[str, Console]
PATHS = [page.path for page in PAGES]
each_set = pytest.mark.parametrize("name", SETS)
with_full = pytest.mark.parametrize("name", ["full"])
each_page = pytest.mark.parametrize("path", PATHS)


@each_set
@each_page
def test_a_page_is_sound(browser: Browser, sites: Sites, name: str, path: str) -> None:
    """Nothing serious for axe-core, light and dark, in English and Chinese; no page scrolls sideways at any width."""
    site = sites[name]
    if site.is_file(path):
        pytest.skip(f"not run: {path} is a file to save, no page")
    with window(browser, site, cookie=site.reader.cookie) as here:
        if path not in site.addresses:
            here.refuses(404, 422)
        here.page.emulate_media(color_scheme="dark")
        here.open(site.address(path))
        here.note(intruders(here.page))
        for width in WIDTHS:
            here.resize(width)
            here.note(too_wide(here.page))
        here.note(barriers(here.page))
        here.speak("zh-CN")
        here.resize(WIDTHS[0])
        here.page.emulate_media(color_scheme="light")
        here.open(site.address(path))
        assert (here.page.get_attribute("html", "lang") or "").startswith("zh")
        here.note(too_wide(here.page))
        here.note(barriers(here.page))


@with_full
def test_links_lead_to_every_page(sites: Sites, name: str) -> None:
    """From the first page on, where there is something to see on each."""
    assert sorted(sites[name].addresses) == sorted(PATHS)


@with_full
@each_page
def test_a_page_can_be_used_by_keyboard(browser: Browser, sites: Sites, name: str, path: str) -> None:
    """Tab reaches every control, and each shows that it has the focus."""
    site = sites[name]
    if site.is_file(path):
        pytest.skip(f"not run: {path} is a file to save, no page")
    with window(browser, site, cookie=site.reader.cookie) as here:
        here.open(site.addresses[path])
        here.note(unreachable(here.page))


@with_full
@each_page
def test_a_page_says_the_same_without_scripts(browser: Browser, sites: Sites, name: str, path: str) -> None:
    """JavaScript adds values that change by themselves, and nothing else."""
    site = sites[name]
    if site.is_file(path):
        pytest.skip(f"not run: {path} is a file to save, no page")
    told = []
    for scripts in (True, False):
        with window(browser, site, cookie=site.reader.cookie, scripts=scripts) as here:
            here.open(site.addresses[path])
            told.append(lasting(here.page))
    assert told[0] == told[1]
