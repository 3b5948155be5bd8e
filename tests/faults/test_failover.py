"""The inbox fails over: sentinels make a replica the primary, and nothing that was acknowledged is lost or doubled."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import daemon, execute, free_port, make_settings, own_server, wait_for
from support.sentinel_service import SentinelService, sentinel_service

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.errors import ConfigError, InboxFull, InboxUnavailable, NotReady, ServerUnfit
from memd.inbox import sentinels, server_check
from memd.inbox.connection import connect
from memd.inbox.verbs import P
from memd.ops.doctor import server as doctor_server
from memd.ops.doctor.checkup import Checkup


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SentinelService]:
    folder = tmp_path / "service"
    folder.mkdir()
    with sentinel_service(folder) as running:
        yield running


def with_service(service: SentinelService, data_dir: Path, **changes: object) -> Settings:
    return make_settings(data_dir, service.url, inbox__min_replicas=2, **changes)


def push(memd: Memd, number: int) -> str:
    """Push one message until it is acknowledged; returns the status."""
    said = [{"role": "user", "content": f"I own bicycle number {number} of the series.", "id": str(number)}]

    def pushed() -> str:
        try:
            return memd.push(said, thread_id=f"t{number % 3}", user_id=f"u{number % 5}").status
        except (
            InboxUnavailable,
            InboxFull,
            NotReady,
        ):  # while nobody is the primary; a merge of the same message is harmless
            return ""

    return wait_for(pushed, "a primary takes the push")


@pytest.mark.store
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_a_push_that_too_few_replicas_have_is_unconfirmed(service: SentinelService, data_dir: Path, how: str) -> None:
    """It is merged all the same, and sending it again when the replicas are back confirms it."""
    settings = with_service(service, data_dir)
    said = [{"role": "user", "content": "I live in Porto.", "id": "1"}]
    with daemon(settings, workers=0), Memd(settings) as memd:
        wait_for(lambda: push(memd, 7) == "merged", "the inbox is set up, and the second push of it is merged")
        away = next(port for port in service.servers if port != service.primary())
        if how == "killed":
            service.kill(away)
            wait_for(lambda: service.in_sync() == 1, "one replica is gone")
        else:
            service.servers[away].send_signal(signal.SIGSTOP)  # connected, and yet it confirms nothing
        receipt = memd.push(said, thread_id="t", user_id="ana")
        assert (receipt.status, memd.receipt(str(receipt.id)).state) == ("unconfirmed", "pending")
        with Checkup(settings) as checkup:
            verdict = doctor_server.replicas(checkup)
        assert f"the primary is 127.0.0.1:{service.primary()}, " in verdict.sentence
        assert (verdict.state, "unconfirmed" in verdict.sentence) == (
            ("bad", True) if how == "killed" else ("ok", False)
        )
        if how == "killed":
            service.bring_back(away)
        else:
            service.servers[away].send_signal(signal.SIGCONT)

        def again() -> str:
            return memd.push(said, thread_id="t", user_id="ana").status

        wait_for(lambda: again() == "merged", "both replicas have it")


@pytest.mark.store
def test_nothing_is_claimed_from_a_server_that_nobody_adopted(service: SentinelService, data_dir: Path) -> None:
    """Its leases were given by another clock, and its tombstones may be old: a scheduler looks at both first."""
    settings = with_service(service, data_dir, scheduler__quiet_s=1)
    with Memd(settings) as memd, daemon(settings, workers=0):
        wait_for(lambda: push(memd, 1), "the inbox is set up")
        with connect(settings) as client:
            known = wait_for(lambda: client.hget(f"{P}:config", "run_id"), "the scheduler has adopted the server")
    service.fail_over()
    with connect(settings) as client:
        claim = ("FCALL", "memd_claim_1", 1, P, 5, 0, "nonce", "host:1:x", "endpoint", 3)
        wait_for(lambda: execute(client, "FCALL", "memd_tick_1", 1, P, 0, 10, "endpoint")[1] == 1, "the key is due")
        assert execute(client, *claim)[4:] == []
        assert client.hget(f"{P}:config", "run_id") == known
        with daemon(settings, workers=0):
            wait_for(lambda: client.hget(f"{P}:config", "run_id") != known, "the scheduler has adopted the new one")
        assert len(execute(client, *claim)[4:]) == 1


@pytest.mark.store
def test_a_receipt_of_a_lost_push_tells_no_other_push(service: SentinelService, data_dir: Path) -> None:
    """Numbers that the old primary gave and the new one lacks are given again, in a generation of their own."""
    settings = make_settings(data_dir, service.url, scheduler__quiet_s=300, scheduler__max_wait_s=300)

    def said(name: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": f"I live in {name}.", "id": name}]

    with daemon(settings, workers=0), Memd(settings) as memd:
        wait_for(lambda: push(memd, 1), "the inbox is set up")
        kept = memd.push(said("Porto"), thread_id="t", user_id="ana")
        wait_for(lambda: service.in_sync() == 2, "both replicas keep up")
        with connect(settings) as client:
            assert execute(client, "WAIT", 2, 5000) == 2
            # as if the last write of the primary had not been replicated: only its receipt is left
            key, gen, seq = str(kept.id).split(".")
        lost = f"{key}.{gen}.{int(seq) + 1}"
        service.fail_over()
        after = wait_for(lambda: _try(memd, said("Braga")), "the new primary takes a push")
        assert memd.receipt(str(kept.id)).state == "pending"
        assert memd.receipt(str(after)).state == "pending"
        assert memd.receipt(lost).state == "unknown"


def _try(memd: Memd, said: list[dict[str, str]]) -> str | None:
    try:
        return memd.push(said, thread_id="t", user_id="ana").id
    except (InboxUnavailable, InboxFull, NotReady):  # not yet
        return None


async def _ask(settings: Settings) -> str:
    memd = AsyncMemd(settings)
    try:
        said = [{"role": "user", "content": "I live in Porto.", "id": "1"}]
        return (await memd.push(said, thread_id="t", user_id="ana")).status
    finally:
        await memd.aclose()


@pytest.mark.store
def test_the_asynchronous_client_asks_the_sentinels_too(service: SentinelService, data_dir: Path) -> None:
    """Both commands of its push go over one connection."""
    import asyncio

    settings = with_service(service, data_dir)
    with daemon(settings, workers=0), Memd(settings) as memd:
        wait_for(lambda: push(memd, 1), "the inbox is set up")
        assert asyncio.run(_ask(settings)) == "queued"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis+sentinel://a:1,b/inbox", "redis+sentinel://a:1,b:26379/inbox"),
        ("rediss+sentinel://u:p%40s@[::1]:7,b:2/x", "rediss+sentinel://[::1]:7,b:2/x"),
    ],
)
def test_the_url_of_a_service_is_read(url: str, address: str) -> None:
    """Hosts with or without ports; no account in what is shown."""
    assert sentinels.service_of(url).address == address


@pytest.mark.parametrize(
    "url",
    ["redis+sentinel://a:1", "redis+sentinel:///x", "redis+sentinel://a,,b/x", "redis+sentinel://a:123456/x",
     "redis+sentinel://a/x/y"],
)  # fmt: skip
def test_a_url_that_names_no_service_is_refused(url: str, data_dir: Path) -> None:
    """With the form that it should have."""
    with pytest.raises(ConfigError, match=r"redis\+sentinel://host1"):
        connect(make_settings(data_dir, url))


def test_a_cluster_is_refused_at_the_start(data_dir: Path) -> None:
    """In one sentence, whatever is allowed."""
    with own_server(data_dir, "--cluster-enabled", "yes", "--cluster-port", str(free_port())) as port:
        settings = make_settings(data_dir, f"redis://127.0.0.1:{port}", inbox__allow_unfit_server=True)
        with connect(settings) as client, pytest.raises(ServerUnfit, match="cluster mode is not supported"):
            server_check.require(client, settings)
