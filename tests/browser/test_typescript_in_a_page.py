"""clients/typescript in a page of a real browser, whose origin passes the calls on to `memd serve`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from support import ROOT, daemon
from support.chromium import LATE_MS
from support.http_support import Site, install, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ORIGIN = "http://app.test"
CALLS = """async () => {
  const { Memd, MemdError } = await import("/client/lib/index.js");
  const { memdMiddleware } = await import("/client/lib/ai-sdk.js");
  const memd = new Memd({ url: "/memd/", timeoutMs: 60_000 });
  const messages = [{ id: "1", role: "user", content: "I live in Porto. 我喜欢喝绿茶。" }];
  const { state } = await memd.ended(await memd.push({ user_id: "王 & 李", thread_id: "t-1", messages }), "王 & 李");
  const { text } = await memd.inject({ user_id: "王 & 李", query: "喝什么" });
  const { facts } = await memd.facts({ user_id: "王 & 李" });
  const refused = await memd.search({ user_id: "王 & 李", query: "tea", limit: 1_000_000 }).catch((error) => error);
  const stopped = await memd.users({}, { signal: AbortSignal.abort() }).catch((error) => error.name);
  const away = await new Memd({ url: "http://127.0.0.1:1", retries: 0 }).users().catch((error) => error.code);
  const kind = typeof memdMiddleware({ memd }).wrapStream;
  const code = refused instanceof MemdError && refused.code;
  return [state, text.includes("绿茶"), facts.length, code, stopped, away, kind];
}"""


@pytest.fixture
def site(server_url: str) -> Iterator[Site]:
    """A server with tokens, and a daemon that soon finds a conversation quiet."""
    with serving(server_url, locked=True, scheduler__quiet_s=0.3) as found:
        install(found)
        with daemon(found.settings):
            yield found


def test_the_client_runs_in_a_page(browser: Browser, site: Site) -> None:
    """Push, wait, inject, facts, a refusal, a cancelled call, an outage; the token stays with the page's server."""
    page = browser.new_page()
    page.set_default_timeout(LATE_MS)

    def serve(route: Route) -> None:
        path = route.request.url.removeprefix(ORIGIN)
        if path.startswith("/memd/"):
            address = f"http://127.0.0.1:{site.port}{path.removeprefix('/memd')}"
            headers = {**route.request.headers, "authorization": f"Bearer {site.token}"}
            route.fulfill(response=route.fetch(url=address, headers=headers))
        elif path.startswith("/client/"):
            file = ROOT / "clients" / "typescript" / path.removeprefix("/client/")
            route.fulfill(body=file.read_text(encoding="utf-8"), content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    page.route(f"{ORIGIN}/**", serve)
    page.goto(ORIGIN)
    expected = ["stored", True, 2, "E_LIMIT", "AbortError", "E_UNREACHABLE", "function"]
    assert page.evaluate(CALLS) == expected
    page.close()
