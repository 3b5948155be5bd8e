"""The primary of the inbox is killed ten times while producers push: what was acknowledged, and what is stored."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from support import daemon, make_settings, wait_for
from support.sentinel_service import SentinelService, sentinel_service

from memd.client import Memd
from memd.config import Settings
from memd.errors import InboxFull, InboxUnavailable, NotReady
from memd.testing import ModelServer

KILLS = 10
PRODUCERS = 4
USERS = 20
BEFORE = 100
"""Pushes that are acknowledged before each kill; the producers go on while it happens."""

AGAIN_S = 0.02

pytestmark = [pytest.mark.store, pytest.mark.timeout(900)]


class Producer(threading.Thread):
    """Pushes numbered messages, each until it is answered, and notes the answers; while `going` is set."""

    def __init__(self, settings: Settings, first: int, going: threading.Event) -> None:
        super().__init__(daemon=True)
        self._settings, self._number, self._going = settings, first, going
        self.answers: dict[int, str] = {}
        self._stopped = threading.Event()

    def run(self) -> None:
        """Push until it is told to end."""
        with Memd(self._settings) as memd:
            while not self._stopped.is_set():
                if self._going.wait(AGAIN_S):
                    self._push(memd)

    def _push(self, memd: Memd) -> None:
        number = self._number
        said = [{"role": "user", "content": f"I own bicycle number {number} of the series.", "id": str(number)}]
        try:
            receipt = memd.push(said, thread_id=f"t{number % 3}", user_id=f"u{number % USERS}")
        except (InboxUnavailable, InboxFull, NotReady):  # nobody is the primary; the same message is sent again
            self._stopped.wait(AGAIN_S)
        else:
            self.answers[number] = receipt.status
            self._number += PRODUCERS

    def end(self) -> None:
        """Push no more."""
        self._stopped.set()
        self.join()


@contextmanager
def producers(settings: Settings, going: threading.Event) -> Iterator[list[Producer]]:
    """Running producers."""
    with ExitStack() as stack:
        found = [Producer(settings, first, going) for first in range(PRODUCERS)]
        for one in found:
            one.start()
            stack.callback(one.end)
        yield found


def answered(pushing: list[Producer]) -> dict[int, str]:
    """All answers so far."""
    return {number: status for one in pushing for number, status in list(one.answers.items())}


def acknowledged(pushing: list[Producer]) -> set[int]:
    """The messages that were acknowledged without a reserve so far."""
    return {number for number, status in answered(pushing).items() if status in ("queued", "merged")}


def has_more(pushing: list[Producer], than: int) -> bool:
    """Whether more were acknowledged by now."""
    return len(acknowledged(pushing)) > than


def killed(service: SentinelService, settings: Settings) -> tuple[dict[int, str], Counter[int], Counter[int]]:
    """Kill the primary KILLS times; the answers, what is stored, and what was applied twice, each by message."""
    going = threading.Event()
    with daemon(settings), Memd(settings) as memd:
        with producers(settings, going) as pushing:
            for _ in range(KILLS):
                going.set()
                wait_for(partial(has_more, pushing, len(acknowledged(pushing)) + BEFORE), "producers push")
                gone = service.fail_over()
                going.clear()
                service.bring_back(gone)
            going.set()
            wait_for(partial(has_more, pushing, len(acknowledged(pushing)) + BEFORE), "producers push at the end")
            going.clear()
        assert not memd.flush(wait=True, timeout_s=100).timed_out
        stored, twice = Counter[int](), Counter[int]()
        for fact in (fact for user in range(USERS) for fact in memd.document(f"u{user}").get("facts", [])):
            numbers = [int(entry["message"]) for entry in fact["evidence"]]
            stored.update(numbers)
            twice.update(numbers if fact.get("confirmations") else ())
        status = memd.status()
    assert status.server["primary"] == f"127.0.0.1:{service.primary()}"
    assert len(status.server["replicas"]) == len(service.servers) - 1
    assert status.dead == 0
    return answered(pushing), stored, twice + Counter({n: count - 1 for n, count in stored.items() if count > 1})


@pytest.mark.parametrize("min_replicas", [2, 0])
def test_what_was_acknowledged_survives_the_primary(
    data_dir: Path, tmp_path: Path, model: ModelServer, capsys: pytest.CaptureFixture[str], min_replicas: int
) -> None:
    """Lost: nothing where pushes wait for all replicas; where they wait for none, the last moments. Never twice."""
    with sentinel_service(tmp_path) as service:
        settings = make_settings(
            data_dir,
            service.url,
            inbox__min_replicas=min_replicas,
            extraction__extractor="anthropic",
            extraction__base_url=model.base_url,
            extraction__api_key="key",
            apply__near_duplicate=1,
            apply__max_facts=5_000,
        )
        answers, stored, twice = killed(service, settings)
    safe = {number for number, status in answers.items() if status in ("queued", "merged")}
    lost = safe - stored.keys()
    unconfirmed = answers.keys() - safe
    with capsys.disabled():
        print(  # noqa: T201  (the figures of docs/failover.md)
            f"\nmin_replicas {min_replicas}, {KILLS} kills: {len(safe):,} acknowledged, {len(lost)} of them lost; "
            f"{len(unconfirmed):,} unconfirmed, {len(unconfirmed - stored.keys())} of them lost; {len(twice)} twice"
        )
    assert set(answers.values()) <= {"queued", "merged", "unconfirmed"}
    assert not twice
    assert not lost or min_replicas == 0
