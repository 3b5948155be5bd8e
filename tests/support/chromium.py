"""A real browser: Debian's Chromium, driven by Playwright, whose windows note everything that goes wrong in a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from support.console_site import Console

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Page, Request, Response

WIDTHS = (360, 768, 1280, 1600)
"""Widths of windows, in CSS pixels: a telephone, a tablet, a laptop, a desk."""

HEIGHT = 900
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
GRAVE = ("serious", "critical")
LATE_MS = 120_000
"""How long the browser may take for one step on busy cores."""


def program() -> str | None:
    """The path of Chromium; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A window on one console. `problems`: what went wrong so far, each with the address of its page."""

    def __init__(self, page: Page, console: Console) -> None:
        self.page = page
        self.problems: list[str] = []
        self._refused: tuple[int, ...] = ()
        self._console = console
        page.set_default_timeout(LATE_MS)
        page.on("console", self._said)
        page.on("pageerror", self._broke)
        page.on("dialog", self._ran)
        page.on("request", self._asked)
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def open(self, address: str) -> None:
        """Go to an address of the console, and wait until its page is complete."""
        self.page.goto(address if "://" in address else self._console.base + address)

    def resize(self, width: int) -> None:
        """Make the window so many CSS pixels wide."""
        self.page.set_viewport_size({"width": width, "height": HEIGHT})

    def speak(self, language: str) -> None:
        """From now on the browser asks for pages in this language."""
        self.page.set_extra_http_headers({"accept-language": language})

    def refuses(self, *statuses: int) -> None:
        """From now on pages may have these statuses, which are problems otherwise."""
        self._refused = statuses

    def enter(self) -> None:
        """Log in by a one-time link."""
        self.open(self._console.link())
        self.page.wait_for_url(lambda url: "/enter" not in url)

    def check(self) -> None:
        """Fail when anything went wrong."""
        failed = [line for line in self._console.log.splitlines() if "http_failed" in line]
        assert self.problems + failed == []

    def note(self, problems: list[str]) -> None:
        """Add what a look at the present page has found."""
        for problem in problems:
            self._add(problem)

    def _add(self, problem: str) -> None:
        size = self.page.viewport_size
        where = self.page.url.removeprefix(self._console.base)
        self.problems.append(f"{where} at {size['width'] if size else '?'} px: {problem}")

    def _broke(self, error: Error) -> None:
        self._add(f"a script failed: {error}")

    def _ran(self, dialog: Dialog) -> None:
        self._add(f"a script of the content ran: {dialog.message}")
        dialog.dismiss()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(
            f"a status of {one}" in message.text for one in self._refused
        ):
            self._add(f"the browser's console: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(f"{self._console.base}/"):
            self._add(f"a request to elsewhere: {request.url[:200]}")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # so it is when a page is left before all of it is there
            self._add(f"a request failed: {request.url[:200]} ({request.failure})")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self._refused:
            self._add(f"{response.status} for {response.url[:200]}")


@contextmanager
def window(
    browser: Browser,
    console: Console,
    *,
    scripts: bool = True,
    cookie: str = "",
) -> Iterator[Window]:
    """A window of its own, with nothing kept from others; at the end everything must have gone well.

    `scripts`: whether JavaScript is on. `cookie`: that of a login; without one nobody is logged in.
    """
    context = browser.new_context(
        java_script_enabled=scripts, viewport={"width": 1280, "height": HEIGHT}, reduced_motion="reduce"
    )
    try:
        if cookie:
            name, _, value = cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": f"{console.base}/console"}])
        opened = Window(context.new_page(), console)
        opened.speak("en")
        yield opened
        opened.check()
    except BaseException:
        print(opened.page.url, opened.page.inner_text("body")[:2_000], *opened.problems, sep="\n")  # noqa: T201  (shown with the failure)
        raise
    finally:
        context.close()


# --- looking at a page -----------------------------------------------------------------------------------------------


def too_wide(page: Page) -> list[str]:
    """Whether the page itself scrolls sideways, with the elements that reach furthest."""
    found: list[str] = page.evaluate(
        """() => {
            const room = document.documentElement.clientWidth;
            if (document.scrollingElement.scrollWidth <= room) return [];
            const wide = [...document.querySelectorAll('body *')]
                .filter(one => one.getBoundingClientRect().right > room + 1)
                .slice(-3).map(one => one.outerHTML.slice(0, 120));
            return [`wider than the window: ${document.scrollingElement.scrollWidth} px; ${wide.join(' … ')}`];
        }"""
    )
    return found


_INTRUDERS = """
    body script:not([src]), body style, body [style], img, iframe, object, embed, form form,
    [onerror], [onload], [onclick], a[href^="javascript:"], a[href^="http"]
