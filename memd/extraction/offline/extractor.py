"""The offline extractor: finds plain statements in English and Chinese by patterns, without a model.

It shows what memd does before there is a key, and is no substitute for a model. It stores only what a closed form holds
whole: name, home, job, employer, origin, family and pets by name, some tastes, allergies and diet, tools, languages,
standing wishes for answers, and a few goals and decisions (en.yaml, zh.yaml), what no longer holds, and corrections of
these. Each fact quotes its sentence.

It misses most of what a model would find. It reads no other languages, no message of over 1,500 characters (8,000 where
it begins as one about the user), no question, condition, doubt, past or reported speech, nothing in quotes or code, and
no message that asks to work on a text or to play a role, even where these contain a fact. It cannot detect irony, and
takes a false name for a true one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from memd.extraction.offline.clauses import Statement, is_bare_no
from memd.extraction.offline.clauses import read as read_sentence
from memd.extraction.offline.forms import language
from memd.extraction.offline.sentences import sentences
from memd.extraction.offline.wordings import KnownFact, recognise
from memd.extraction.protocol import Extraction, Request, Usage
from memd.extraction.update import ConfirmedFact, Evidence, NewFact, RetiredFact, Subject, Update
from memd.memory.document import Document
from memd.memory.facts import content_of, id_of, readable_facts

RULES_VERSION = "rules-2"

_MARKS = (language("en").marks, language("zh").marks)
"""Read when a worker starts: it takes 0.3 s."""

CONFIDENCE = 0.9
CONFIDENCE_OF_CORRECTION = 0.95


class RulesExtractor:
    """Extraction by patterns: offline, free and deterministic. Its limits are in the docstring of the module."""

    name = "rules"

    async def extract(self, request: Request) -> Extraction:
        """Read the user's messages. Never raises; anything but a plain statement is ignored."""
        builder = _UpdateBuilder(request.document)
        for index, message in enumerate(request.messages):
            if message.role == "user" and message.name is None:  # it makes facts about the user only
                for statement, quote in read(message.content):
                    builder.take(statement, Evidence(index, quote))
        return Extraction(builder.update(), Usage(), self.name, RULES_VERSION)

    async def aclose(self) -> None:
        """Do nothing; no connection is open."""


def read(text: str) -> Iterator[tuple[Statement, str]]:
    """The plain statements of one message, each with its sentence."""
    for sentence, quote, before in sentences(text, _MARKS):
        for statement in read_sentence(sentence, corrects=is_bare_no(before)):
            yield statement, quote


@dataclass
class _UpdateBuilder:
    """The update while it is built. A later statement overrules an earlier one."""

    document: Document
    new: dict[str, NewFact] = field(default_factory=dict)
    confirmed: dict[str, ConfirmedFact] = field(default_factory=dict)
    retired: dict[str, RetiredFact] = field(default_factory=dict)

    @cached_property
    def _facts(self) -> list[tuple[str, str, str]]:
        """Id, content and folded content of the document's facts, read only when there is a statement."""
        facts = readable_facts(self.document)
        return [(id_of(fact), content_of(fact), content_of(fact).strip().casefold()) for fact in facts]

    @cached_property
    def _recognised(self) -> list[KnownFact]:
        return [recognise(fact_id, text) for fact_id, text, _ in self._facts]

    def _known(self, kind: str) -> list[KnownFact]:
        """The document's facts of a kind."""
        return [fact for fact in self._recognised if fact.kind == kind]

    def take(self, statement: Statement, evidence: Evidence) -> None:
        if statement.kind == "over":
            self._retire(statement, evidence)
        elif statement.kind == "correction":
            self._correct(statement, evidence)
        else:
            self._add(statement, evidence)

    def update(self) -> Update:
        return Update({}, tuple(self.new.values()), tuple(self.confirmed.values()), tuple(self.retired.values()))

    def _add(self, statement: Statement, evidence: Evidence) -> None:
        slot = statement.kind if statement.single else f"{statement.kind}\n{statement.value.casefold()}"
        of_kind = [] if statement.person else self._known(statement.kind)
        self.new.pop(slot, None)
        if same := self._same(statement, of_kind):
            self.confirmed[same] = ConfirmedFact(same, evidence.quote)
            return
        replaced = tuple(self._replaced(statement, of_kind))
        for fact_id in replaced:
            self.confirmed.pop(fact_id, None)
            self.retired.pop(fact_id, None)
        self.new[slot] = _fact(statement, evidence, replaced)

    def _same(self, statement: Statement, of_kind: list[KnownFact]) -> str | None:
        """The id of the first fact with the same content (ignoring case), or the same value of a single kind."""
        content, value = statement.content.strip().casefold(), statement.value.casefold()
        worded = {fact.id for fact in of_kind if statement.single and fact.value == value}
        return next((fact_id for fact_id, _, folded in self._facts if folded == content or fact_id in worded), None)

    def _replaced(self, statement: Statement, of_kind: list[KnownFact]) -> Iterator[str]:
        """Ids of the facts that a statement replaces.

        For a single kind: every other value. For other kinds: the same value in another wording (likes, dislikes).
        """
        if statement.person:
            begins = statement.content.rpartition(statement.person)[0]
            yield from (fact_id for fact_id, text, _ in self._facts if statement.corrects and text.startswith(begins))
        else:
            yield from (fact.id for fact in of_kind if statement.single or fact.value == statement.value.casefold())

    def _retire(self, statement: Statement, evidence: Evidence) -> None:
        for fact in self._known(statement.content):
            if fact.value == statement.value.casefold():
                self.confirmed.pop(fact.id, None)
                self.retired[fact.id] = RetiredFact(fact.id, "over", evidence.quote)

    def _correct(self, statement: Statement, evidence: Evidence) -> None:
        """Replace the wrong value in the fact that contains it; without such a fact, a correction says nothing."""
        wrong = statement.wrong.casefold()
        for slot, fact in reversed(list(self.new.items())):
            if (known := recognise("", fact.content)).value == wrong:
                self._substitute(slot, known, statement, evidence, fact.replaces)
                return
        for known in self._recognised:
            if known.form and known.value == wrong:
                slot = known.kind if known.form.single else f"{known.kind}\n{statement.value.casefold()}"
                self.confirmed.pop(known.id, None)
                self._substitute(slot, known, statement, evidence, (known.id,))
                return

    def _substitute(
        self, slot: str, known: KnownFact, statement: Statement, evidence: Evidence, replaces: tuple[str, ...]
    ) -> None:
        if known.form and known.form.value.fullmatch(statement.value):
            before, after = known.template
            content = f"{before}{statement.value}{after}"
            private = known.form.is_sensitive(statement.value)
            right = replace(statement, content=content, category=known.form.category, sensitive=private)
            self.new[slot] = _fact(right, evidence, replaces)


def _fact(statement: Statement, evidence: Evidence, replaces: tuple[str, ...] = ()) -> NewFact:
    return NewFact(
        content=statement.content,
        category=statement.category,
        confidence=CONFIDENCE_OF_CORRECTION if statement.corrects else CONFIDENCE,
        scope="user",
        durability="durable",
        authority="descriptive",
        evidence=(evidence,),
        source_error=statement.wrong or None,
        subject=Subject(statement.person, statement.relationship) if statement.person else None,
        replaces=replaces,
        sensitive=statement.sensitive,
    )
