"""Prometheus without `memd serve`: the scheduler serves what the inbox has counted, for all workers."""

from __future__ import annotations

import urllib.request

import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families
from support import MakeSettings, daemon, ended, free_port, make_settings, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.inbox import verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.testing import ModelServer

TURNS = [{"role": "user", "content": "I own a secret boat.", "id": "m1"}]


def scrape(settings: Settings) -> dict[str, float]:
    """The samples at `metrics.port`, by name and labels; nothing while nobody serves."""
    return samples(page(settings))


def page(settings: Settings) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{settings.metrics.port}/metrics", timeout=60) as answer:
            text: str = answer.read().decode()
            return text
    except OSError:
        return ""


def samples(text: str) -> dict[str, float]:
    return {
        " ".join([sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_one_push_is_in_all_histograms(asking: MakeSettings, model: ModelServer) -> None:
    """A call that fails and one that succeeds, one wait, one commit; and no id or word of anybody."""
    settings = asking(metrics__port=free_port())
    model.fail(500, times=1)
    with Memd(settings) as app, daemon(settings):
        app.push(TURNS, thread_id="secret-thread", user_id="secret-user", now=True)
        assert ended(app) == {"stored": 1}
        found = wait_for(lambda: scrape(settings), "the scheduler serves metrics")
        assert "secret" not in page(settings)
    name = settings.extraction.model
    assert found["memd_inbox_up"] == 1
    assert found["memd_wait_seconds_count"] == found["memd_commit_seconds_count"] == 1
    assert found["memd_extraction_seconds_count"] == found[f"memd_calls_by_model_total model={name} way=now"] == 2
    assert sum(value for sample, value in found.items() if sample.startswith("memd_failures_by_model_total")) == 1
    assert found["memd_wait_seconds_bucket le=+Inf"] == 1
    assert found["memd_ended_total state=stored"] == 1


def test_a_wait_is_counted_once(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """From the first push to the first claim; what a claim that comes back waits for is no wait for a worker."""

    def claims() -> tuple[Claim, ...]:
        return send(client, verbs.claim(settings, 9, 0, "w", "m")).taken

    memd.push(TURNS, thread_id="t", user_id="ana", now=True)
    [claim] = claims()
    send(client, verbs.release(claim.id, "paused"))
    [claim] = wait_for(claims, "it is due again")
    send(client, verbs.ack(claim.id, {"state": "stored"}, {}))
    waits = memd.status().durations["wait"]
    assert waits.total == 1
    assert waits.seconds < 60


def test_without_the_inbox_only_that_is_said(settings: Settings) -> None:
    """A scheduler that waits for its server serves, too."""
    away = make_settings(settings.data_dir, f"redis://127.0.0.1:{free_port()}/0", metrics__port=free_port())
    with part("scheduler", away):
        assert wait_for(lambda: scrape(away), "the scheduler serves metrics") == {"memd_inbox_up": 0}


@pytest.mark.usefixtures("client")
def test_a_port_that_is_taken_stops_nothing(configured: MakeSettings) -> None:
    """A second scheduler on the machine says so and works."""
    settings = configured(metrics__port=free_port())
    with part("scheduler", settings), part("scheduler", settings):
        logs = [settings.data_dir / f"scheduler{number}.log" for number in (0, 1)]
        wait_for(lambda: all("scheduler_started" in log.read_text() for log in logs), "both work")
        assert sum("metrics_failed" in log.read_text() for log in logs) == 1
