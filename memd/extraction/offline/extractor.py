"""The offline extractor: finds plain statements in English and Chinese by patterns, without a model.

It shows what memd does before there is a key, and is no substitute for a model: it stores only what a closed form holds
whole (en.yaml, zh.yaml). docs/models.md lists the forms, and what it leaves alone. Each fact quotes its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from memd.extraction.offline.grammar import Form, KnownFact, is_proper, languages, recognise
from memd.extraction.offline.sentences import sentences
from memd.extraction.offline.statements import Statement, is_bare_no
from memd.extraction.offline.statements import read as read_sentence
from memd.extraction.protocol import Extraction, Request, Usage
from memd.extraction.update import ConfirmedFact, Evidence, NewFact, RetiredFact, Subject, Update
from memd.memory.document import Document
from memd.memory.facts import content_of, id_of, readable_facts

RULES_VERSION = "rules-5"

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
    corrects = False
    for sentence, quote in sentences(text, languages().values()):
        for statement in read_sentence(sentence, corrects=corrects):
            yield statement, quote
        corrects = is_bare_no(sentence)


@dataclass
class _UpdateBuilder:
    """The update while it is built. A later statement overrules an earlier one."""

    document: Document
    new: dict[str, NewFact] = field(default_factory=dict)
    confirmed: dict[str, ConfirmedFact] = field(default_factory=dict)
    retired: dict[str, RetiredFact] = field(default_factory=dict)

    @cached_property
    def _held(self) -> list[KnownFact]:
        """The document's facts, read only when there is a statement."""
        return [recognise(id_of(fact), content_of(fact).strip()) for fact in readable_facts(self.document)]

    def take(self, said: Statement, evidence: Evidence) -> None:
        if said.form:
            self._add(said, said.form, evidence)
        elif said.over:
            self._retire(said, evidence)
        else:
            self._correct(said, evidence)

    def update(self) -> Update:
        return Update({}, tuple(self.new.values()), tuple(self.confirmed.values()), tuple(self.retired.values()))

    def _add(self, said: Statement, form: Form, evidence: Evidence) -> None:
        value = said.value.casefold()
        slot = f"{form.kind}\n{value}" if said.beside else form.slot(value)
        self.new.pop(slot, None)
        if known := self._said_before(said, form):
            self.confirmed[known.id] = ConfirmedFact(known.id, evidence.quote)
            self.retired.pop(known.id, None)
            return
        replaced = self._former_name(said, form) if said.relationship else self._giving_way(said, form)
        for fact_id in replaced:
            self.confirmed.pop(fact_id, None)
            self.retired.pop(fact_id, None)
        self.new[slot] = _fact(said, form, evidence, replaced)

    def _said_before(self, said: Statement, form: Form) -> KnownFact | None:
        """The fact that says the same: in these words, or in others of a kind of which a user has one."""
        content, value = form.content(said.value, said.relationship).casefold(), said.value.casefold()
        worded = form.kind if form.single and not said.relationship else ""
        return next(
            (
                known
                for known in self._held
                if known.content.casefold() == content
                or (known.form and known.form.kind == worded and known.value == value)
            ),
            None,
        )

    def _former_name(self, said: Statement, form: Form) -> tuple[str, ...]:
        """The facts that name the same person otherwise, where the user corrects that."""
        begins = form.content(said.value, said.relationship).casefold().rpartition(said.value.casefold())[0]
        return tuple(known.id for known in self._held if said.corrects and known.content.casefold().startswith(begins))

    def _giving_way(self, said: Statement, form: Form) -> tuple[str, ...]:
        """The facts of the document that no longer hold; such that were said in this request are dropped."""
        if said.beside:
            return ()
        self.new = {slot: fact for slot, fact in self.new.items() if not _gives_way(_known(fact), form, said.value)}
        return tuple(known.id for known in self._held if _gives_way(known, form, said.value))

    def _retire(self, said: Statement, evidence: Evidence) -> None:
        for known in self._held:
            if _ends(said, known):
                self.confirmed.pop(known.id, None)
                self.retired[known.id] = RetiredFact(known.id, "over", evidence.quote)
        if said.value:  # else it may be about an earlier job
            self.new = {slot: fact for slot, fact in self.new.items() if not _ends(said, _known(fact))}

    def _correct(self, said: Statement, evidence: Evidence) -> None:
        """Replace the wrong value in the fact that contains it; without such a fact, a correction says nothing."""
        pending = [(_known(fact), fact.replaces) for fact in reversed(self.new.values())]
        for known, replaces in (*pending, *((held, (held.id,)) for held in self._held)):
            if known.form and known.value == said.wrong.casefold():
                if known.form.value.fullmatch(said.value):
                    self.new.pop(known.form.slot(known.value), None)
                    self.confirmed.pop(known.id, None)
                    self.new[known.form.slot(said.value)] = _fact(said, known.form, evidence, replaces)
                return


def _known(fact: NewFact) -> KnownFact:
    return recognise("", fact.content)


def _gives_way(known: KnownFact, form: Form, value: str) -> bool:
    """Whether a fact no longer holds once one of this form is said: of some kinds there is one, and firms differ."""
    if not known.form:
        return False
    if known.form.kind == form.kind:
        return form.single or known.value == value.casefold()
    firm = form.firm_in(value)
    if not (is_proper(known.firm) and is_proper(firm)):
        return False
    former, firm = known.firm.casefold(), firm.casefold()
    return former not in firm and firm not in former


def _ends(said: Statement, known: KnownFact) -> bool:
    """Whether a fact has ended by these words. The end of a job takes what was done there along."""
    if not known.form:
        return False
    value = said.value.casefold()
    if said.over == "employer":
        return bool(known.firm) and value in ("", known.firm.casefold())
    used = said.over == "tool" and re.match(f"{re.escape(value)}(?: for |(?<=[a-z]) ?[\u4e00-\u9fff])", known.value)
    return known.form.kind == said.over and (value in ("", known.value) or used is not None)


def _fact(said: Statement, form: Form, evidence: Evidence, replaces: tuple[str, ...]) -> NewFact:
    return NewFact(
        content=form.content(said.value, said.relationship),
        category=form.category,
        confidence=CONFIDENCE_OF_CORRECTION if said.corrects else CONFIDENCE,
        scope="user",
        durability="durable",
        authority="descriptive",
        evidence=(evidence,),
        source_error=said.wrong or None,
        subject=Subject(said.value, said.relationship) if said.relationship else None,
        replaces=replaces,
        sensitive=form.sensitive is not None and form.sensitive.search(said.value) is not None,
    )
