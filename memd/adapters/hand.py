"""The agent's hand: how every door for agents' tools writes, for one user. What it may do is in `memory/notes.py`."""

from __future__ import annotations

from memd.config import Settings
from memd.context import DEFAULT_AGENT
from memd.memory.document import Document
from memd.memory.hand import notes
from memd.memory.hand.by_hand import bucket_of
from memd.memory.hand.editing import Editing, Step
from memd.memory.hand.edits import Edited


class AgentHand:
    """Writes one user's memory in an agent's name, each time in one write. Thread-safe. Needs no server.

    Every method raises Rejected (code, field, limit; nothing changed), StoreUnavailable and DocumentDamaged.
    """

    def __init__(self, settings: Settings, user_id: str, agent_name: str = DEFAULT_AGENT) -> None:
        self._bucket = bucket_of(user_id, agent_name)
        self._editing = Editing(settings)
        self._rules = settings.apply

    def save(self, content: str, category: str | None = None) -> str:
        """Keep a note; the id of it, or of the fact that says the same already."""
        return self._do(lambda document, now: notes.save(document, content, category, now, self._rules))

    def update(self, fact_id: str, content: str, category: str | None = None) -> None:
        """Give a fact other words. Raises FactUnknown."""
        self._do(lambda document, now: notes.update(document, fact_id, content, category, now, self._rules))

    def retire(self, fact_id: str, reason: str = "") -> None:
        """Move a fact to the archive. Raises FactUnknown."""
        self._do(lambda document, now: notes.retire(document, fact_id, reason, now, self._rules))

    def document(self) -> Document:
        """The memory as it is, for reading."""
        return self._editing.load(self._bucket).document

    def change(self, step: Step[Edited]) -> tuple[Document, Document]:
        """Do several edits in one write, all or none; the document before and after. `step` may be asked again."""
        before, edited = self._editing.change(self._bucket, step)
        return before, edited.document

    def _do(self, step: Step[Edited]) -> str:
        _, edited = self._editing.change(self._bucket, step)
        return edited.fact_id