"""


def intruders(page: Page) -> list[str]:
    """Elements that only content can have brought: no page of the console has scripts, styles or pictures inside."""
    found: list[str] = page.evaluate(
        "what => [...document.querySelectorAll(what)].map(one => 'brought by content: ' + one.outerHTML.slice(0, 160))",
        _INTRUDERS,
    )
    return found


def lasting(page: Page) -> str:
    """What the page says, without the values that change by themselves."""
    said: str = page.evaluate(
        """() => {
            const main = document.querySelector('main').cloneNode(true);
            for (const one of main.querySelectorAll('[data-live]')) one.remove();
            return main.textContent.replace(/\\s+/g, ' ').trim();
        }"""
    )
    return said


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def barriers(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """What axe-core finds that is serious or critical. `rules`: only these."""
    if not page.evaluate("() => 'axe' in window"):
        session = page.context.new_cdp_session(page)  # as the developer's tools do it: the page's policy lets no page
        session.send("Runtime.evaluate", {"expression": f"{_axe()};1"})
        session.detach()
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found: list[dict[str, Any]] = page.evaluate(
        "options => axe.run(document, options).then(result => result.violations)", options
    )
    return [
        f"axe: {one['id']} ({one['impact']}): {one['help']}: "
        + "; ".join(f"{node['html'][:160]} {_reason(node)}" for node in one["nodes"][:3])
        for one in found
        if one["impact"] in GRAVE
    ]


def _reason(node: dict[str, Any]) -> str:
    return " ".join(check["message"] for kind in ("any", "all", "none") for check in node[kind])[:240]


_CONTROLS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]"


def unreachable(page: Page) -> list[str]:
    """Controls that Tab does not reach, and those that do not show that they have the focus."""
    count: int = page.evaluate(
        """controls => {
            const seen = one => one.checkVisibility({visibilityProperty: true});
            window.controls = [...document.querySelectorAll(controls)]
                .filter(one => !one.disabled && one.tabIndex >= 0 && seen(one));
            window.reached = new Set();
            window.unseen = [];
            document.activeElement?.blur();
            return window.controls.length;
        }""",
        _CONTROLS,
    )
    for _ in range(count + 5):
        page.keyboard.press("Tab")
        page.evaluate(
            """() => {
                const now = document.activeElement, style = getComputedStyle(now);
                if (now === document.body || window.reached.has(now)) return;
                window.reached.add(now);
                const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
                const box = now.getBoundingClientRect();
                const shown = outlined || style.boxShadow !== 'none';
                if (!shown || box.width < 1 || box.height < 1) window.unseen.push(now);
            }"""
        )
    found: list[str] = page.evaluate(
        """() => {
            const groups = new Set();  // of radio buttons Tab reaches the chosen one
            for (const one of window.reached) if (one.type === 'radio') groups.add(one.name);
            const isReached = one => window.reached.has(one) || (one.type === 'radio' && groups.has(one.name));
            const missed = window.controls.filter(one => !isReached(one));
            return [...missed.map(one => 'Tab does not reach ' + one.outerHTML.slice(0, 160)),
                    ...window.unseen.map(one => 'shows no focus: ' + one.outerHTML.slice(0, 160))];
        }"""
    )
    return found
