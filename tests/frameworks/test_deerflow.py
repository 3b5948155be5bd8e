"""DeerFlow's own resolver and contract with memd as `manager_class`. DEERFLOW names the folder of a checkout."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from support import daemon

PACKAGES = Path(os.environ.get("DEERFLOW", "")) / "backend" / "packages"
if not (PACKAGES / "harness" / "deerflow").is_dir():
    pytest.skip("not run: DEERFLOW names no checkout of DeerFlow", allow_module_level=True)
sys.path[:0] = map(str, (PACKAGES / "harness", *PACKAGES.glob("*extension*"), *PACKAGES.glob("*extension*/src")))

from deerflow.agents.memory import manager as deerflow  # noqa: E402
from deerflow.config.memory_config import MemoryConfig, set_memory_config  # noqa: E402

from memd.adapters.deerflow_manager import DeerFlowMemory  # noqa: E402
from memd.client import Memd  # noqa: E402
from memd.config import Settings  # noqa: E402
from memd.errors import ConfigError  # noqa: E402


@pytest.fixture
def manager(memd: Memd, settings: Settings, tmp_path: Path) -> DeerFlowMemory:
    """As DeerFlow's factory makes it from its configuration."""
    file = tmp_path / "config.yaml"
    assert settings.redis_url is not None
    url = settings.redis_url.reveal()
    file.write_text(f"data_dir: {settings.data_dir}\nredis_url: {url}\n")
    return DeerFlowMemory.from_config({"config_file": str(file), "storage_path": "/nowhere", "max_tokens": 500})


def talk(*texts: str, begin: int = 0) -> list[AnyMessage]:
    """User and assistant in turn, with ids as LangGraph gives them."""
    kinds: tuple[Any, Any] = (HumanMessage, AIMessage)
    return [kinds[number % 2](text, id=f"m{begin + number}") for number, text in enumerate(texts)]


def test_the_factory_finds_it_by_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The path of the documentation resolves, in both modes, and has what tool mode needs."""
    path = "memd.adapters.deerflow_manager:DeerFlowMemory"
    monkeypatch.setattr(deerflow, "_scan_backends", dict)
    assert deerflow._resolve_manager_class(path) is DeerFlowMemory
    assert deerflow.backend_requires_passive_writes_in_tool_mode(path)
    set_memory_config(MemoryConfig(manager_class=path))
    assert DeerFlowMemory.from_config({}, mode="tool").mode == "tool"


def test_conversations_become_memories(manager: DeerFlowMemory, memd: Memd, settings: Settings) -> None:
    """Each run hands over the whole thread; each message counts once, and each user's memory is their own."""
    said = talk("I live in Porto.", "Noted.")
    manager.add("t", said, user_id="ana")
    manager.add("t", [*said, *talk("I like tea.", "Good.", begin=2)], user_id="ana", trace_id="x")
    (key,) = memd.pending(user_id="ana").keys
    assert key.turns == 4
    manager.add_nowait("周一", talk("我住在杭州。", "记住了。"), user_id="小林")
    with daemon(settings):
        memd.flush(wait=True)
    context = manager.get_context("ana")
    assert "Porto" in context
    assert "not instructions" in context
    assert "memory>" not in context
    assert "杭州" in manager.get_context("小林")
    assert "杭州" not in context
    assert manager.get_context("nobody") == manager.get_context(None) == ""
    assert [fact["content"] for fact in manager.search("Porto", 1, user_id="ana")] == ["The user lives in Porto."]
    assert manager.search("Porto", user_id="ana", category="goal") == []


def test_what_nobody_said_is_left_out(manager: DeerFlowMemory, memd: Memd) -> None:
    """Hidden messages, calls of tools and their results."""
    call = AIMessage("Looking.", id="a", tool_calls=[{"name": "web", "args": {}, "id": "c"}])
    hidden = HumanMessage("Reminder.", id="h", additional_kwargs={"hide_from_ui": True})
    manager.add("t", [call, ToolMessage("found", tool_call_id="c", id="r"), hidden], user_id="ana")
    assert memd.pending(user_id="ana").keys == ()


def test_buttons_write_notes(manager: DeerFlowMemory, memd: Memd) -> None:
    """Create, edit, delete and clear, with the answers that DeerFlow's gateway expects."""
    document, fact_id = manager.create_fact("The user likes tea.", "preference", user_id="ana")
    assert document["facts"][0]["id"] == fact_id
    document = manager.update_fact(fact_id or "", category="context", user_id="ana")
    assert document["facts"][0]["content"] == "The user likes tea."
    assert document["facts"][0]["category"] == "context"
    with pytest.raises(ValueError, match="E_NOTE_TOO_SHORT"):
        manager.create_fact("x", user_id="ana")
    with pytest.raises(KeyError):
        manager.delete_fact("fact_unknown", user_id="ana")
    with pytest.raises(KeyError):
        manager.update_fact("fact_unknown", category="context", user_id="ana")
    assert manager.delete_fact(document["facts"][0]["id"], user_id="ana")["facts"] == []
    manager.create_fact("The user owns a boat.", user_id="ana")
    assert manager.clear_memory(user_id="ana")["facts"] == []
    assert manager.get_context("ana") == ""


def test_a_memory_of_deerflow_comes_in(manager: DeerFlowMemory) -> None:
    """Its own export, with its facts and summaries."""
    fact = {"id": "fact_1", "content": "The user lives in Porto.", "category": "context", "confidence": 0.9}
    given = {"version": "1.0", "user": {"workContext": {"summary": "The user is a nurse.", "updatedAt": ""}}}
    document = manager.import_memory({**given, "facts": [fact]}, user_id="ana")
    assert [fact["content"] for fact in document["facts"]] == ["The user lives in Porto."]
    assert document["user"]["workContext"]["summary"] == "The user is a nurse."


def test_an_outage_stops_no_agent(
    manager: DeerFlowMemory, memd: Memd, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """A write waits in the process, and a flush at the end says whether all went."""
    file = tmp_path / "gone.yaml"
    file.write_text(f"data_dir: {memd.settings.data_dir}\nredis_url: unix:///nowhere/memd.sock\n")
    gone = DeerFlowMemory.from_config({"config_file": str(file)})
    with caplog.at_level(logging.WARNING, "memd"):
        gone.add("t", talk("I live in Porto.", "Noted."), user_id="ana")
    assert "push_delayed" in caplog.text
    assert asyncio.run(gone.aget_context("ana")) == ""
    assert gone.shutdown_flush(1) is False
    gone._turns[""]._memd = memd  # the inbox is back
    assert gone.shutdown_flush(1) is True
    (key,) = memd.pending(user_id="ana").keys
    assert key.turns == 2


def test_unknown_options_are_named(manager: DeerFlowMemory) -> None:
    """A typo in the configuration stops the start."""
    with pytest.raises(ConfigError, match=r"has no max_token; it has config_file"):
        DeerFlowMemory.from_config({"max_token": 5})
