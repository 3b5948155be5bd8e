"""The console's page of costs: by model and day, for each stored fact, the share in batches, the budgets."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from support.console_visits import Visitor, console
from support.http_support import Site, install

from memd.client import Memd
from memd.http.keyring import Users
from memd.inbox.connection import connect
from memd.inbox.verbs import P

COST = "/console/cost"
HAIKU = "claude-haiku-5-5"
DAY = int(time.time()) // 86_400


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Site]:
    """A server with budgets and the console."""
    with console(server_url, budget__total_tokens_per_day=4_000_000, budget__user_tokens_per_day=20_000) as site:
        yield site


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    """The server with an empty inbox."""
    with connect(running.settings) as client:
        client.flushall()
        install(running)
        yield running
        client.flushall()


def use(site: Site, back: int, model: str, facts: int = 0, **counts: int) -> None:
    """Count what calls used on a day, as the end of a claim does."""
    with connect(site.settings) as client:
        for kind, count in counts.items():
            client.hincrby(f"{P}:usage:{DAY - back}", f"{kind}:{model}", count)
            client.hincrby(f"{P}:stats", f"used:{kind}:{model}", count)
            client.hincrby(f"{P}:stats", f"{kind.removeprefix('batch_')}_tokens", count)
        client.incrby(f"{P}:facts:{DAY - back}", facts)


def test_nothing_used_yet(site: Site) -> None:
    """An empty page says so."""
    page = Visitor(site).get(COST)
    assert "No model used tokens in this time." in page.text
    assert '<svg class="plot"' not in page.html
    assert "Today $0.00 0 tokens" in page.text


def test_costs_by_day_and_model(site: Site) -> None:
    """A column for each day, the same numbers in the table, sums of the period and of all, and what a fact cost."""
    use(site, 0, HAIKU, facts=4, input=1_000_000, output=100_000, calls=6, batch_calls=2, batch_input=1_000_000)
    use(site, 10, HAIKU, facts=1, input=2_000_000, calls=2)
    use(site, 40, HAIKU, input=5_000_000, calls=1)
    visitor = Visitor(site)
    with Memd(site.settings) as app:
        figures = app.cost(days=30)
    page = visitor.get(COST)
    # Input costs 0.10, output 0.50 dollars a million; in batches half: 0.10 + 0.05 + 0.05 today, 0.20 ten days ago.
    for words in ("Today $0.2000 2,100,000 tokens", "30 days $0.4000 4,100,000 tokens", "In batches 20 % of 10 calls"):
        assert words in page.text
    assert "For a stored fact $0.0800 5 facts" in page.text
    assert "Since the beginning $0.9000" in page.text
    assert figures.days[-1].usd == pytest.approx(0.2)
    drawn = re.findall(r'<rect class="f1"[^>]*height="([\d.]+)"><title>([^<]+)</title>', page.html)
    assert [title for _, title in drawn] == [
        f"{datetime.now(UTC) - timedelta(days=back):%m-%d} · {HAIKU}: $0.2000" for back in (10, 0)
    ]
    assert drawn[0][0] == drawn[1][0]
    assert f"{datetime.now(UTC) - timedelta(days=10):%Y-%m-%d} 2 0 2,000,000 1 $0.2000 $0.2000 {HAIKU}" in page.text
    assert "7 days $0.2000" in visitor.get(f"{COST}?days=7").text
    assert "90 days $0.9000" in visitor.get(f"{COST}?days=90").text
    assert "30 days $0.4000" in visitor.get(f"{COST}?days=nonsense&unit=none").text
    assert f"{HAIKU} 4,100,000" in visitor.get(f"{COST}?unit=tokens").text


def test_a_model_without_a_price(site: Site) -> None:
    """Its tokens are drawn, its money is not made up; a hostile name is text."""
    use(site, 0, "<b>my:model</b>", facts=2, input=3_000, calls=1)
    page = Visitor(site).get(COST)
    assert "No price is known for <b>my:model</b>" in page.text.replace("&lt;", "<").replace("&gt;", ">")
    assert "<b>my" not in page.html
    assert "3,000 tokens" in page.text
    assert "For a stored fact 1.5k tokens; 2 facts" in page.text
    assert "No model in use has a price: choose tokens." in Visitor(site).get(f"{COST}?unit=usd").text


def test_budgets_and_rights(site: Site) -> None:
    """How much of the day's tokens is used; only tokens for all users see what all users cost."""
    with connect(site.settings) as client:
        client.hset(f"{P}:spent:{DAY}", ".total", 1_000_000)
    page = Visitor(site).get(COST)
    assert "1,000,000 of 4,000,000 tokens used, 25 %" in page.text
    assert "Each user, a day 20,000 tokens" in page.text
    of_ana = Visitor(site, site.give("desk", Users(frozenset({"ana"})), ("read", "console")))
    of_ana.get(COST, 404)
    assert "额度" in Visitor(site).get(COST, language="zh").text
