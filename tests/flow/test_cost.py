"""What the model costs: tokens as the endpoint counted them, money from the price table, by model."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
import redis
from support import Cli, daemon, ended, wait_for

from memd import config
from memd.client import Memd
from memd.config import Settings
from memd.errors import ConfigError, Rejected
from memd.extraction.protocol import Usage
from memd.inbox import library, verbs
from memd.inbox.connection import send
from memd.inbox.verbs import P
from memd.testing import ModelServer
from memd.workers.steps import usage_stats

HAIKU = "claude-haiku-5-5"
USAGE = {
    "input_tokens": 1_000_000,
    "output_tokens": 100_000,
    "cache_read_input_tokens": 500_000,
    "cache_creation_input_tokens": 10_000,
}
DOLLARS = 0.10 + 0.05 + 0.005 + 0.002


def answer(
    model: ModelServer,
    text: str = '{"newFacts": [], "confirmedFacts": [], "retiredFacts": [], "summaries": {}}',
    stop: str = "end_turn",
) -> None:
    """Have the model answer once, with this usage."""
    body = {"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": stop, "usage": USAGE}
    model.raw(json.dumps(body).encode())


def push(app: Memd, number: int) -> None:
    turns = [{"role": "user", "content": f"I own boat number {number}.", "id": f"m{number}"}]
    app.push(turns, thread_id=f"t{number}", user_id=f"user-{number}", now=True)


def test_tokens_and_money_by_model(asking: Callable[..., Settings], model: ModelServer, cli: Cli) -> None:
    """Two calls of a million tokens in: what the table and the JSON say is what the price list says."""
    with Memd(asking()) as app, daemon(app.settings):
        for number in range(2):
            answer(model)
            push(app, number)
            assert ended(app) == {"stored": number + 1}
        [row] = app.cost().today
        status = app.status()
    assert (row.model, row.calls, row.batch_calls) == (HAIKU, 2, 0)
    assert (row.input_tokens, row.output_tokens, row.cache_read_tokens) == (2_000_000, 200_000, 1_000_000)
    assert row.cache_write_tokens == 20_000
    assert row.usd == pytest.approx(2 * DOLLARS)
    assert status.usage["input_tokens"] == 2_000_000
    shown = json.loads(cli("status", "--cost", "--json").stdout)
    assert shown["today"] == shown["total"]
    assert shown["today"][0]["usd"] == pytest.approx(2 * DOLLARS)
    table = cli("status", "--cost").stdout
    assert [line.split() for line in table.splitlines() if line.startswith(HAIKU)] == [
        [HAIKU, "2", "0", "2,000,000", "200,000", "1,000,000", "20,000", f"{2 * DOLLARS:.4f}"]
    ] * 2


def test_answers_that_were_refused_are_counted(asking: Callable[..., Settings], model: ModelServer) -> None:
    """An answer that is no update costs as much as any other; so does each attempt."""
    for _ in range(2):
        answer(model, "no update")
    answer(model)
    with Memd(asking()) as app, daemon(app.settings):
        push(app, 0)
        assert ended(app) == {"stored": 1}
        [row] = app.cost().today
        assert (row.calls, app.status().usage["model_calls"]) == (3, 3)
    assert row.usd == pytest.approx(3 * DOLLARS)


def today_of(client: redis.Redis) -> int:
    """The UTC day of the server's clock, in days since 1970; none ends while a test runs."""
    wait_for(lambda: client.time()[0] % 86_400 < 86_370, "the day has a while to go")
    return int(client.time()[0]) // 86_400


def test_a_day_has_its_calls_facts_and_batches(memd: Memd, client: redis.Redis, settings: Settings, cli: Cli) -> None:
    """Through the moves that workers send: a call now, an answer of a batch; what was added is counted by day."""
    day = today_of(client)
    for number in range(3):
        push(memd, number)
    first, second, third = [claim.id for claim in send(client, verbs.claim(settings, 3, 0, "w", "m")).taken]
    alone, batch = Usage(1_000_000, 100_000, 500_000, 10_000), Usage(input_tokens=1_000_000)
    send(client, verbs.ack(first, {"state": "stored"}, {"facts_added": 3} | usage_stats(HAIKU, alone, batch=False)))
    send(client, verbs.ack(second, {"state": "stored"}, {"facts_added": 1} | usage_stats(HAIKU, batch, batch=True)))
    send(client, verbs.bury(third, "E_X", "E_X: x", usage_stats(HAIKU, Usage(), batch=False)))
    cost = memd.cost(days=90)
    [found] = cost.days
    assert found.models == cost.today
    assert ((found.day - date(1970, 1, 1)).days, found.facts) == (day, 4)
    assert (found.models[0].calls, found.models[0].batch_calls) == (2, 1)
    assert found.usd == pytest.approx(DOLLARS + 0.05)
    assert found.usd_per_fact == pytest.approx((DOLLARS + 0.05) / 4, abs=1e-6)
    assert memd.cost().days == ()
    shown = json.loads(cli("status", "--cost", "--days", "7", "--json").stdout)["days"]
    assert [(row["day"], row["facts"], row["models"][0]["batch_calls"]) for row in shown] == [(str(found.day), 4, 1)]
    for name in (f"{P}:usage:{day}", f"{P}:facts:{day}"):
        assert 89 * 86_400 < client.ttl(name) <= 90 * 86_400


