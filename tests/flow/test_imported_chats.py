"""The conversations of a chat export: pushed, extracted with their quotes and times, and known when they come again."""

from __future__ import annotations

from pathlib import Path

from support import daemon

from memd.client import Memd
from memd.config import Settings
from memd.memory.hand.formats import read_path

DATA = Path(__file__).parents[1] / "data" / "imports"


def test_a_chat_export_becomes_facts_with_quotes(memd: Memd, settings: Settings) -> None:
    """The user's words of months ago are the evidence; a second import stores and asks nothing."""
    claude, chatgpt = read_path(DATA / "claude"), read_path(DATA / "chatgpt")
    with daemon(settings):
        memd.import_memory("ana", claude)
        memd.import_memory("ana", chatgpt)
        assert not memd.flush(user_id="ana", wait=True).timed_out
        found = {fact["content"]: fact for fact in memd.facts("ana")}
        proven = {fact["evidence"][0]["quote"]: fact for fact in found.values() if fact.get("evidence")}
        cats = next(fact for quote, fact in proven.items() if "猫毛过敏" in quote)
        assert (cats["source"], cats["saidAt"][:10]) == ("claude:0199a000-0000-4000-8000-000000000001", "2026-01-05")
        assert any("Miso" in quote for quote in proven)
        before = memd.document("ana")
        for value in (claude, chatgpt):
            again = memd.import_memory("ana", value)
            assert again.memories[0].added == ()
        assert not memd.flush(user_id="ana", wait=True).timed_out
        assert memd.document("ana")["facts"] == before["facts"]
