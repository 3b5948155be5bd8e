"""What happens to processes: killed, frozen, told to stop, doubled, mixed; a queue that loses keys, a full server."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from fault_support import OwnServer, events, has_logged, once, raw, tell, tell_again
from support import make_settings, part, wait_for

from memd import inbox, library
from memd.client import Memd
from memd.config import Settings
from memd.connection import connect
from memd.errors import InboxFull
from memd.testing import ModelServer

Configured = Callable[..., Settings]


@pytest.fixture
def own(data_dir: Path) -> Settings:
    """Settings whose server is one of this test's own, in the data folder."""
    return make_settings(data_dir, None)


def asking(settings: Settings, model: ModelServer, **changes: object) -> Settings:
    """The same settings, with the HTTP model."""
    return make_settings(
        settings.data_dir,
        settings.redis_url.get_secret_value() if settings.redis_url else None,
        extraction__extractor="anthropic",
        extraction__base_url=model.base_url,
        extraction__api_key="test-key",
        **changes,
    )


# --- R2, R3: a server at its limit, or unfit ------------------------------------------------------------------------

FILLER = "x" * 20_000


def tell_much(app: Memd, number: int) -> None:
    """A context with something to remember and much beside it."""
    turns = [
        {"role": "user", "content": f"I like tea number {number}.", "id": f"u{number}"},
        {"role": "assistant", "content": FILLER, "id": f"a{number}"},
    ]
    app.push(turns, thread_id=f"thread-{number}", user_id=f"u{number % 7}")


def test_pushes_are_refused_near_the_memory_limit_until_the_backlog_has_drained(own: Settings) -> None:
    """R2: near the limit pushes are refused with InboxFull; the backlog drains to nothing, and they are taken again."""
    with OwnServer(own), Memd(own) as app, connect(own) as control, part("scheduler", own):
        has_logged(own, "scheduler_started", 1)
        limit = control.info("memory")["used_memory"] + 4_000_000
        control.config_set("maxmemory", limit)
        accepted = 0
        with suppress(InboxFull):
            while control.info("memory")["used_memory"] < 0.92 * limit:
                tell_much(app, accepted)
                accepted += 1
        wait_for(lambda: is_refused(app), "the door is closed")
        assert control.info("memory")["used_memory"] < limit
        with part("worker", own):
            assert set(app.flush(wait=True).counts) == {"stored"}
            wait_for(lambda: not is_refused(app), "the door is open again")
            assert not app.flush(wait=True).timed_out
            assert once(app, range(accepted), 7)


def is_refused(app: Memd) -> bool:
    """Whether a push, always the same one, is refused for memory."""
    try:
        tell(app, "another", 0)
    except InboxFull:
        return True
    return False


def test_at_the_memory_limit_workers_drain_without_rq(own: Settings) -> None:
    """R2: far beyond the limit RQ is refused everything; scheduler and worker start and drain all the same."""
    with OwnServer(own), Memd(own) as app, connect(own) as control:
        library.install(control, own)
        for number in range(40):
            if number % 2:
                tell(app, f"u{number % 7}", number)
            else:
                control.rpush(inbox.RAW, raw(f"u{number % 7}", number))
        control.config_set("maxmemory", 1)
        with pytest.raises(redis.OutOfMemoryError):
            control.rpush(inbox.RAW, raw("u0", 40))
        with pytest.raises(InboxFull):
            tell(app, "u0", 40)
        with part("scheduler", own), part("worker", own):
            wait_for(lambda: app.status().stored == 40, "the backlog has drained")
            assert once(app, range(40), 7)
            assert len(events(own, "scheduler", "bell_refused")) <= 1
            status = app.status()
            assert (status.pending, status.claimed, sum(status.raw.values()), status.dead) == (0, 0, 0, 0)
            assert status.workers == ()
            control.config_set("maxmemory", 0)
            wait_for(lambda: app.status().workers, "the worker is one of RQ's again")
            tell_again(app, "u0", 42)
            assert app.flush(wait=True).counts == {"stored": 1}


def test_a_worker_that_drains_without_rq_stops_when_told(own: Settings) -> None:
    """W6: at the memory limit, in the model call: SIGTERM reaches the drain, which gives its claim back; code 0."""
    with ModelServer(delay=30) as model, OwnServer(own), Memd(own) as app, connect(own) as control:
        settings = asking(own, model)
        library.install(control, settings)
        tell(app, "ana", 1)
        control.config_set("maxmemory", 1)
        with part("scheduler", settings), part("worker", settings) as worker:
            model.wait_for_calls(1, 20)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(8) == 0
            assert (app.status().claimed, app.status().pending) == (0, 1)