def test_days_are_listed_from_the_first_with_figures(memd: Memd, client: redis.Redis, cli: Cli) -> None:
    """A row each, the empty ones in between too; models by name; no sum of what has no price."""
    day = today_of(client)
    client.hset(f"{P}:usage:{day - 3}", items=[f"calls:{HAIKU}", 2, f"input:{HAIKU}", 1_000_000, "input:other", 5])
    client.set(f"{P}:facts:{day - 3}", 4)
    client.hset(f"{P}:usage:{day - 1}", items=[f"input:{HAIKU}", 1_000_000])
    client.hset(f"{P}:usage:{day - 90}", items=[f"input:{HAIKU}", 1])
    rows = memd.cost(days=90).days
    assert [[model.model for model in row.models] for row in rows] == [[HAIKU, "other"], [], [HAIKU], []]
    assert [(row.facts, row.usd, row.usd_per_fact) for row in rows] == [
        (4, 0.1, None), (0, None, None), (0, 0.1, None), (0, None, None),
    ]  # fmt: skip
    assert [len(memd.cost(days=days).days) for days in (0, 1, 2, 3, 4)] == [0, 0, 2, 2, 4]
    printed = cli("status", "--cost", "--days", "30").stdout
    lines = [line.split() for line in printed[printed.index("day (UTC)") :].splitlines()]
    assert [line[1:] for line in lines[1:4]] == [
        [HAIKU, "2", "0", "1,000,000", "0.1000", "4", "-"],
        ["other", "0", "0", "5", "-"],
        ["-", "0", "0", "0", "-", "0", "-"],
    ]


@pytest.mark.parametrize("days", [-1, 91])
def test_other_numbers_of_days_are_refused(memd: Memd, days: int) -> None:
    """The inbox keeps 90."""
    with pytest.raises(Rejected, match="E_LIMIT"):
        memd.cost(days=days)


def test_days_need_the_costs(cli: Cli) -> None:
    """The command says so."""
    assert cli("status", "--days", "3").returncode == 2


def used(client: redis.Redis, **counters: int) -> None:
    """Counters of this and earlier days, as the inbox keeps them."""
    day = client.time()[0] // 86_400
    for name, count in counters.items():
        client.hincrby(f"{P}:usage:{day}", name, count)
        client.hincrby(f"{P}:stats", f"used:{name}", 10 * count)


def test_batches_cost_half(memd: Memd, client: redis.Redis) -> None:
    """Their tokens are among the others, at half the price."""
    used(client, **{f"batch_calls:{HAIKU}": 4, f"batch_input:{HAIKU}": 1_000_000, f"input:{HAIKU}": 1_000_000})
    [today], [total] = memd.cost().today, memd.cost().total
    assert (today.calls, today.batch_calls, today.input_tokens) == (4, 4, 2_000_000)
    assert today.usd == pytest.approx(0.15)
    assert total.usd == pytest.approx(1.5)


def test_a_model_without_a_price_has_tokens_only(memd: Memd, client: redis.Redis, cli: Cli) -> None:
    """Said plainly, and left out of the sum; a name with colons is one."""
    used(client, **{"input:vendor.model:0": 7, f"input:{HAIKU}": 2_000_000})
    rows: dict[str, Any] = {row.model: row.usd for row in memd.cost().today}
    assert rows == {HAIKU: pytest.approx(0.2), "vendor.model:0": None}
    table = cli("status", "--cost").stdout
    assert "no price for vendor.model:0: tokens only" in table
    assert [line.split()[-1] for line in table.splitlines() if line.startswith("all")] == ["0.2000", "2.0000"]


def test_what_was_counted_before_models_were_is_not_lost(memd: Memd, client: redis.Redis) -> None:
    """Totals of an earlier memd appear as a row of their own."""
    used(client, **{f"input:{HAIKU}": 1})
    client.hset(f"{P}:stats", items=["input_tokens", 110, "output_tokens", 5, "model_calls", 9])
    known, rest = sorted(memd.cost().total, key=lambda row: row.usd is None)
    assert (known.input_tokens, rest.model, rest.input_tokens, rest.output_tokens) == (10, "(unknown)", 100, 5)


def test_prices_are_a_setting(client: redis.Redis, configured: Callable[..., Settings]) -> None:
    """A table of one's own replaces the shipped one; budgets are shown with what they have used."""
    price = {"input": 1, "output": 1, "cache_read": 1, "cache_write": 1}
    settings = configured(extraction__prices={"own": price}, budget__total_tokens_per_day=500)
    library.install(client, settings)
    used(client, **{"input:own": 1_000_000, f"input:{HAIKU}": 1})
    with Memd(settings) as app:
        found = app.cost()
    assert {row.model: row.usd for row in found.today} == {"own": 1.0, HAIKU: None}
    assert {name: (budget.tokens_per_day, budget.used) for name, budget in found.budgets.items()} == {"total": (500, 0)}


def test_a_price_that_is_none_stops_the_start() -> None:
    """Named with its model and kind, without the value."""
    with pytest.raises(ConfigError, match=r"extraction\.prices\.own\.input"):
        config.load(environ={"MEMD_EXTRACTION__PRICES": "{own: {input: -1}}"}, use_file=False)
    environ = config.as_environment(config.load(environ={}, use_file=False).settings)
    assert config.load(environ=environ, use_file=False).settings.extraction.prices[HAIKU].cache_write == 0.2
