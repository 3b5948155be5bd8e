"""docs/console.md lists every page of the console, and every scope that its pages and actions ask for."""

from __future__ import annotations

import re
from pathlib import Path

from memd.http.console.pages import ACTIONS, PAGES

TEXT = (Path(__file__).parents[2] / "docs" / "console.md").read_text(encoding="utf-8")

PART_OF = {"Dead letter": "Dead", "Project": "Projects", "Session": "Sessions", "Export": "Memory"}
"""Pages that the document tells about in the row of another one."""


def rows(pattern: str) -> list[str]:
    return re.findall(rf"^\| {pattern} \|", TEXT, re.MULTILINE)


def test_every_page_has_its_row_in_the_order_of_the_menu() -> None:
    """And no row is of a page that is gone."""
    told = rows(r"([A-Z][\w ]+)")
    titles = [PART_OF.get(page.title, page.title) for page in PAGES]
    assert sorted(set(told)) == sorted(set(titles))
    menu = [page.title for page in PAGES if page.menu]
    assert [title for title in told if title in menu] == menu


def test_every_scope_is_explained() -> None:
    """The scopes of the table are those that pages and actions ask for, and `console` itself."""
    asked = {scope for page in PAGES for scope in page.scopes} | {one.scope for one in ACTIONS if one.scope}
    assert set(rows(r"`(\w+)`")) == {*asked, "console"}
