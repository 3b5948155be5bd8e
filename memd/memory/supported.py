"""Supported: whether what was said proves the facts of an update, beyond the quotes that they name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cached_property

from memd.context import Message
from memd.memory.draft import Draft
from memd.memory.facts import Evidence, content_of, subject_of
from memd.memory.gates.support import Quoted, Support
from memd.memory.projects.shared import NO_PROJECTS, Projects
from memd.memory.sayings import said_in
from memd.push.times import moment


class Supported:
    """Everything that was said around an update: its messages, those before them, and the facts that were known."""

    def __init__(self, draft: Draft, sent: Sequence[Message], projects: Projects = NO_PROJECTS) -> None:
        self._draft = draft
        self._shared = [content_of(fact) for project in projects.values() for fact in project.facts]
        self._messages = (*draft.origin.before, *sent)
        self._places = {message.id or message.identity: place for place, message in enumerate(self._messages)}
        self._by_day: dict[date, Support] = {}

    def doubts(self, content: str, evidence: Sequence[Evidence]) -> bool:
        """Whether a fact says more than what these entries and everything around them prove."""
        day = (moment(said_in(evidence).at) or self._draft.origin.now).date()
        if day not in self._by_day:
            self._by_day[day] = Support(self._messages, self._known, day)
        quotes = [Quoted(self._places[entry["message"]], entry["quote"]) for entry in evidence]
        return self._by_day[day].doubt(content, quotes) != ""

    @cached_property
    def _known(self) -> list[str]:
        known = [self._draft.facts[fact_id] for fact_id in self._draft.known if fact_id in self._draft.facts]
        return [*map(content_of, known), *self._shared, *(subject_of(fact)[0] for fact in known if "subject" in fact)]
