"""Editing by hand: what a person says stands, is not lost, and what they removed does not come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import make_settings

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.errors import FactUnknown, Rejected
from memd.memory.document import Document, Fact


@pytest.fixture
def app(data_dir: Path) -> Memd:
    """A client whose server nobody asks."""
    return Memd(make_settings(data_dir, "unix:///nowhere/s"))


def only(document: Document) -> Fact:
    """The one fact there is."""
    (fact,) = document["facts"]
    return dict(fact)


def test_a_fact_added_by_hand_is_a_persons_word(app: Memd) -> None:
    """Source manual, confidence 1.0, the category that was named; no server is needed."""
    fact_id = app.add_fact("ana", "  喜欢绿茶，\n不加糖 ", category="Preference")
    fact = only(app.document("ana"))
    assert (fact["id"], fact["content"], fact["category"]) == (fact_id, "喜欢绿茶， 不加糖", "preference")
    assert (fact["source"], fact["confidence"]) == ("manual", 1.0)


async def _async(settings: Settings) -> list[str]:
    async with AsyncMemd(settings) as app:
        one = await app.add_fact("ana", "Lives in Porto", agent_name="coach")
        two = await app.add_fact("ana", "Works at night", agent_name="coach")
        await app.edit_fact("ana", one, content="Lives in Lisbon", agent_name="coach")
        await app.remove_fact("ana", two, agent_name="coach")
        return [fact["content"] for fact in await app.facts("ana", "coach")]


def test_the_async_client_does_the_same(app: Memd) -> None:
    """Add, edit, remove, list; in the agent's memory, not in the user's own."""
    import asyncio

    assert asyncio.run(_async(app.settings)) == ["Lives in Lisbon"]
    assert app.facts("ana") == []


def test_an_edit_keeps_what_was(app: Memd) -> None:
    """The same id with the new words; the archive has the old ones, with the reason and the time."""
    fact_id = app.add_fact("ana", "Lives in Porto")
    app.edit_fact("ana", fact_id, content="Lives in Lisbon", category="identity")
    document = app.document("ana")
    fact = only(document)
    assert (fact["id"], fact["content"], fact["category"]) == (fact_id, "Lives in Lisbon", "identity")
    (old,) = document["archive"]
    assert (old["id"], old["content"], old["archiveReason"]) == (fact_id, "Lives in Porto", "edited")
    assert old["archivedAt"] == fact["updatedAt"] == document["lastUpdated"]


@pytest.mark.parametrize(
    ("content", "category", "code", "field"),
    [
        ("tea", None, "E_FACT_TOO_SHORT", "content"),
        ("x" * 2001, None, "E_FACT_TOO_LONG", "content"),
        ("The password is Hunter2!x", None, "E_FACT_SECRET", "content"),
        ("我的密码是abc12345", None, "E_FACT_SECRET", "content"),
        ("Lives in Porto", "nonsense", "E_CATEGORY", "category"),
        (7, None, "E_FACT_TYPE", "content"),
    ],
)
def test_what_nobody_may_store_is_refused(app: Memd, content: str, category: str | None, code: str, field: str) -> None:
    """The gates of extraction hold for hands too; the error names code and field, never the value."""
    with pytest.raises(Rejected) as refused:
        app.add_fact("ana", content, category=category)
    assert (refused.value.code, refused.value.field) == (code, field)
    assert "Hunter2" not in str(refused.value)
    assert app.facts("ana") == []


def test_unknown_ids_are_errors(app: Memd) -> None:
    """Editing or removing what is not there changes nothing."""
    app.add_fact("ana", "Lives in Porto")
    before = app.document("ana")
    with pytest.raises(FactUnknown):
        app.edit_fact("ana", "fact_nowhere", content="Lives in Lisbon")
    with pytest.raises(FactUnknown):
        app.remove_fact("ana", "fact_nowhere")
    assert app.document("ana") == before
