"""Endpoints as they are found: what they refuse, ignore and cut off. Over both protocols."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from support import MakeSettings, daemon, ended, exit_code, make_settings
from support.running_up import up

from memd.client import Memd
from memd.config import Settings
from memd.context import estimate_tokens
from memd.extraction import endpoint
from memd.inbox import endpoints, library
from memd.inbox.connection import send
from memd.ops.doctor import examine
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

PROTOCOLS = {
    "anthropic": {"extraction__extractor": "anthropic"},
    "openai": {"extraction__extractor": "openai", "extraction__model": "gpt-test"},
}
LIMIT = 150
"""Tokens of a reply at most, on the endpoint that truncates: one fact and its quote fit, four do not."""


def difficult(update: str, request: dict[str, Any]) -> tuple[str, str]:
    """Three endpoints in one: it always fences, truncates for one user, and needs the schema in the prompt."""
    sent = json.dumps(request)
    if "Its JSON schema" not in sent:
        return "Nothing that I would remember.", "end_turn"
    text = f"Here it is:\n```json\n{update}\n```"
    if "long" in sent and estimate_tokens(text) > LIMIT:
        return text[: 2 * LIMIT], "max_tokens"
    return text, "end_turn"


def address(server: ModelServer, protocol: str) -> str:
    return server.base_url + ("/v1" if protocol == "openai" else "")


def asking(data_dir: Path, url: str | None, server: ModelServer, protocol: str, **changes: object) -> Settings:
    own = {"extraction__base_url": address(server, protocol), "extraction__api_key": "test-key"}
    return make_settings(data_dir, url, **{**PROTOCOLS[protocol], **own, **changes})


def turns(user: str, count: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"The {user} fact number {n} is this one.", "id": f"{n}"} for n in range(count)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_that_holds_content_is_dead(
    data_dir: Path, server_url: str, client: redis.Redis, protocol: str
) -> None:
    """An endpoint that fences, truncates, refuses one field and ignores the schema: every fact is stored."""
    with ModelServer(voice=difficult, refuses=["response_format"]) as server:
        settings = asking(data_dir, server_url, server, protocol, drain__backoff_s=0.05)
        library.install(client, settings)
        with daemon(settings, workers=2), Memd(settings) as app:
            for user, count in (("fenced", 2), ("long", 4), ("plain", 1)):
                app.push(turns(user, count), thread_id="t", user_id=user)
            assert ended(app) == {"stored": 3}
            facts = {user: len(app.document(user)["facts"]) for user in ("fenced", "long", "plain")}
            assert facts == {"fenced": 2, "long": 4, "plain": 1}
            found = send(client, endpoints.learnt(endpoint(settings.extraction)))
        assert found == ({"response_format"} if protocol == "openai" else {"schema"})


@pytest.fixture
def refusing() -> Iterator[ModelServer]:
    """An endpoint that takes no schema, in either protocol."""
    with ModelServer(refuses=("output_config", "response_format")) as server:
        yield server


@pytest.mark.parametrize(("protocol", "field"), [("anthropic", "output_config"), ("openai", "response_format")])
def test_one_worker_finds_it_out_for_all(
    data_dir: Path, server_url: str, client: redis.Redis, refusing: ModelServer, protocol: str, field: str
) -> None:
    """The next drain asks without at once; the doctor says so; after a day it is tried again."""
    settings = asking(data_dir, server_url, refusing, protocol)
    library.install(client, settings)
    with Memd(settings) as app:
        for round_ in range(2):
            with daemon(settings):
                app.push(turns("u", 1), thread_id=f"t{round_}", user_id="u")
                assert ended(app)["stored"] == round_ + 1
    assert [field in request.body for request in refusing.requests] == [True, False, False]
    key = endpoints.key(endpoint(settings.extraction))
    assert 0 < client.pttl(key) <= endpoints.KEEP_MS
    said = next(found.said for found in examine(settings) if found.check == "model")
    assert f"it is asked without {field}, which it refuses; the schema stands in the prompt" in said


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_doctor_makes_one_real_call(data_dir: Path, refusing: ModelServer, protocol: str) -> None:
    """It says what came back, what it cost, and what the endpoint does not take; nothing is asked without --ask."""
    settings = asking(data_dir, None, refusing, protocol)
    assert "reply" not in [found.check for found in examine(settings)]
    assert refusing.calls == 0
    found = examine(settings, ask=True)[-1]
    assert (found.check, found.state, refusing.calls) == ("reply", "ok", 2)
    assert "an update with 1 fact from one message" in found.said
    assert "the schema stands in the prompt" in found.said
    refusing.text("Sure, I will remember that.", times=2)  # one is repaired, as the daemon does it
    failed = examine(settings, ask=True)[-1]
    assert (failed.state, "docs/models.md" in failed.said) == ("bad", True)
    refusing.fail(401)
    assert "refused the key" in examine(settings, ask=True)[-1].said


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_doctor_asks_again_as_the_daemon_does(data_dir: Path, protocol: str) -> None:
    """An endpoint that ignores schemas and obeys one in the prompt: the daemon stores everything, so it is no fault."""
    with ModelServer(voice=difficult) as server:
        found = examine(asking(data_dir, None, server, protocol), ask=True)[-1]
    assert (found.check, found.state, server.calls) == ("reply", "ok", 2)
    assert "the schema stands in the prompt, as nothing enforces it; the first reply was no update" in found.said


def test_an_extractor_of_ones_own_is_used(configured: MakeSettings, client: redis.Redis) -> None:
    """`extraction.class` names it; its facts carry its model and version."""
    settings = configured(extraction__class="support.own_extractor.OwnExtractor", extraction__model="mine")
    library.install(client, settings)
    with Memd(settings) as app, daemon(settings):
        app.push(turns("u", 2), thread_id="t", user_id="u")
        assert ended(app) == {"stored": 1}
        assert len(app.document("u")["facts"]) == 2
    said = next(found.said for found in examine(settings) if found.check == "model")
    assert "support.own_extractor.OwnExtractor" in said


@pytest.mark.parametrize("name", ["support.own_extractor.Missing", "support.own_extractor.NoExtractor"])
def test_an_extractor_that_cannot_be_used_stops_the_start(data_dir: Path, name: str) -> None:
    """With exit code 78 and the name of the setting."""
    with up(make_settings(data_dir, None, extraction__class=name)) as (process, log):
        assert exit_code(process, 30) == 78
    assert b"setting extraction.class: " in log.read_bytes()
