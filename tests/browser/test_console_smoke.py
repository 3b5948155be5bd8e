"""A walk through all pages of the console in a real browser, for `make smoke`; the other tests here look closer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.chromium import WIDTHS, barriers, intruders, too_wide, window
from support.console_site import Console

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", ["full"])
def test_a_walk_through_all_pages(browser: Browser, sites: dict[str, Console], name: str) -> None:
    """By the one-time link, on a telephone: every page is whole, and axe-core finds nothing serious."""
    site = sites[name]
    with window(browser, site) as here:
        here.resize(WIDTHS[0])
        here.enter()
        for path, address in site.addresses.items():
            if not site.is_file(path):
                here.open(address)
                here.note([*intruders(here.page), *too_wide(here.page), *barriers(here.page)])
